package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// policyCommand returns sous approval policy.
func (a commands) policyCommand() *cobra.Command {
	return command.Group("policy", "Which jobs wait for votes, and for whose", a.policySetCommand(), a.policyListCommand(), a.policyDeleteCommand())
}

// policyHeader returns the names of the cells of a policy.
func policyHeader() []string {
	return []string{"NAME", "JOBS", "VOTES", "APPROVERS", "EXPIRES AFTER", "ON EXPIRY", "ENABLED"}
}

// policyRow returns the cells of a policy.
func policyRow(p policy.Policy) []string {
	var jobs []string
	for _, m := range []struct{ name, value string }{
		{"namespace", p.Namespace}, {"queue", p.Match.Queue}, {"function", p.Match.Function}, {"tag", p.Match.Tag},
	} {
		if m.value != "" {
			jobs = append(jobs, m.name+" "+m.value)
		}
	}
	if p.Match.MinCostUSD != nil {
		jobs = append(jobs, "from $"+p.Match.MinCostUSD.String())
	}
	r := p.WithDefaults()
	approvers, expires, enabled := strings.Join(r.Approvers, ","), "never", "yes"
	if approvers == "" {
		approvers = "-"
	}
	if r.ExpiresAfterMS > 0 {
		expires = (time.Duration(r.ExpiresAfterMS) * time.Millisecond).String()
	}
	if r.Enabled != nil && !*r.Enabled {
		enabled = "no"
	}
	return []string{p.Name, strings.Join(jobs, ", "), votesOf(r.Mode, r.Count), approvers, expires, r.OnExpiry, enabled}
}

func (a commands) policyListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the approval policies", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.ApprovalPolicies(cmd.Context())
			if err != nil {
				return err
			}
			return command.PrintList(a.App, found, policyHeader(), policyRow)
		},
	}
}

func (a commands) policySetCommand() *cobra.Command {
	var s policy.Rules
	cost, expires, disabled := "", time.Duration(0), false
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Create an approval policy, or replace its settings", Args: cobra.ExactArgs(1),
		Long: `Create an approval policy, or replace its settings. It holds the jobs that match all of --queue, --function,
--tag and --min-cost that are set, of which at least one is.`,
		Example: `  sous approval policy set payments --queue payouts --approver role:finance --count 2 --expires 24h
  sous approval policy set costly --function research --min-cost 5`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cost != "" {
				amount, ok := agent.ParseUSD(cost)
				if !ok {
					return fmt.Errorf("--min-cost %q: want dollars with at most 6 digits behind the point", cost)
				}
				s.Match.MinCostUSD = &amount
			}
			if s.Count > 0 {
				s.Mode = approval.ModeCount
			}
			if disabled {
				enabled := false
				s.Enabled = &enabled
			}
			s.ExpiresAfterMS = expires.Milliseconds()
			t, err := a.Target()
			if err != nil {
				return err
			}
			made, err := t.Tenant.PutApprovalPolicy(cmd.Context(), args[0], s)
			if err != nil {
				return err
			}
			return a.Print(made, command.Table(policyHeader(), [][]string{policyRow(made)}))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Namespace, "of-namespace", "", "only jobs of this namespace (default all)")
	flags.StringVar(&s.Match.Queue, "queue", "", "the jobs of a queue")
	flags.StringVar(&s.Match.Function, "function", "", "the jobs that run a function")
	flags.StringVar(&s.Match.Tag, "tag", "", "the jobs with a tag: NAME or NAME=VALUE")
	flags.StringVar(&cost, "min-cost", "", "the jobs that have spent so many dollars, when they report it")
	flags.StringVar(&s.Mode, "mode", approval.ModeAny, "which votes approve: any one, or all of the approvers")
	flags.IntVar(&s.Count, "count", 0, "so many votes approve, in place of --mode")
	flags.IntVar(&s.Rejections, "rejections", 1, "so many votes reject")
	flags.StringSliceVar(&s.Approvers, "approver", nil, "roles and ids of keys that may vote (default every key that may decide)")
	flags.DurationVar(&expires, "expires", 0, "after how long an approval is decided without votes (0: never)")
	flags.StringVar(&s.OnExpiry, "on-expiry", approval.OnExpiryReject, "how: reject, approve or keep")
	flags.StringVar(&s.Message, "message", "", "what the approvers are asked")
	flags.BoolVar(&disabled, "disabled", false, "hold no further jobs")
	cmd.MarkFlagsMutuallyExclusive("mode", "count")
	return cmd
}

func (a commands) policyDeleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete NAME", Short: "Delete an approval policy; the approvals that it has asked for stay",
		Noun: "approval policy %s", Done: "approval policy %s",
		Find: func(name string) (func(context.Context) error, error) {
			t, err := a.Target()
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return t.Tenant.DeleteApprovalPolicy(ctx, name) }, nil
		},
	})
}
