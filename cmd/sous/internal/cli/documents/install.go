package documents

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) installCommand() *cobra.Command {
	return a.RemoteGroup("owner", "Owners of documents (installs), and the functions that may use them",
		a.installListCommand(), a.installGetCommand(), a.installPutCommand(), a.installDeleteCommand())
}

// installTarget returns the install of a command about id.
func (a commands) installTarget(id string) (*client.Install, error) {
	if err := api.ValidateInstall(id); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Tenant.Install(id), nil
}

// installListCommand returns sous owner list. A function's own install, such as
// fn.shop.cart, is never registered; it is in the list once it has documents.
func (a commands) installListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenant's installs, unregistered ones included", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Tenant.Installs, *limit, []string{"INSTALL", "REGISTERED", "FUNCTIONS", "DESCRIPTION"}, func(i api.Install) []string {
			return []string{i.Install, registeredText(&i), cmp.Or(strings.Join(i.Functions, " "), "-"), cmp.Or(i.Description, "-")}
		})
	}
	return cmd
}

// registeredText returns the time of the registration, "-" for an install without a record.
func registeredText(i *api.Install) string {
	if i.CreatedAt.IsZero() {
		return "-"
	}
	return command.TimeText(i.CreatedAt.UnixMilli())
}

func (a commands) installGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show a registered install", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			install, err := a.installTarget(args[0])
			if err != nil {
				return err
			}
			return a.printInstall(install.Get(cmd.Context()))
		},
	}
}

func (a commands) printInstall(i api.Install, err error) error {
	if err != nil {
		return err
	}
	return a.Print(i, command.Table([]string{"INSTALL", i.Install}, [][]string{
		{"REGISTERED", registeredText(&i)},
		{"FUNCTIONS", cmp.Or(strings.Join(i.Functions, " "), "-")},
		{"DESCRIPTION", cmp.Or(i.Description, "-")},
	}))
}

// installPutCommand returns sous owner put. It replaces the whole record: --function and
// --description that are not set are removed from an install that has them.
func (a commands) installPutCommand() *cobra.Command {
	var install api.Install
	cmd := &cobra.Command{
		Use: "put ID", Short: "Register an install, or replace its functions and description",
		Example: `  sous owner put crm --function sales/sync --function 'billing/*' --description "what the CRM keeps"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := a.installTarget(args[0])
			if err != nil {
				return err
			}
			made, err := target.Register(cmd.Context(), install)
			if err != nil {
				return err
			}
			a.Note("%s is registered, for %s", made.Install, cmp.Or(strings.Join(made.Functions, " "), "no function"))
			return a.Print(made, "")
		},
	}
	cmd.Flags().StringVar(&install.Description, "description", "", "a description, shown in lists")
	cmd.Flags().StringArrayVar(&install.Functions, "function", nil, "<namespace>/<function> or <namespace>/* that may use it; may be repeated")
	return cmd
}

// installDeleteCommand returns sous owner delete. It deletes unregistered installs too, such
// as that of a function that was deleted.
func (a commands) installDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete ID", Short: "Delete an install with all its documents", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := a.installTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete install %s with all its documents?", args[0])); err != nil {
				return err
			}
			if err := target.Delete(cmd.Context()); err != nil {
				return err
			}
			a.Note("%s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
