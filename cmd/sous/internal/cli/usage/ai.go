package usage

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// aiCommand returns sous usage ai.
func (a commands) aiCommand() *cobra.Command {
	var o client.SpendingOptions
	asCSV, tag := false, ""
	cmd := &cobra.Command{
		Use: "ai", Short: "Show what jobs have spent on models", Args: cobra.NoArgs,
		Long: `Show what jobs have spent on models, by day in UTC and other groups, by default on the last
seven days. UNPRICED counts the entries without a cost for whose model there was no price.`,
		Example: `  sous usage ai
  sous usage ai --by model,day --queue agents --from 2026-11-01 --csv
  sous usage ai --by tag --tag customer`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			o.Tag, o.TagValue, _ = strings.Cut(tag, "=")
			report, err := t.Tenant.Spending(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asCSV {
				return csv.NewWriter(a.Stdout).WriteAll(reportTable(&report, true))
			}
			table := reportTable(&report, len(report.Groups) == 0)
			return a.Print(report, command.Table(table[0], table[1:]))
		},
	}
	a.RegisterRemote(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&o.From, "from", "", "first day, such as 2026-11-19")
	flags.StringVar(&o.To, "to", "", "last day (default today)")
	flags.StringSliceVar(&o.By, "by", nil, "groups: "+strings.Join(agent.Groups, ", ")+" (default day)")
	flags.StringVar(&o.Group.Namespace, "of-namespace", "", "only jobs of this namespace")
	flags.StringVar(&o.Queue, "queue", "", "only jobs of queues of this name")
	flags.StringVar(&o.Function, "function", "", "only jobs that run functions of this name")
	flags.StringVar(&o.Provider, "provider", "", "only this provider")
	flags.StringVar(&o.Model, "model", "", "only this model")
	flags.StringVar(&tag, "tag", "", "only jobs with this tag: NAME or NAME=VALUE")
	flags.BoolVar(&asCSV, "csv", false, "print a table in CSV")
	return cmd
}

// reportTable returns the groups of a report with a header: all columns, or those with a name.
func reportTable(report *agent.Report, all bool) [][]string {
	used := make([]bool, len(agent.Columns()))
	for i := range report.Groups {
		for k, name := range report.Groups[i].Names() {
			used[k] = used[k] || name != ""
		}
	}
	named := func(names []string) (row []string) {
		for i, name := range names {
			if all || used[i] {
				row = append(row, name)
			}
		}
		return row
	}
	header := append(named(agent.Columns()), "input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens", "cost_usd", "entries", "unpriced")
	if !all {
		for i, name := range header {
			header[i] = strings.ToUpper(strings.ReplaceAll(name, "_", " "))
		}
	}
	table := [][]string{header}
	for i := range report.Groups {
		g := &report.Groups[i]
		row := named(g.Names())
		for _, n := range []int64{g.InputTokens, g.OutputTokens, g.CacheCreationTokens, g.CacheReadTokens} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		table = append(table, append(row, g.CostUSD.String(), strconv.FormatInt(g.Entries, 10), strconv.FormatInt(g.Unpriced, 10)))
	}
	return table
}

// priceCommand returns sous price.
func (a commands) priceCommand() *cobra.Command {
	return a.RemoteGroup("price", "Prices of models, by which the costs of usage are computed", a.priceListCommand(), a.priceSetCommand(), a.priceDeleteCommand())
}

func (a commands) priceListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the prices, in dollars for a million tokens", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			prices, err := t.Tenant.Prices(cmd.Context())
			if err != nil {
				return err
			}
			return command.PrintList(a.App, prices, []string{"PROVIDER", "MODEL", "INPUT", "OUTPUT", "CACHE CREATION", "CACHE READ"}, priceRow)
		},
	}
}

// priceRow returns the cells of a price.
func priceRow(p agent.Price) []string {
	text := func(u *agent.USD) string {
		if u == nil {
			return p.InputUSD.String()
		}
		return u.String()
	}
	return []string{p.Provider, p.Model, p.InputUSD.String(), p.OutputUSD.String(), text(p.CacheCreationUSD), text(p.CacheReadUSD)}
}

func (a commands) priceSetCommand() *cobra.Command {
	var provider, input, output, creation, read string
	cmd := &cobra.Command{
		Use: "set MODEL", Short: "Set the price of a model, in dollars for a million tokens", Args: cobra.ExactArgs(1),
		Long: `Set the price of a model, in dollars for a million tokens. It applies to usage without a cost that
is reported from then on. Without --provider it is the price for every provider that has none of its
own. The prices of caches are that of input unless set.`,
		Example: `  sous price set gpt-5-mini --provider openai --input 0.25 --output 2 --cache-read 0.025`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			price := agent.Price{Provider: provider, Model: args[0]}
			for _, f := range []struct {
				flag, text string
				set        func(agent.USD)
			}{
				{"input", input, func(u agent.USD) { price.InputUSD = u }},
				{"output", output, func(u agent.USD) { price.OutputUSD = u }},
				{"cache-creation", creation, func(u agent.USD) { price.CacheCreationUSD = &u }},
				{"cache-read", read, func(u agent.USD) { price.CacheReadUSD = &u }},
			} {
				if !cmd.Flags().Changed(f.flag) {
					continue
				}
				amount, ok := agent.ParseUSD(f.text)
				if !ok {
					return fmt.Errorf("--%s %q: want dollars with at most 6 digits behind the point", f.flag, f.text)
				}
				f.set(amount)
			}
			made, err := t.Tenant.PutPrice(cmd.Context(), price)
			if err != nil {
				return err
			}
			return a.Print(made, command.Table([]string{"PROVIDER", "MODEL", "INPUT", "OUTPUT", "CACHE CREATION", "CACHE READ"}, [][]string{priceRow(made)}))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&provider, "provider", "", "the provider; left out, every provider without a price of its own")
	flags.StringVar(&input, "input", "", "dollars for a million tokens of input")
	flags.StringVar(&output, "output", "", "dollars for a million tokens of output")
	flags.StringVar(&creation, "cache-creation", "", "dollars for a million tokens that create a cache (default: input)")
	flags.StringVar(&read, "cache-read", "", "dollars for a million tokens that are read from a cache (default: input)")
	_ = cmd.MarkFlagRequired("input") // fails for an unknown flag only
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

func (a commands) priceDeleteCommand() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use: "delete MODEL", Short: "Delete the price of a model", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			return t.Tenant.DeletePrice(cmd.Context(), provider, args[0])
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "the provider of the price")
	return cmd
}
