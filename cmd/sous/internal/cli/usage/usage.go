// Package usage holds the commands about what tenants may use and what they use.
//
//	sous usage   usage.go, ai.go
//	sous price   ai.go      list, set, delete
//	sous budget  budget.go  list, get, set, delete
//	sous limits  limits.go  get, set
//	sous kv      kv.go      list, get, delete
package usage

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about limits, usage and cs.kv.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.usageCommand(), c.limitsCommand(), c.kvCommand(), c.priceCommand(), c.budgetCommand()}
}

func (a commands) usageCommand() *cobra.Command {
	var o client.UsageOptions
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what the tenant uses: each quota, and its functions by day", Args: cobra.NoArgs,
		Long: `Show what the tenant uses: each quota with its limit, and what its functions have used on
each day in UTC, by default on the last seven.`,
		Example: `  sous usage
  sous usage --from 2026-11-01 --to 2026-11-30 --by-function -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Usage(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.Print(found, usageText(&found))
		},
	}
	a.RegisterRemote(cmd.Flags())
	cmd.Flags().StringVar(&o.From, "from", "", "first day, such as 2026-11-19")
	cmd.Flags().StringVar(&o.To, "to", "", "last day (default today)")
	cmd.AddCommand(a.aiCommand())
	cmd.Flags().BoolVar(&o.ByFunction, "by-function", false, "show the days of each function")
	return cmd
}

// usageText returns the tables of a usage.
func usageText(u *quota.TenantUsage) string {
	quotas := make([][]string, len(u.Quotas))
	for i, q := range u.Quotas {
		quotas[i] = []string{string(q.Name), strconv.FormatInt(q.Used, 10), limitText(q.Limit), fmt.Sprintf("%.0f%%", 100*q.Fraction)}
	}
	text := command.Table([]string{"QUOTA", "USED", "LIMIT", "FRACTION"}, quotas)
	days := make([][]string, 0, len(u.Days)+len(u.ByName))
	for i := range u.Days {
		days = append(days, dayRow(&u.Days[i], "all"))
	}
	for i := range u.ByName {
		f := &u.ByName[i]
		days = append(days, dayRow(&f.UsageDay, f.Namespace+"/"+f.Function))
	}
	return text + "\n" + command.Table([]string{"DAY", "FUNCTION", "CALLS", "ERRORS", "CPU S", "GB S", "WALL S", "EGRESS BYTES"}, days)
}

func dayRow(d *quota.UsageDay, function string) []string {
	seconds := func(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
	return []string{
		d.Day, function, strconv.FormatInt(d.Calls, 10), strconv.FormatInt(d.Errors, 10),
		seconds(d.CPUSeconds), seconds(d.GBSeconds), seconds(d.WallSeconds), strconv.FormatInt(d.EgressBytes, 10),
	}
}

func limitText(n int64) string {
	if n < 0 {
		return "none"
	}
	return strconv.FormatInt(n, 10)
}
