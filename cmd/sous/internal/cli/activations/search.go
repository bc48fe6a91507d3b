package activations

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// searchCommand returns sous activation search. Its flags are the parameters of the search.
func (a commands) searchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "search [QUERY]", Short: "Search the activations of all functions", Args: cobra.MaximumNArgs(1),
		Long: "Search the activations of all functions of the namespace, or with --all-namespaces of the tenant. QUERY is a\n" +
			"full-text query: words, \"phrases\", prefix*, AND, OR, NOT and column:word. A replica with the role mirror answers.",
		Example: `  sous activation search --status error --error-type TypeError --sort duration
  sous activation search 'result:declined' --function checkout --count
  sous activation search --all-namespaces --job 0198f2a0-7c11-7d3b-9f5e-2f6c1a8b9d10`,
	}
	limit := command.RegisterLimit(cmd)
	values := registerSearch(cmd, search.ActivationSearchParameters())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		q, err := search.ParseActivationSearch(values(t, args))
		if err != nil {
			return err
		}
		q.Count, _ = cmd.Flags().GetBool("count") // it exists
		list := func(ctx context.Context, o client.PageOptions) (search.Results[api.Activation], error) {
			page, err := t.Tenant.SearchActivations(ctx, q, o)
			q.Count = false // of the first page
			return page, err
		}
		return command.PrintSearch(cmd.Context(), a.App, list, *limit, "activation", listHeader, func(act api.Activation) []string {
			return a.activationRow(act, &client.ActivationFilter{Namespace: q.Namespace})
		})
	}
	return cmd
}

// statsCommand returns sous activation stats.
func (a commands) statsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stats [QUERY]", Short: "Show how many activations ended, how, and how long they took", Args: cobra.MaximumNArgs(1),
		Long: "Show how many activations of all functions of the namespace ended, or with --all-namespaces of the tenant, how\n" +
			"long they took in ms, and the most frequent failures. The flags and QUERY select activations as those of activation\n" +
			"search. A replica with the role mirror answers.",
		Example: `  sous activation stats --function checkout --since 24h --bucket 1h
  sous activation stats --all-namespaces -o json`,
	}
	within := command.RegisterSeries(cmd)
	values := registerSearch(cmd, search.ActivationParameters())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		q, err := search.ParseActivations(values(t, args))
		if err != nil {
			return err
		}
		series, err := t.Tenant.ActivationSeries(cmd.Context(), q, within())
		if err != nil {
			return err
		}
		return a.PrintSeries(series, "activation")
	}
	return cmd
}

// registerSearch adds the flags of parameters to a command, and returns what reads them and the
// argument QUERY.
func registerSearch(cmd *cobra.Command, parameters []search.Parameter) func(*command.Target, []string) url.Values {
	f := command.RegisterParameters(cmd, parameters, func(name string) bool { return name == "namespace" || name == "q" })
	all := cmd.Flags().BoolP("all-namespaces", "A", false, "activations of all namespaces of the tenant")
	return func(t *command.Target, args []string) url.Values {
		values := f.Values()
		if len(args) == 1 {
			values.Set("q", args[0])
		}
		if !*all {
			values.Set("namespace", t.NamespaceName)
		}
		return values
	}
}
