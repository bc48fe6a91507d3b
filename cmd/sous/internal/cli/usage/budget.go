package usage

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// budgetCommand returns sous budget.
func (a commands) budgetCommand() *cobra.Command {
	return a.RemoteGroup("budget", "What jobs may spend on models", a.budgetListCommand(), a.budgetGetCommand(), a.budgetSetCommand(), a.budgetDeleteCommand())
}

// budgetHeader returns the names of the cells of a budget.
func budgetHeader() []string {
	return []string{"NAME", "SCOPE", "TARGET", "DAILY", "PER JOB", "ON EXCEED", "SPENT", "EXCEEDED", "RESETS", "HELD JOBS"}
}

// budgetRow returns the cells of a budget.
func budgetRow(b budget.Budget) []string {
	amount := func(u *agent.USD) string {
		if u == nil {
			return "-"
		}
		return u.String()
	}
	target, exceeded := b.Target, "no"
	if target == "" {
		target = "-"
	}
	if b.Exceeded {
		exceeded = "yes"
	}
	return []string{
		b.Name, b.Scope, command.Printable(target), amount(b.DailyUSD), amount(b.PerJobUSD), b.OnExceed, b.SpentUSD.String(), exceeded,
		time.UnixMilli(b.ResetsAtMS).UTC().Format(time.RFC3339), strconv.FormatInt(b.HeldJobs, 10),
	}
}

func (a commands) budgetListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the budgets, with what was spent on the present day", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Budgets(cmd.Context())
			if err != nil {
				return err
			}
			return command.PrintList(a.App, found, budgetHeader(), budgetRow)
		},
	}
}

// printBudget prints one budget.
func (a commands) printBudget(b budget.Budget) error {
	return a.Print(b, command.Table(budgetHeader(), [][]string{budgetRow(b)}))
}

func (a commands) budgetGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a budget, with what was spent on the present day", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Budget(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printBudget(found)
		},
	}
}

func (a commands) budgetSetCommand() *cobra.Command {
	var s budget.Settings
	daily, job := "", ""
	revision := int64(0)
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Create a budget, or replace its settings", Args: cobra.ExactArgs(1),
		Long: `Create a budget, or replace its settings. It limits what the jobs of its scope report as spent on
models, in a day of its time zone and by each job. The target is a namespace; a queue or a function as
namespace/name; or a tag as name=value. The scope tenant has none.

When a limit is reached, jobs wait for the reset (hold), new ones are refused and running ones end
(reject), or there is only an event (alert).`,
		Example: `  sous budget set all --daily 50
  sous budget set agents --scope queue --target default/agents --daily 5 --per-job 0.5 --zone Europe/Berlin
  sous budget set c1 --scope tag --target customer=c1 --daily 1 --on-exceed reject`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			for _, f := range []struct {
				flag, text string
				amount     **agent.USD
			}{{"daily", daily, &s.DailyUSD}, {"per-job", job, &s.PerJobUSD}} {
				if !cmd.Flags().Changed(f.flag) {
					continue
				}
				amount, ok := agent.ParseUSD(f.text)
				if !ok {
					return fmt.Errorf("--%s %q: want dollars with at most 6 digits behind the point", f.flag, f.text)
				}
				*f.amount = &amount
			}
			made, err := t.Tenant.PutBudget(cmd.Context(), args[0], s, revision)
			if err != nil {
				return err
			}
			return a.printBudget(made)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Scope, "scope", budget.ScopeTenant, "which jobs count: tenant, namespace, queue, function or tag")
	flags.StringVar(&s.Target, "target", "", "the namespace, queue, function or tag")
	flags.StringVar(&daily, "daily", "", "dollars that all jobs of the scope may spend in a day")
	flags.StringVar(&job, "per-job", "", "dollars that each job of the scope may spend")
	flags.StringVar(&s.OnExceed, "on-exceed", budget.OnExceedHold, "what happens then: hold, reject or alert")
	flags.StringVar(&s.Zone, "zone", "UTC", "the IANA time zone at whose midnight a day begins")
	flags.Int64Var(&revision, "if-revision", 0, "change the budget only if it has this revision")
	return cmd
}

func (a commands) budgetDeleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete NAME", Short: "Delete a budget; the jobs that it holds are released",
		Noun: "budget %s", Done: "budget %s",
		Find: func(name string) (func(context.Context) error, error) {
			t, err := a.Target()
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return t.Tenant.DeleteBudget(ctx, name, 0) }, nil
		},
	})
}
