// Package domains holds the commands about custom domains: sous domain add, verify, get, list and
// rm.
package domains

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about custom domains.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.RemoteGroup("domain", "Custom domains on which functions answer",
		c.addCommand(), c.verifyCommand(), c.getCommand(), c.listCommand(), c.removeCommand())}
}

// handle returns the domain that a command names, and the target.
func (a commands) handle(name string) (*client.Domain, *command.Target, error) {
	name, err := domain.Parse(name)
	if err != nil {
		return nil, nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, nil, err
	}
	return t.Tenant.Domain(name), t, nil
}

func (a commands) addCommand() *cobra.Command {
	var to domain.Target
	cmd := &cobra.Command{
		Use: "add DOMAIN FUNCTION", Short: "Add a custom domain for a function, or lead it to another function",
		Long: `Add a custom domain for a function of the namespace. The domain is pending until its TXT
record, which the command prints, is in the DNS zone and sous domain verify has found it.
A domain that the tenant has already is led to the function and keeps its state.`,
		Example: `  sous domain add shop.example.com shop
  sous domain verify shop.example.com --wait 10m`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, t, err := a.handle(args[0])
			if err != nil {
				return err
			}
			to.Namespace, to.Function = t.NamespaceName, args[1]
			added, err := d.Put(cmd.Context(), to, 0)
			if err != nil {
				return err
			}
			if added.State == domain.Pending {
				a.Note("set the TXT record %s to %s, then run: sous domain verify %s", added.Record.Name, added.Record.Value, added.Domain)
			}
			return a.print(added)
		},
	}
	cmd.Flags().StringVar(&to.Alias, "alias", "", "alias of the function (default "+api.DefaultAlias+")")
	cmd.Flags().Var(command.VersionFlag(&to.Version), "version", "version of the function, in place of an alias")
	cmd.MarkFlagsMutuallyExclusive("alias", "version")
	return cmd
}

// print prints a domain.
func (a commands) print(d domain.Domain) error {
	return a.Print(d, command.Table([]string{"DOMAIN", d.Domain}, [][]string{
		{"STATE", d.State}, {"FUNCTION", function(d)},
		{"RECORD", d.Record.Name + " " + d.Record.Type + " " + d.Record.Value},
		{"REVISION", strconv.FormatInt(d.Revision, 10)},
	}))
}

// function returns the function of a domain as namespace/function@alias.
func function(d domain.Domain) string { return d.Namespace + "/" + d.Function + "@" + d.Ref().String() }

// The pauses between two lookups of verify --wait: each is twice the one before.
const (
	firstPause = time.Second
	mostPause  = 15 * time.Second
)

func (a commands) verifyCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "verify DOMAIN", Short: "Look the record of a domain up, and serve the domain if it is there", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, _, err := a.handle(args[0])
			if err != nil {
				return err
			}
			var verified domain.Domain
			err = a.Working("looking for the record of "+args[0], func() error {
				verified, err = verify(cmd.Context(), d, wait)
				return err
			})
			if err != nil {
				return err
			}
			return a.print(verified)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "look again for so long, such as 10m, while the record is not there")
	return cmd
}

// verify has a domain verified. While its record is not there, or the DNS does not answer, it tries
// again for the time wait.
func verify(ctx context.Context, d *client.Domain, wait time.Duration) (domain.Domain, error) {
	deadline := time.Now().Add(wait)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		verified, err := d.Verify(ctx)
		switch api.ErrorCode(err) {
		case api.CodeDomainUnverified, api.CodeDomainLookup, api.CodeCapacityLimit:
		default:
			return verified, err
		}
		left := time.Until(deadline)
		if left <= 0 || sleep.For(ctx, min(pause, left)) != nil {
			return verified, err
		}
	}
}

func (a commands) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get DOMAIN", Short: "Show a custom domain, its state and its DNS record", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, _, err := a.handle(args[0])
			if err != nil {
				return err
			}
			found, err := d.Get(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(found)
		},
	}
}

func (a commands) listCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenant's custom domains", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Tenant.Domains, *limit, []string{"DOMAIN", "STATE", "FUNCTION", "CREATED"}, func(d domain.Domain) []string {
			return []string{d.Domain, d.State, function(d), command.TimeText(d.CreatedAtMS)}
		})
	}
	return cmd
}

func (a commands) removeCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "rm DOMAIN", Short: "Remove a custom domain: it is not served any more",
		Noun: "the domain %s", Done: "the domain %s",
		Find: func(name string) (func(context.Context) error, error) {
			d, _, err := a.handle(name)
			return func(ctx context.Context) error { return d.Delete(ctx, 0) }, err
		},
	})
}
