package jobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// triggerCommand returns sous trigger.
func (a commands) triggerCommand() *cobra.Command {
	return a.RemoteGroup("trigger", "Let the jobs of queues invoke functions",
		a.triggerListCommand(), a.triggerGetCommand(), a.triggerSetCommand(),
		a.triggerEnableCommand("enable", "Let the jobs of a queue invoke its function again", true),
		a.triggerEnableCommand("disable", "Let the jobs of a queue wait", false),
		a.triggerDeleteCommand())
}

// triggerTarget returns the trigger of the queue that a command names.
func (a commands) triggerTarget(queue string) (*client.Trigger, error) {
	if err := api.ValidateQueue(queue); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Namespace.Trigger(queue), nil
}

func (a commands) triggerListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's queue triggers", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.Triggers, *limit, []string{"QUEUE", "FUNCTION", "BATCH SIZE", "WINDOW", "CONCURRENCY", "STATE"}, triggerRow)
	}
	return cmd
}

// triggerRow returns the cells of a trigger in a list.
func triggerRow(t trigger.QueueTrigger) []string {
	concurrency, window, state := "any", "none", "enabled"
	if t.Concurrency > 0 {
		concurrency = strconv.Itoa(t.Concurrency)
	}
	if t.WindowMS > 0 {
		window = strconv.FormatInt(t.WindowMS, 10) + " ms"
	}
	if !t.Enabled {
		state = "disabled"
	}
	return []string{t.Queue, t.Function + "@" + t.Ref().String(), strconv.Itoa(t.BatchSize), window, concurrency, state}
}

// printTrigger prints the result of a call of the client, whose error it returns.
func (a commands) printTrigger(t trigger.QueueTrigger, err error) error {
	if err != nil {
		return err
	}
	row := triggerRow(t)
	return a.Print(t, command.Table([]string{"QUEUE", t.Queue}, [][]string{
		{"FUNCTION", row[1]}, {"BATCH SIZE", row[2]}, {"WINDOW", row[3]}, {"CONCURRENCY", row[4]}, {"STATE", row[5]},
		{"REVISION", strconv.FormatInt(t.Revision, 10)},
	}))
}

func (a commands) triggerGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get QUEUE", Short: "Show the trigger of a queue", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.triggerTarget(args[0])
			if err != nil {
				return err
			}
			return a.printTrigger(t.Get(cmd.Context()))
		},
	}
}

// triggerSetCommand returns sous trigger set. A flag that is not given keeps the value of an
// existing trigger.
func (a commands) triggerSetCommand() *cobra.Command {
	var n trigger.NewQueueTrigger
	cmd := &cobra.Command{
		Use: "set QUEUE FUNCTION", Short: "Let the jobs of a queue invoke a function",
		Long: "Lets the jobs of a queue invoke a function: the method queue of an object gets batches,\n" +
			"any other function one job at a time. The values of an existing trigger are kept unless\ntheir flags are given.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.triggerTarget(args[0])
			if err != nil {
				return err
			}
			return a.printTrigger(setTrigger(cmd, t, args[1], n))
		},
	}
	f := cmd.Flags()
	f.StringVar(&n.Alias, "alias", "", "alias of the function (default "+api.DefaultAlias+")")
	f.IntVar(&n.BatchSize, "batch-size", 0, fmt.Sprintf("largest number of jobs of an activation (default %d)", trigger.DefaultBatchSize))
	f.Int64Var(&n.WindowMS, "window-ms", 0, "how long a batch that is not full waits for more jobs")
	f.IntVar(&n.Concurrency, "concurrency", 0, "largest number of activations at the same time; 0 leaves it to the function")
	return cmd
}

// setTrigger replaces the trigger by one with the values that flags of cmd gave to n, and those
// of the existing trigger.
func setTrigger(cmd *cobra.Command, t *client.Trigger, function string, n trigger.NewQueueTrigger) (trigger.QueueTrigger, error) {
	now, err := t.Get(cmd.Context())
	if err != nil && api.ErrorCode(err) != api.CodeTriggerNotFound {
		return now, err
	}
	n.Function = function
	if err != nil {
		return t.Put(cmd.Context(), n, 0)
	}
	given := cmd.Flags().Changed
	n.Enabled = &now.Enabled
	if !given("alias") {
		n.Alias, n.Version = now.Alias, now.Version
	}
	if !given("batch-size") {
		n.BatchSize = now.BatchSize
	}
	if !given("window-ms") {
		n.WindowMS = now.WindowMS
	}
	if !given("concurrency") {
		n.Concurrency = now.Concurrency
	}
	return t.Put(cmd.Context(), n, now.Revision)
}

// triggerEnableCommand returns enable (on) or disable.
func (a commands) triggerEnableCommand(name, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " QUEUE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.triggerTarget(args[0])
			if err != nil {
				return err
			}
			return a.printTrigger(enableTrigger(cmd.Context(), t, on))
		},
	}
}

func enableTrigger(ctx context.Context, t *client.Trigger, on bool) (trigger.QueueTrigger, error) {
	now, err := t.Get(ctx)
	if err != nil {
		return now, err
	}
	return t.Put(ctx, trigger.NewQueueTrigger{
		Function: now.Function, Alias: now.Alias, Version: now.Version,
		BatchSize: now.BatchSize, WindowMS: now.WindowMS, Concurrency: now.Concurrency, Enabled: &on,
	}, now.Revision)
}

func (a commands) triggerDeleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete QUEUE", Short: "Delete the trigger of a queue; its jobs wait",
		Noun: "the trigger of queue %s", Done: "the trigger of %s",
		Find: func(queue string) (func(context.Context) error, error) {
			t, err := a.triggerTarget(queue)
			return func(ctx context.Context) error { return t.Delete(ctx, 0) }, err
		},
	})
}
