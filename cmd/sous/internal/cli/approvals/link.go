package approvals

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) linkCommand() *cobra.Command {
	n, length := approval.NewVoteLink{}, approval.DefaultLinkMS*time.Millisecond
	cmd := &cobra.Command{
		Use: "link JOB --for NAME", Short: "Make a link by which somebody without a key votes once", Args: cobra.ExactArgs(1),
		Long: `Make a link by which somebody without a key votes once, and print it: it is not shown again. The vote
is that of the key that makes the link. The page behind it shows the payload of the job.`,
		Example: "  sous approval link 0198c0de-0000-7000-8000-000000000000 --for ada@example.com --expires 72h",
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			n.ExpiresInMS = length.Milliseconds()
			l, err := t.Tenant.MakeLink(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			return a.Print(l, t.Client.URL()+l.Path+"\n")
		},
	}
	cmd.Flags().StringVar(&n.For, "for", "", "for whom it is, such as an address: the vote names it")
	cmd.Flags().DurationVar(&length, "expires", length, "how long it can be used, at most 720h")
	_ = cmd.MarkFlagRequired("for") // it exists
	return cmd
}

func (a commands) linksCommand() *cobra.Command {
	return &cobra.Command{
		Use: "links", Short: "List the links for votes that have not ended", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Links(cmd.Context())
			if err != nil {
				return err
			}
			rows := make([][]string, len(found))
			for i, l := range found {
				rows[i] = []string{l.ID, l.JobID, command.Printable(l.For), l.CreatedBy, moment(l.UntilMS)}
			}
			return a.Print(found, command.Table([]string{"LINK", "JOB", "FOR", "BY", "UNTIL"}, rows))
		},
	}
}

func (a commands) unlinkCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "unlink LINK", Short: "End a link for a vote", Noun: "link %s", Done: "link %s",
		Find: func(id string) (func(context.Context) error, error) {
			t, err := a.Target()
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return t.Tenant.EndLink(ctx, id) }, nil
		},
	})
}
