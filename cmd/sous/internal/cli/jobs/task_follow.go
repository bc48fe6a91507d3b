package jobs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// taskFollowCommand returns sous task follow.
func (a commands) taskFollowCommand() *cobra.Command {
	var kept bool
	cmd := &cobra.Command{
		Use: "follow TYPE [ID]", Short: "Print the changes of a task until it ends, or of all tasks of a type",
		Long: `Print the changes of a task until it ends, or of all tasks of a type until interrupted.
The exit code is 1 if the task failed or was cancelled. With --kept the changes of the last
7 days come first.`,
		Example: `  sous task follow email-send campaign-7
  sous task follow email-send --kept`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := api.ValidateTaskType(args[0]); err != nil {
				return err
			}
			id := ""
			if len(args) > 1 {
				id = args[1]
				if err := api.ValidateTaskID(id); err != nil {
					return err
				}
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			cursor := ""
			if kept {
				cursor, err = a.printKept(cmd.Context(), t, args[0], id)
				if err != nil {
					return command.Interrupted(cmd.Context(), err)
				}
			}
			if id == "" {
				a.Note("waiting for changes of tasks of type %s; Ctrl-C ends it", args[0])
				return command.Interrupted(cmd.Context(), t.Tenant.FollowTasks(cmd.Context(), args[0], cursor, a.printTask))
			}
			return a.followTask(cmd.Context(), t, args[0], id)
		},
	}
	cmd.Flags().BoolVar(&kept, "kept", false, "print the changes that are kept first")
	return cmd
}

// followTask prints the changes of a task until it ends. It fails if the task did not succeed.
func (a commands) followTask(ctx context.Context, t *command.Target, taskType, id string) error {
	var last api.Task
	err := t.Tenant.FollowTask(ctx, taskType, id, func(task api.Task) error {
		last = task
		return a.printTask(task)
	})
	if err != nil {
		return command.Interrupted(ctx, err)
	}
	switch last.State {
	case api.TaskFailed:
		return fmt.Errorf("task %s/%s failed: %s", taskType, id, last.Error)
	case api.TaskCancelled:
		return fmt.Errorf("task %s/%s was cancelled", taskType, id)
	}
	return nil
}

// printKept prints the changes that are kept, and returns the cursor behind them.
func (a commands) printKept(ctx context.Context, t *command.Target, taskType, id string) (cursor string, err error) {
	for {
		page, err := t.Tenant.TaskEvents(ctx, taskType, id, client.PageOptions{Cursor: cursor, Limit: api.MaxPageLimit})
		if err != nil {
			return "", err
		}
		for _, task := range page.Items {
			if err := a.printTask(task); err != nil {
				return "", err
			}
		}
		if page.NextCursor == nil || *page.NextCursor == cursor {
			return cursor, nil
		}
		cursor = *page.NextCursor
	}
}

// printTask prints the state of a task as one line.
func (a commands) printTask(t api.Task) error {
	text := fmt.Sprintf("%s %s/%s %s, step %s", command.TimeText(t.UpdatedAtMS), t.TaskType, t.TaskID, t.State, stepText(t))
	for _, part := range []struct{ name, value string }{{"worker", t.Worker}, {"result", t.ResultRef}, {"error", t.Error}} {
		if part.value != "" {
			text += ", " + part.name + " " + part.value
		}
	}
	return a.PrintLine(t, text)
}
