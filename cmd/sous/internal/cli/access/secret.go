package access

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) secretCommand() *cobra.Command {
	// keygen calls no server, so it has no flags that name one.
	commands := []*cobra.Command{a.secretSetCommand(), a.secretListCommand(), a.secretShowCommand(), a.secretDeleteCommand(), a.secretRewrapCommand()}
	for _, cmd := range commands {
		a.RegisterRemote(cmd.Flags())
	}
	return command.Group("secret", "Secrets of functions, which functions read by name",
		append(commands, a.secretKeygenCommand())...)
}

// secretTarget returns the target of a command about the secret called name.
func (a commands) secretTarget(name string) (*client.Secret, error) {
	if err := api.ValidateSecretName(name); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Namespace.Secret(name), nil
}

// secretSetCommand returns sous secret set. It prints the new version; --if-version and
// --if-new make the write fail with CodePreconditionFailed if another write came before.
func (a commands) secretSetCommand() *cobra.Command {
	var from valueSource
	var on client.SecretCondition
	cmd := &cobra.Command{
		Use:   "set NAME [-]",
		Short: "Write a secret's value, as its next version",
		Long: `Write a secret's value, as its next version. Functions that name it in their manifest
(capabilities.secrets) read it with cs.secrets.get; no command shows it again.

On a terminal the command asks for the value and does not show it. Otherwise the value
comes from a file or from stdin (-), without the line break at its end. It cannot be an
argument, because it would stay in the shell's history and show in the list of processes.`,
		Example: `  sous secret set STRIPE_KEY
  sous secret set TLS_KEY --value-file key.pem
  pass show stripe | sous secret set STRIPE_KEY -`,
		Args: secretSetArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := a.secretTarget(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				from.file = "-"
			}
			value, err := from.read(a, args[0])
			if err != nil {
				return err
			}
			made, err := target.Set(cmd.Context(), value, on)
			if err != nil {
				return err
			}
			a.Note("%s is at version %d", made.Name, made.Version)
			return a.Print(made, "")
		},
	}
	from.register(cmd.Flags())
	cmd.Flags().Var(command.VersionFlag(&on.IfMatch), "if-version", "only if it has this version now")
	cmd.Flags().BoolVar(&on.IfNew, "if-new", false, "only if it does not exist")
	cmd.MarkFlagsMutuallyExclusive("if-version", "if-new")
	return cmd
}

// secretSetArgs refuses a value on the command line. Its errors do not repeat the arguments,
// because one of them may be a value.
func secretSetArgs(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name the secret: sous secret set NAME")
	case len(args) > 2 || len(args) == 2 && args[1] != "-":
		return errors.New("a value is not taken from the command line, because the shell's history and the list of processes would show it: " +
			"give --value-file FILE, or - for stdin, or type it when you are asked")
	case strings.Contains(args[0], "="):
		return errors.New("NAME=VALUE is not taken, because the shell's history would keep the value: give the name alone, and --value-file FILE or - for stdin")
	}
	return nil
}

func (a commands) secretListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's secrets, without their values", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.Secrets, *limit, []string{"SECRET", "VERSION", "CREATED", "UPDATED", "BY"}, func(s api.Secret) []string {
			return []string{s.Name, strconv.FormatInt(s.Version, 10), command.TimeText(s.CreatedAtMS), command.TimeText(s.UpdatedAtMS), s.UpdatedBy}
		})
	}
	return cmd
}

func (a commands) secretShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a secret's version and dates, without its value", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := a.secretTarget(args[0])
			if err != nil {
				return err
			}
			found, err := target.Get(cmd.Context())
			if err != nil {
				return err
			}
			return a.Print(found, secretText(&found))
		},
	}
}

func secretText(s *api.Secret) string {
	return command.Table([]string{"SECRET", s.Name}, [][]string{
		{"VERSION", strconv.FormatInt(s.Version, 10)},
		{"CREATED", command.TimeText(s.CreatedAtMS)},
		{"UPDATED", command.TimeText(s.UpdatedAtMS)},
		{"BY", s.UpdatedBy},
	})
}

// secretDeleteCommand returns sous secret delete. Running functions cannot read the secret any
// more either.
func (a commands) secretDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a secret; functions can no longer read it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := a.secretTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete secret %s?", args[0])); err != nil {
				return err
			}
			if err := target.Delete(cmd.Context(), 0); err != nil {
				return err
			}
			a.Note("%s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
