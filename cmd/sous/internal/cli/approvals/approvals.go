// Package approvals holds the commands about approvals of held jobs: sous approval list, get, approve,
// reject, policy, delegate, delegations, undelegate, link, links and unlink.
package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about approvals.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.RemoteGroup("approval", "Held jobs that wait for people",
		c.listCommand(), c.getCommand(), c.voteCommand(true), c.voteCommand(false), c.policyCommand(),
		c.delegateCommand(), c.delegationsCommand(), c.undelegateCommand(), c.linkCommand(), c.linksCommand(), c.unlinkCommand())}
}

// header returns the names of the cells of an approval.
func header() []string {
	return []string{"JOB", "STATE", "QUEUE", "POLICY", "VOTES", "SINCE", "EXPIRES", "MESSAGE"}
}

// row returns the cells of an approval.
func row(i approval.Item) []string {
	return []string{
		i.ID, string(i.State), i.Namespace + "/" + i.Queue, cmp.Or(i.Policy, "-"), fmt.Sprintf("%d of %d", i.Approving(), i.Required),
		moment(i.CreatedAtMS), moment(i.ExpiresAtMS), command.Printable(i.Message),
	}
}

// moment returns a time, "-" for none.
func moment(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func (a commands) listCommand() *cobra.Command {
	var l client.ApprovalList
	limit := uint(0)
	cmd := &cobra.Command{
		Use: "list", Short: "List approvals: the pending ones oldest first, others by their decision", Args: cobra.NoArgs,
		Example: `  sous approval list --mine
  sous approval list --state rejected --queue payouts`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			list := func(ctx context.Context, o client.PageOptions) (api.Page[approval.Item], error) {
				l.PageOptions = o
				return t.Tenant.Approvals(ctx, l)
			}
			return command.PrintPages(cmd.Context(), a.App, list, limit, header(), row)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&l.State, "state", string(approval.Pending), "pending, approved, rejected or expired")
	flags.StringVar(&l.Queue, "queue", "", "only jobs of this queue")
	flags.BoolVar(&l.Mine, "mine", false, "only those on which the key may vote, and has not")
	flags.UintVar(&limit, "limit", 0, "largest number of approvals (0: all)")
	return cmd
}

// print prints one approval, with its votes.
func (a commands) print(i *approval.Item) error {
	text := command.Table(header(), [][]string{row(*i)})
	if len(i.Payload) > 0 {
		text += "payload " + command.Printable(string(i.Payload)) + "\n"
	}
	for _, v := range i.Votes {
		text += fmt.Sprintf("%s by %s at %s", v.Decision, command.Printable(cmp.Or(v.Name, v.Key)), moment(v.AtMS))
		if v.Link != "" {
			text += ", by the link for " + command.Printable(v.Link)
		}
		if v.OnBehalfOf != "" {
			text += ", on behalf of " + command.Printable(v.OnBehalfOf)
		}
		if v.Comment != "" {
			text += ": " + command.Printable(v.Comment)
		}
		text += "\n"
	}
	return a.Print(i, text)
}

func (a commands) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get JOB", Short: "Show an approval, with the payload of its job and its votes", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			item, err := t.Tenant.Approval(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(&item)
		},
	}
}

func (a commands) voteCommand(approve bool) *cobra.Command {
	use, short := "reject JOB", "Vote against a held job"
	if approve {
		use, short = "approve JOB", "Vote for a held job"
	}
	v := client.Vote{Approve: approve}
	payload, patch := "", ""
	cmd := &cobra.Command{
		Use: use, Short: short + "; a key has one vote", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, f := range []struct {
				name, text string
				to         *json.RawMessage
			}{{"payload", payload, &v.Payload}, {"patch", patch, &v.Patch}} {
				if f.text != "" && !json.Valid([]byte(f.text)) {
					return fmt.Errorf("--%s: the value is no JSON", f.name)
				}
				*f.to = json.RawMessage(f.text)
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			item, err := t.Tenant.Vote(cmd.Context(), args[0], v)
			if err != nil {
				return err
			}
			return a.print(&item)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&v.Comment, "comment", "", "why, at most 1,024 bytes")
	if approve {
		flags.StringVar(&payload, "payload", "", "JSON that replaces the payload of the job")
		flags.StringVar(&patch, "patch", "", "JSON that changes the payload, as RFC 7396 says")
		cmd.MarkFlagsMutuallyExclusive("payload", "patch")
	}
	return cmd
}

func (a commands) delegateCommand() *cobra.Command {
	from, length := "", 24*time.Hour
	cmd := &cobra.Command{
		Use: "delegate KEY", Short: "Let another key vote in the place of this key, or of a role", Args: cobra.ExactArgs(1),
		Example: `  sous approval delegate key_01k0 --for 168h
  sous approval delegate key_01k0 --from role:finance`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			d, err := t.Tenant.Delegate(cmd.Context(), from, args[0], time.Now().Add(length).UnixMilli())
			if err != nil {
				return err
			}
			return a.Print(d, command.Table(delegationHeader(), [][]string{{d.ID, d.From, d.To, moment(d.UntilMS)}}))
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the id of a key, or a role (default this key)")
	cmd.Flags().DurationVar(&length, "for", length, "how long, at most 2160h")
	return cmd
}

func delegationHeader() []string { return []string{"DELEGATION", "FROM", "TO", "UNTIL"} }

func (a commands) delegationsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delegations", Short: "List the delegations of votes that have not ended", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Delegations(cmd.Context())
			if err != nil {
				return err
			}
			rows := make([][]string, len(found))
			for i, d := range found {
				rows[i] = []string{d.ID, d.From, d.To, moment(d.UntilMS)}
			}
			return a.Print(found, command.Table(delegationHeader(), rows))
		},
	}
}

func (a commands) undelegateCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "undelegate DELEGATION", Short: "End a delegation", Noun: "delegation %s", Done: "delegation %s",
		Find: func(id string) (func(context.Context) error, error) {
			t, err := a.Target()
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return t.Tenant.EndDelegation(ctx, id) }, nil
		},
	})
}

// votesOf describes which votes a policy needs.
func votesOf(mode string, count int) string {
	if mode == approval.ModeCount {
		return strconv.Itoa(count)
	}
	return mode
}
