package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// bulkPoll is the time between two reads of an operation that is waited for.
const bulkPoll = 500 * time.Millisecond

// bulkCommand returns sous job bulk.
func (a commands) bulkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "bulk", Short: "Retry, cancel, move or delete all jobs of a search",
		Long: "Retry, cancel, move or delete all jobs of a search. The server runs the operation; replicas with the role mirror\n" +
			"work on it. At least one filter is required; only a namespace that is given as --namespace is one.",
		Example: `  sous job bulk retry --queue payments --state dead --error timeout
  sous job bulk move --queue mail --tag customer=c42 --target mail-slow --dry-run
  sous job bulk delete --state completed --ended-to-ms 1760000000000 --yes --wait`,
	}
	for operation, short := range map[search.BulkOperation]string{
		search.BulkRetry:  "Retry the dead and cancelled jobs of a search",
		search.BulkCancel: "Cancel the jobs of a search that have not ended",
		search.BulkMove:   "Move the waiting jobs of a search to another queue",
		search.BulkDelete: "Delete the jobs of a search that are not active",
	} {
		cmd.AddCommand(a.bulkCreateCommand(operation, short))
	}
	cmd.AddCommand(a.bulkListCommand(),
		a.bulkOneCommand("get", "Show a bulk operation with its progress", (*client.Tenant).Bulk),
		a.bulkOneCommand("stop", "End a bulk operation after the jobs in progress", (*client.Tenant).CancelBulk))
	return cmd
}

// bulkFlags are the flags of a bulk operation beside those of the search.
type bulkFlags struct {
	*searchFlags

	new               search.NewBulk
	dryRun, yes, wait bool
}

// bulkCreateCommand returns the command of one operation.
func (a commands) bulkCreateCommand(operation search.BulkOperation, short string) *cobra.Command {
	cmd := &cobra.Command{Use: string(operation) + " [QUERY]", Short: short, Args: cobra.MaximumNArgs(1)}
	f := bulkFlags{new: search.NewBulk{Operation: operation}}
	f.searchFlags = registerSearch(cmd, search.JobParameters(), func(parameter string) bool { return slices.Contains([]string{"sort", "order", "count"}, parameter) })
	flags := cmd.Flags()
	if operation == search.BulkMove {
		flags.StringVar(&f.new.Target, "target", "", "the queue to which the jobs are moved")
	}
	flags.Int64Var(&f.new.Limit, "max", 0, "end after so many changed jobs, the oldest ones (default: all)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only count the jobs and show the oldest")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&f.wait, "wait", false, "print the progress until the operation has ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		q, err := f.query(t, args)
		if err != nil {
			return err
		}
		f.new.Selection = q.Selection()
		if !cmd.Flags().Changed("namespace") {
			// The namespace of the profile is not a filter: without others, all its jobs would be selected.
			given := f.new
			given.Selection.Namespace = ""
			if err := given.Validate(); err != nil {
				return err
			}
		}
		return a.bulk(cmd.Context(), t, &f)
	}
	return cmd
}

// bulk counts the jobs, asks, and creates the operation.
func (a commands) bulk(ctx context.Context, t *command.Target, f *bulkFlags) error {
	if f.dryRun || !f.yes {
		preview, err := t.Tenant.PreviewBulk(ctx, f.new)
		if err != nil {
			return err
		}
		if f.dryRun {
			a.Note("%s", command.CountText(preview.Matched, "job"))
			return command.PrintList(a.App, preview.Sample, []string{"JOB", "QUEUE", "STATE", "CREATED", "ENDED", "ATTEMPT", "WORKER", "TAGS", "ERROR"}, searchRow)
		}
		if err := a.Confirm(false, fmt.Sprintf("%s. %s?", command.CountText(preview.Matched, "job"), f.question())); err != nil {
			return err
		}
	}
	// The client repeats the call under this key if it gets no answer.
	made, err := t.Tenant.CreateBulk(ctx, api.NewJobID(), f.new)
	if err != nil {
		return err
	}
	if f.wait {
		made, err = a.waitBulk(ctx, t, made)
		if err != nil {
			return err
		}
	}
	return a.Print(made, bulkText(made))
}

// question names the operation.
func (f *bulkFlags) question() string {
	switch f.new.Operation {
	case search.BulkMove:
		return "Move them to " + f.new.Target
	case search.BulkRetry:
		return "Retry them"
	case search.BulkCancel:
		return "Cancel them"
	}
	return "Delete them with their records"
}

// waitBulk prints the progress of an operation until it has ended.
func (a commands) waitBulk(ctx context.Context, t *command.Target, b search.Bulk) (search.Bulk, error) {
	for b.State == search.BulkRunning {
		a.Note("%d done, %d skipped, %d failed of %d", b.Done, b.Skipped, b.Failed, b.Matched.Value)
		if err := sleep.For(ctx, bulkPoll); err != nil {
			return b, err
		}
		var err error
		b, err = t.Tenant.Bulk(ctx, b.ID)
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// bulkText returns an operation as text.
func bulkText(b search.Bulk) string {
	text := fmt.Sprintf("%s %s is %s: %d done, %d skipped, %d failed\n", b.Operation, b.ID, b.State, b.Done, b.Skipped, b.Failed)
	if b.Error != "" {
		text += "  " + b.Error + "\n"
	}
	for _, e := range b.Errors {
		text += fmt.Sprintf("  %s: %s\n", e.JobID, e.Message)
	}
	return text
}

func (a commands) bulkListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List bulk operations, newest first", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		all, more, err := command.Collect(client.All(cmd.Context(), t.Tenant.Bulks, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		a.NoteMore(more)
		return command.PrintList(a.App, all, []string{"OPERATION", "ID", "STATE", "MATCHED", "DONE", "SKIPPED", "FAILED", "CREATED", "ENDED"}, func(b search.Bulk) []string {
			return []string{
				string(b.Operation), b.ID, string(b.State), fmt.Sprint(b.Matched.Value), fmt.Sprint(b.Done), fmt.Sprint(b.Skipped), fmt.Sprint(b.Failed),
				command.TimeText(b.CreatedAtMS), command.TimeText(b.EndedAtMS),
			}
		})
	}
	return cmd
}

// bulkOneCommand returns a command for one operation.
func (a commands) bulkOneCommand(name, short string, do func(*client.Tenant, context.Context, string) (search.Bulk, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			b, err := do(t.Tenant, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Print(b, bulkText(b))
		},
	}
}
