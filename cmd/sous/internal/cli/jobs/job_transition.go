package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// transition moves one job to another state and returns the job in that state. It fails with
// CodeJobNotFound or CodeJobState (CS_JOB_STATE_CONFLICT), which names the present state.
type transition func(ctx context.Context, t *client.Tenant, id string) (api.Job, error)

// transitionCommands returns the commands that change the state of jobs by their ids.
func (a commands) transitionCommands() []*cobra.Command {
	commands := []*cobra.Command{
		a.transitionCommand("retry", "Give dead or cancelled jobs one more attempt", (*client.Tenant).RetryJob),
		a.transitionCommand("cancel", "Cancel jobs that have not ended", (*client.Tenant).CancelJob),
		a.decideCommand("approve", "Let held jobs run", true),
		a.decideCommand("reject", "End held jobs as dead; runs that await the approval continue with the rejection", false),
	}
	return append(commands, a.jobHoldCommand(), a.jobMoveCommand(), a.jobDeleteCommand())
}

// transitionCommand returns a command that does the same to each of the jobs that its
// arguments name.
func (a commands) transitionCommand(name, short string, do func(*client.Tenant, context.Context, string) (api.Job, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID …", Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeJobs(cmd.Context(), args, func(ctx context.Context, t *client.Tenant, id string) (api.Job, error) {
				return do(t, ctx, id)
			})
		},
	}
}

// changeJobs calls do for each job and prints the jobs. It stops at the first error and then
// prints none: the jobs before that one are changed. Their order is that of the arguments.
func (a commands) changeJobs(ctx context.Context, texts []string, do transition) error {
	t, ids, err := a.idTarget(ctx, command.JobID, texts...)
	if err != nil {
		return err
	}
	var jobs []api.Job
	text := ""
	for _, id := range ids {
		job, err := do(ctx, t.Tenant, id)
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
		text += fmt.Sprintf("%s is %s in %s\n", job.ID, job.State, job.Queue)
	}
	return a.Print(command.List[api.Job]{Items: jobs}, text)
}

// decideCommand returns sous job approve or sous job reject.
func (a commands) decideCommand(name, short string, approved bool) *cobra.Command {
	comment := ""
	cmd := a.transitionCommand(name, short, func(t *client.Tenant, ctx context.Context, id string) (api.Job, error) {
		return t.DecideJob(ctx, id, approved, comment)
	})
	cmd.Flags().StringVar(&comment, "comment", "", "a comment for the runs that await the approval")
	return cmd
}

func (a commands) jobHoldCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "hold ID …", Short: "Hold waiting jobs until they are approved", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeJobs(cmd.Context(), args, func(ctx context.Context, t *client.Tenant, id string) (api.Job, error) {
				return t.HoldJob(ctx, id, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, shown to the user who approves or rejects them")
	return cmd
}

// jobMoveCommand returns sous job move, which takes one job only: its last argument is the
// queue.
func (a commands) jobMoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "move ID QUEUE", Short: "Move a waiting job to another queue of its namespace", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := api.ValidateQueue(args[1]); err != nil {
				return err
			}
			return a.changeJobs(cmd.Context(), args[:1], func(ctx context.Context, t *client.Tenant, id string) (api.Job, error) {
				return t.MoveJob(ctx, id, args[1])
			})
		},
	}
}

// jobDeleteCommand returns sous job delete. It asks once for all jobs, and stops at the first
// error, after it noted each job that is deleted.
func (a commands) jobDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete ID …", Short: "Delete jobs and their records; jobs that wait are cancelled first, active ones are refused", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, ids, err := a.idTarget(cmd.Context(), command.JobID, args...)
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Delete job %s?", ids[0])
			if len(ids) > 1 {
				question = fmt.Sprintf("Delete %d jobs?", len(ids))
			}
			if err := a.Confirm(yes, question); err != nil {
				return err
			}
			for _, id := range ids {
				if err := t.Tenant.DeleteJob(cmd.Context(), id); err != nil {
					return err
				}
				a.Note("%s deleted", id)
			}
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
