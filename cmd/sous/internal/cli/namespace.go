package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// namespaceReaders is the number of namespaces that are counted at the same time.
const namespaceReaders = 8

// namespaceCommand returns sous namespace and its commands.
func (a commands) namespaceCommand() *cobra.Command {
	return a.RemoteGroup("namespace", "Show the namespaces of a tenant", a.namespaceListCommand())
}

// countedNamespace is a namespace as it is printed. A number is null if the key may not list
// the resources.
type countedNamespace struct {
	Namespace string `json:"namespace"`
	Functions *int   `json:"functions"`
	Queues    *int   `json:"queues"`
}

func (a commands) namespaceListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the tenant's namespaces, with their functions and queues", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`List the tenant's namespaces that the key may enter.

FUNCTIONS and QUEUES are numbers, "-" if the key may not list them. Numbers from
%d on are not counted further.`, api.MaxPageLimit),
	}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		found, more, err := command.Collect(client.All(cmd.Context(), t.Tenant.Namespaces, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		items := make([]countedNamespace, len(found))
		err = a.Working("counting functions and queues", func() error {
			readers, ctx := errgroup.WithContext(cmd.Context())
			readers.SetLimit(namespaceReaders)
			for i, n := range found {
				readers.Go(func() (err error) {
					items[i], err = countNamespace(ctx, t.Tenant, n.Namespace)
					return err
				})
			}
			return readers.Wait()
		})
		if err != nil {
			return err
		}
		a.NoteMore(more)
		return command.PrintList(a.App, items, []string{"NAMESPACE", "FUNCTIONS", "QUEUES"}, func(n countedNamespace) []string {
			return []string{n.Namespace, countText(n.Functions), countText(n.Queues)}
		})
	}
	return cmd
}

// countNamespace returns a namespace of t with its numbers.
func countNamespace(ctx context.Context, t *client.Tenant, name string) (n countedNamespace, err error) {
	n.Namespace = name
	n.Functions, err = countItems(ctx, t.Namespace(name).Functions)
	if err == nil {
		n.Queues, err = countItems(ctx, t.Namespace(name).Queues)
	}
	return n, err
}

// countItems returns the number of items of a list, at most api.MaxPageLimit; nil if the key
// may not read it.
func countItems[T any](ctx context.Context, list func(context.Context, client.PageOptions) (api.Page[T], error)) (*int, error) {
	items, _, err := command.Collect(client.All(ctx, list, client.PageOptions{Limit: api.MaxPageLimit}), api.MaxPageLimit)
	if api.ErrorCode(err) == api.CodeAuthzDenied {
		return nil, nil //nolint:nilnil // documented: the key may not read it
	}
	n := len(items)
	return &n, err
}

// countText returns a number as a cell of a table.
func countText(n *int) string {
	switch {
	case n == nil:
		return "-"
	case *n >= api.MaxPageLimit:
		return fmt.Sprintf("%d+", *n)
	}
	return fmt.Sprint(*n)
}
