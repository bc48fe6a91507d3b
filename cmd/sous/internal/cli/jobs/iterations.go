package jobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// jobIterationsCommand returns sous job iterations.
func (a commands) jobIterationsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "iterations ID", Short: "List the iterations of a job with agent, oldest first", Args: cobra.ExactArgs(1),
		Long: `List the iterations of a job with agent, oldest first, each with what it has spent on models.
With -o json, also their checkpoints, traces and results.`,
	}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, ids, err := a.idTarget(cmd.Context(), command.JobID, args[0])
		if err != nil {
			return err
		}
		list := func(ctx context.Context, o client.PageOptions) (api.Page[agent.Iteration], error) {
			return t.Tenant.Iterations(ctx, ids[0], o)
		}
		all, more, err := command.Collect(client.All(cmd.Context(), list, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		a.NoteMore(more)
		return command.PrintList(a.App, all, []string{"ITERATION", "STATUS", "ATTEMPT", "STARTED", "ENDED", "WORKER", "MODEL", "IN", "OUT", "USD", "REASON"}, iterationRow)
	}
	return cmd
}

// iterationRow returns the cells of an iteration.
func iterationRow(it agent.Iteration) []string {
	return []string{
		strconv.FormatInt(it.Iteration, 10), it.Status, strconv.Itoa(it.Attempt), command.TimeText(it.StartedAtMS), command.TimeText(it.EndedAtMS), it.WorkerID,
		it.Model, strconv.FormatInt(it.InputTokens, 10), strconv.FormatInt(it.OutputTokens, 10), it.CostUSD.String(), it.HoldReason,
	}
}

// spentText returns sums in a line.
func spentText(s agent.Sums) string {
	return fmt.Sprintf("%s USD, %d tokens in, %d out", s.CostUSD, s.InputTokens, s.OutputTokens)
}
