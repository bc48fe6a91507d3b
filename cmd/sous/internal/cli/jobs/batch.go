package jobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) batchCommand() *cobra.Command {
	return a.RemoteGroup("batch", "Groups of jobs with a callback job after the last one",
		a.batchCreateCommand(),
		a.batchListCommand(),
		a.batchDeleteCommand(),
		a.batchStateCommand("get", "Show a batch with its counts", (*client.Namespace).Batch),
		a.batchStateCommand("seal", "Close a batch to further jobs: its callback is enqueued when all of them have ended", (*client.Namespace).SealBatch))
}

// batchCreateCommand returns sous batch create. The batch is open: sous job enqueue --batch
// adds jobs to it until it is sealed, and only then can it end.
func (a commands) batchCreateCommand() *cobra.Command {
	var queue, payload, options string
	cmd := &cobra.Command{
		Use: "create", Short: "Create a batch and print its id",
		Example: `  sous batch create --callback-queue reports --callback-payload '{"day": "monday"}'
  sous job enqueue emails --batch ID
  sous batch seal ID`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			callback, err := a.callback(queue, payload, options)
			if err != nil {
				return err
			}
			batch, err := t.Namespace.CreateBatch(cmd.Context(), callback)
			if err != nil {
				return err
			}
			return a.Print(batch, batch.ID+"\n")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&queue, "callback-queue", "", "the queue of the callback job, enqueued when the batch is done (default: no callback)")
	flags.StringVar(&payload, "callback-payload", "", "payload of the callback job: JSON, @FILE, or - for stdin (default null)")
	flags.StringVar(&options, "callback-options", "", "further options of the callback job, as JSON or @FILE")
	return cmd
}

// callback returns the callback job that the flags describe, nil if they name no queue. It
// fails for a payload or options without a queue, and for an option that does not exist.
func (a commands) callback(queue, payload, options string) (*api.BatchCallback, error) {
	if queue == "" {
		if payload != "" || options != "" {
			return nil, fmt.Errorf("--callback-payload and --callback-options need --callback-queue")
		}
		return nil, nil //nolint:nilnil // documented
	}
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	callback := &api.BatchCallback{Queue: queue}
	raw, err := command.ReadJSONArg("callback-options", options, a.Stdin, api.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	if raw != nil {
		if err := command.DecodeStrict("--callback-options", raw, &callback.JobOptions); err != nil {
			return nil, err
		}
	}
	callback.Payload, err = command.ReadJSONArg("callback-payload", payload, a.Stdin, api.MaxJobPayloadBytes)
	return callback, err
}

// batchStateCommand returns a command that calls do with the id that its argument names and
// prints the batch that do returns.
func (a commands) batchStateCommand(name, short string, do func(*client.Namespace, context.Context, string) (api.Batch, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, ids, err := a.idTarget(cmd.Context(), command.BatchID, args[0])
			if err != nil {
				return err
			}
			batch, err := do(t.Namespace, cmd.Context(), ids[0])
			if err != nil {
				return err
			}
			return a.Print(batch, batchText(batch))
		},
	}
}

// batchListCommand returns sous batch list.
func (a commands) batchListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the batches of the namespace, newest first", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.Batches, *limit, []string{"BATCH", "CREATED", "SEALED", "JOBS", "PENDING", "SUCCEEDED", "FAILED", "EXPIRES"}, func(b api.Batch) []string {
			row := []string{b.ID, command.TimeText(b.CreatedAtMS), command.Mark(b.Sealed, "yes")}
			for _, n := range []int64{b.Total, b.Pending, b.Succeeded, b.Failed} {
				row = append(row, strconv.FormatInt(n, 10))
			}
			return append(row, command.TimeText(b.ExpiresAtMS))
		})
	}
	return cmd
}

// batchDeleteCommand returns sous batch delete.
func (a commands) batchDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a batch: its jobs stay, its callback is not enqueued", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, ids, err := a.idTarget(cmd.Context(), command.BatchID, args[0])
			if err != nil {
				return err
			}
			if err := t.Namespace.DeleteBatch(cmd.Context(), ids[0]); err != nil {
				return err
			}
			a.Note("%s deleted", ids[0])
			return nil
		},
	}
}

// batchText returns a batch as a table. PENDING counts the jobs that have not ended, of any
// state.
func batchText(b api.Batch) string {
	rows := [][]string{
		{"NAMESPACE", b.Namespace},
		{"CREATED", command.TimeText(b.CreatedAtMS)},
		{"SEALED", command.Mark(b.Sealed, "yes")},
		{"JOBS", strconv.FormatInt(b.Total, 10)},
		{"PENDING", strconv.FormatInt(b.Pending, 10)},
		{"SUCCEEDED", strconv.FormatInt(b.Succeeded, 10)},
		{"FAILED", strconv.FormatInt(b.Failed, 10)},
	}
	if b.ExpiresAtMS > 0 {
		rows = append(rows, []string{"EXPIRES", command.TimeText(b.ExpiresAtMS)})
	}
	if b.Callback != nil {
		rows = append(rows, []string{"CALLBACK", b.Callback.Queue + " " + b.CallbackID})
	}
	return command.Table([]string{"BATCH", b.ID}, rows)
}
