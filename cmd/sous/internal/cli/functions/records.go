package functions

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) fnGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a function, its latest version and its aliases", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			detail, err := fn.Get(cmd.Context())
			if err != nil {
				return err
			}
			return a.Print(detail, functionText(fn, detail))
		},
	}
}

// functionText returns a function as a table, then each alias with its URL.
func functionText(fn *client.Function, d api.FunctionDetail) string {
	latest := "-"
	if d.LatestVersion != nil {
		latest = strconv.FormatInt(*d.LatestVersion, 10)
	}
	var b strings.Builder
	b.WriteString(command.Table([]string{"NAME", d.Name}, [][]string{
		{"NAMESPACE", d.Tenant + "/" + d.Namespace},
		{"DESCRIPTION", cmp.Or(d.Description, "-")},
		{"CREATED", command.TimeText(d.CreatedAtMS)},
		{"LATEST VERSION", latest},
	}))
	for _, alias := range d.Aliases {
		fmt.Fprintf(&b, "\n%s = version %d\n  %s\n", command.Printable(alias.Alias), alias.Version, command.Printable(fn.WebURL(api.Ref{Alias: alias.Alias})))
	}
	return b.String()
}

func (a commands) fnVersionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "versions NAME", Short: "List a function's versions, newest first", Args: cobra.ExactArgs(1)}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, fn, err := a.functionTarget(args[0])
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, fn.Versions, *limit, []string{"VERSION", "PUBLISHED", "SHA256", "SIZE", "TIMEOUT", "MEMORY"}, func(v api.Version) []string {
			return []string{strconv.FormatInt(v.Version, 10), command.TimeText(v.PublishedAtMS), command.ShortDigest(v.SHA256), command.SizeText(v.SizeBytes),
				fmt.Sprintf("%d ms", v.Config.TimeoutMS), fmt.Sprintf("%d MB", v.Config.MemoryMB)}
		})
	}
	return cmd
}

// fnRollbackCommand returns sous fn rollback. Without --to it goes back by one version, also
// if the alias never pointed at that version: no history of aliases is kept.
func (a commands) fnRollbackCommand() *cobra.Command {
	var to int64
	var alias string
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Set an alias back to the version before the one that it points at",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("to") && to < 1 {
				return api.Errorf(api.CodeValidationName, "--to %d must be a positive integer", to)
			}
			from, set, err := rollback(cmd.Context(), fn, alias, to)
			if err != nil {
				return err
			}
			return a.Print(set, fmt.Sprintf("%s: %s is version %d again (was %d)\n", args[0], set.Alias, set.Version, from))
		},
	}
	cmd.Flags().Int64Var(&to, "to", 0, "the version to go to (default: the one before)")
	cmd.Flags().StringVar(&alias, "alias", api.DefaultAlias, "alias to set")
	return cmd
}

// rollback points alias at version to, or for 0 at the version before the current one, and
// returns the version that it pointed at. The write is conditional: it does not undo a
// deployment of the meantime.
func rollback(ctx context.Context, fn *client.Function, alias string, to int64) (from int64, set api.Alias, err error) {
	now, err := fn.Alias(ctx, alias)
	if err != nil {
		return 0, api.Alias{}, err
	}
	if to == 0 {
		to = now.Version - 1 // versions have no gaps
	}
	if to < 1 {
		return 0, api.Alias{}, api.Errorf(api.CodeVersionNotFound, "%s points at version %d: there is none before it", alias, now.Version)
	}
	set, err = fn.SetAlias(ctx, alias, to, client.AliasGuard{Version: now.Version})
	return now.Version, set, err
}

// fnDeleteCommand returns sous fn delete. Its endpoint and its schedules fail from then on;
// creating a function of the name again restores versions and aliases.
func (a commands) fnDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a function; its versions are kept", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete function %s?", args[0])); err != nil {
				return err
			}
			if err := fn.Delete(cmd.Context()); err != nil {
				return err
			}
			a.Note("%s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
