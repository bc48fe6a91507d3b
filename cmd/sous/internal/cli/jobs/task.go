package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) taskCommand() *cobra.Command {
	return a.RemoteGroup("task", "Create tasks, follow them, and work on them",
		a.taskCreateCommand(), a.taskGetCommand(), a.taskListCommand(), a.taskClaimCommand(), a.taskStepCommand(),
		a.taskCompleteCommand(), a.taskFailCommand(), a.taskCancelCommand(), a.taskFollowCommand())
}

// taskCommandOf returns a command about the task that its two arguments name. It prints the
// task that do returns.
func (a commands) taskCommandOf(use, short string, do func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := api.ValidateTaskType(args[0]); err != nil {
				return err
			}
			if err := api.ValidateTaskID(args[1]); err != nil {
				return err
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			task, err := do(cmd.Context(), t, args[0], args[1])
			if err != nil {
				return err
			}
			return a.Print(task, taskText(task))
		},
	}
}

// taskCreateCommand returns sous task create. It may be repeated: an equal task is not
// created twice, and a task with other values is CodeTaskExists.
func (a commands) taskCreateCommand() *cobra.Command {
	var n api.NewTask
	var payload string
	var timeout time.Duration
	cmd := a.taskCommandOf("create TYPE ID", "Create a task and announce it on its queue, in the command's namespace",
		func(ctx context.Context, t *command.Target, taskType, id string) (task api.Task, err error) {
			n.Payload, err = command.ReadJSONArg("payload", payload, a.Stdin, api.MaxTaskPayloadBytes)
			if err != nil {
				return task, err
			}
			n.Namespace, n.TimeoutMS = t.NamespaceName, timeout.Milliseconds()
			task, created, err := t.Tenant.CreateTask(ctx, taskType, id, n)
			if err == nil && !created {
				a.Note("the task exists already: nothing was created")
			}
			return task, err
		})
	cmd.Example = `  sous task create email-send campaign-7 --params-ref s3://mails/7.json --steps 3 --timeout 1m
  sous job list email-send`
	flags := cmd.Flags()
	flags.StringVar(&n.Queue, "queue", "", "the queue that announces the task (default: the type)")
	flags.StringVar(&n.ParamsRef, "params-ref", "", "where the task's input is stored, if it is large")
	flags.StringVar(&payload, "payload", "", "payload of the job that announces the task: JSON, @FILE, or - for stdin")
	flags.Int64Var(&n.StepCount, "steps", 0, "number of the task's steps (0: unknown)")
	flags.DurationVar(&timeout, "timeout", 0, "how long the worker may be silent before the task is stuck (default 5m)")
	return cmd
}

func (a commands) taskGetCommand() *cobra.Command {
	return a.taskCommandOf("get TYPE ID", "Show a task", func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error) {
		return t.Tenant.Task(ctx, taskType, id)
	})
}

// registerTaskWorker adds the required flag that names the reporting worker. The server
// refuses reports of a worker that does not hold the task.
func registerTaskWorker(cmd *cobra.Command, worker *string) {
	cmd.Flags().StringVar(worker, "worker", "", "the worker that reports")
	_ = cmd.MarkFlagRequired("worker") // the flag exists: the line above adds it
}

// registerTaskTimeout adds the flag that renews the time until the task is stuck. 0 leaves
// the timeout of the task.
func registerTaskTimeout(cmd *cobra.Command, timeout *time.Duration) {
	cmd.Flags().DurationVar(timeout, "timeout", 0, "how long the worker may be silent from now on (default: the task's timeout)")
}

func (a commands) taskClaimCommand() *cobra.Command {
	var c api.TaskClaim
	var timeout time.Duration
	cmd := a.taskCommandOf("claim TYPE ID", "Claim a pending task", func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error) {
		c.TimeoutMS = timeout.Milliseconds()
		return t.Tenant.ClaimTask(ctx, taskType, id, c)
	})
	registerTaskWorker(cmd, &c.Worker)
	registerTaskTimeout(cmd, &timeout)
	return cmd
}

func (a commands) taskStepCommand() *cobra.Command {
	var s api.TaskStep
	var timeout time.Duration
	cmd := a.taskCommandOf("step TYPE ID", "Report the progress of a task", func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error) {
		s.TimeoutMS = timeout.Milliseconds()
		return t.Tenant.StepTask(ctx, taskType, id, s)
	})
	registerTaskWorker(cmd, &s.Worker)
	registerTaskTimeout(cmd, &timeout)
	cmd.Flags().Int64Var(&s.Step, "step", 0, "number of the step; to repeat the current one only renews the timeout")
	cmd.Flags().Int64Var(&s.StepCount, "steps", 0, "number of the task's steps (0: unchanged)")
	_ = cmd.MarkFlagRequired("step") // the flag exists: see above
	return cmd
}

func (a commands) taskCompleteCommand() *cobra.Command {
	var c api.TaskCompletion
	cmd := a.taskCommandOf("complete TYPE ID", "End a task that is done", func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error) {
		return t.Tenant.CompleteTask(ctx, taskType, id, c)
	})
	registerTaskWorker(cmd, &c.Worker)
	cmd.Flags().StringVar(&c.ResultRef, "result-ref", "", "where the task's result is stored")
	return cmd
}

func (a commands) taskFailCommand() *cobra.Command {
	var f api.TaskFailure
	cmd := a.taskCommandOf("fail TYPE ID", "End a task that cannot be done", func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error) {
		return t.Tenant.FailTask(ctx, taskType, id, f)
	})
	registerTaskWorker(cmd, &f.Worker)
	cmd.Flags().StringVar(&f.Error, "error", "", "what went wrong")
	_ = cmd.MarkFlagRequired("error") // the flag exists: see above
	return cmd
}

func (a commands) taskCancelCommand() *cobra.Command {
	return a.taskCommandOf("cancel TYPE ID", "Cancel a task that has not ended", func(ctx context.Context, t *command.Target, taskType, id string) (api.Task, error) {
		return t.Tenant.CancelTask(ctx, taskType, id)
	})
}

// taskListCommand returns sous task list, which lists the tasks of all namespaces of the
// tenant. AGAIN is the number of times that the task was announced again because its worker
// stopped reporting.
func (a commands) taskListCommand() *cobra.Command {
	var filter client.TaskFilter
	cmd := &cobra.Command{
		Use: "list", Short: "List the tenant's tasks that have not ended, longest unchanged first", Args: cobra.NoArgs,
	}
	limit := command.RegisterLimit(cmd)
	cmd.Flags().StringVar(&filter.Type, "type", "", "only tasks of this type")
	cmd.Flags().BoolVar(&filter.Stuck, "stuck", false, "only tasks whose worker has not reported in time")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if filter.Type != "" {
			if err := api.ValidateTaskType(filter.Type); err != nil {
				return err
			}
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Task], error) {
			return t.Tenant.Tasks(ctx, filter, o)
		}
		return command.PrintPages(cmd.Context(), a.App, list, *limit, []string{"TASK", "STATE", "WORKER", "STEP", "CHANGED", "TIMES OUT", "AGAIN"}, taskRow)
	}
	return cmd
}

// taskRow returns the cells of a task in a list; taskText uses them by their positions.
func taskRow(t api.Task) []string {
	state := string(t.State)
	if t.Stuck {
		state += " (stuck)"
	}
	return []string{t.TaskType + "/" + t.TaskID, state, command.Mark(t.Worker != "", t.Worker), stepText(t), command.TimeText(t.UpdatedAtMS),
		command.TimeText(t.TimeoutAtMS), strconv.FormatInt(t.Republished, 10)}
}

// stepText returns the progress of a task. A StepCount of 0 is unknown.
func stepText(t api.Task) string {
	if t.StepCount > 0 {
		return fmt.Sprintf("%d of %d", t.CurrentStep, t.StepCount)
	}
	return strconv.FormatInt(t.CurrentStep, 10)
}

// taskText returns a task as a table without the fields that it does not have.
func taskText(t api.Task) string {
	cells := taskRow(t)
	rows := [][]string{
		{"STATE", cells[1]}, {"STEP", cells[3]}, {"QUEUE", t.Namespace + "/" + t.Queue}, {"JOB", t.JobID},
		{"CREATED", command.TimeText(t.CreatedAtMS)}, {"CHANGED", cells[4]},
	}
	for _, row := range [][]string{
		{"WORKER", t.Worker}, {"TIMES OUT", cells[5]}, {"PARAMS", t.ParamsRef}, {"RESULT", t.ResultRef}, {"ERROR", t.Error},
	} {
		if row[1] != "" && row[1] != "-" {
			rows = append(rows, row)
		}
	}
	if t.Republished > 0 {
		rows = append(rows, []string{"AGAIN", cells[6]})
	}
	return command.Table([]string{"TASK", cells[0]}, rows)
}
