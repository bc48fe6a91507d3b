package functions

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) fnAliasCommand() *cobra.Command {
	return command.Group("alias", "Names that point at versions",
		a.aliasSetCommand(), a.aliasListCommand(), a.aliasDeleteCommand())
}

// aliasSetCommand returns sous fn alias set, which deploys or rolls back: requests use the new
// version within a second. Without --if-version it overwrites a change of another user.
func (a commands) aliasSetCommand() *cobra.Command {
	var guard client.AliasGuard
	cmd := &cobra.Command{
		Use: "set NAME ALIAS VERSION", Short: "Point an alias at a version", Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := api.ParseVersion(args[2])
			if err != nil {
				return err
			}
			_, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			set, err := fn.SetAlias(cmd.Context(), args[1], version, guard)
			if err != nil {
				return err
			}
			return a.Print(set, fmt.Sprintf("%s: %s is version %d\n", args[0], set.Alias, set.Version))
		},
	}
	registerGuard(cmd, &guard)
	cmd.Flags().BoolVar(&guard.Absent, "if-absent", false, "only if there is no such alias yet")
	cmd.MarkFlagsMutuallyExclusive("if-version", "if-absent")
	return cmd
}

// registerGuard adds --if-version to a command that changes an alias. The write fails with
// CodePreconditionFailed if the alias points elsewhere.
func registerGuard(cmd *cobra.Command, guard *client.AliasGuard) {
	cmd.Flags().Var(command.VersionFlag(&guard.Version), "if-version", "only if the alias points at this version now")
}

func (a commands) aliasListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list NAME", Short: "List a function's aliases", Args: cobra.ExactArgs(1)}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, fn, err := a.functionTarget(args[0])
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, fn.Aliases, *limit, []string{"ALIAS", "VERSION", "UPDATED", "URL"}, func(al api.Alias) []string {
			return []string{al.Alias, strconv.FormatInt(al.Version, 10), command.TimeText(al.UpdatedAtMS), fn.WebURL(api.Ref{Alias: al.Alias})}
		})
	}
	return cmd
}

func (a commands) aliasDeleteCommand() *cobra.Command {
	var guard client.AliasGuard
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME ALIAS", Short: "Remove an alias; the version stays", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete alias %s of %s?", args[1], args[0])); err != nil {
				return err
			}
			if err := fn.DeleteAlias(cmd.Context(), args[1], guard); err != nil {
				return err
			}
			a.Note("%s: alias %s deleted", args[0], args[1])
			return nil
		},
	}
	registerGuard(cmd, &guard)
	command.RegisterYes(cmd, &yes)
	return cmd
}
