package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) queueCommand() *cobra.Command {
	return a.RemoteGroup("queue", "Show, configure and empty job queues",
		a.queueListCommand(), a.queueGetCommand(), a.queueSetCommand(), a.queuePauseCommand(),
		a.queueStateCommand("resume", "End a pause and a drain", (*client.Queue).Resume),
		a.queueStateCommand("drain", "Refuse new jobs and finish the existing ones", (*client.Queue).Drain),
		a.queueTailCommand(), a.queueRedriveCommand(), a.queueClearCommand(), a.queueDeleteCommand())
}

// queueListCommand returns sous queue list. Its table omits the states of ended jobs that
// need no attention, completed and cancelled; sous queue get shows all.
func (a commands) queueListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's queues with their numbers of jobs", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.Queues, *limit, []string{"QUEUE", "STATUS", "PENDING", "ACTIVE", "SCHEDULED", "RETRYING", "WAITING", "HELD", "DEAD", "OLDEST"}, queueRow)
	}
	return cmd
}

func queueRow(q api.Queue) []string {
	row := []string{q.Queue, statusText(q.QueueConfig)}
	for _, state := range []api.JobState{api.JobPending, api.JobActive, api.JobScheduled, api.JobRetrying, api.JobWaiting, api.JobHeld, api.JobDead} {
		row = append(row, strconv.FormatInt(q.Depths[state], 10))
	}
	return append(row, command.DurationText((time.Duration(q.OldestPendingMS) * time.Millisecond).Round(time.Second)))
}

// statusText returns whether a queue hands out jobs: running, draining or paused. A queue that is paused and
// draining is paused: it hands out no jobs.
func statusText(c api.QueueConfig) string {
	switch {
	case c.Paused:
		return "paused"
	case c.Draining:
		return "draining"
	}
	return "running"
}

func (a commands) queueGetCommand() *cobra.Command {
	return a.queueStateCommand("get", "Show a queue's configuration and its numbers of jobs", (*client.Queue).Get)
}

// queueStateCommand returns a command that calls do on the queue that its argument names and
// prints the queue that do returns, after the change.
func (a commands) queueStateCommand(name, short string, do func(*client.Queue, context.Context) (client.QueueState, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " QUEUE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue, err := a.queueTarget(args[0])
			if err != nil {
				return err
			}
			return a.printQueue(do(queue, cmd.Context()))
		},
	}
}

func (a commands) printQueue(q client.QueueState, err error) error {
	if err != nil {
		return err
	}
	return a.Print(q.Queue, queueText(q.Queue))
}

// queueText returns a queue as a table. A limit of 0 is none.
func queueText(q api.Queue) string {
	most := func(n int64) string {
		if n == 0 {
			return "no limit"
		}
		return strconv.FormatInt(n, 10)
	}
	rate := "no limit"
	if q.RateLimit > 0 {
		rate = fmt.Sprintf("%s per %s", command.Plural(int(q.RateLimit), "job"), command.DurationText(time.Duration(q.RateWindowMS)*time.Millisecond))
	}
	kept := "as the tenant's"
	if q.RetentionMS > 0 {
		kept = command.DurationText(time.Duration(q.RetentionMS) * time.Millisecond)
	}
	rows := [][]string{
		{"STATUS", statusText(q.QueueConfig)},
		{"MAX CONCURRENCY", most(q.MaxConcurrency)},
		{"RATE LIMIT", rate},
		{"ENDED JOBS KEPT", kept},
		{"EVENTS", q.Events},
	}
	for _, state := range api.JobStates() {
		rows = append(rows, []string{strings.ToUpper(string(state)), strconv.FormatInt(q.Depths[state], 10)})
	}
	return command.Table([]string{"QUEUE", q.Namespace + "/" + q.Queue}, rows)
}

// queuePauseCommand returns sous queue pause. Leases that workers hold stay valid.
func (a commands) queuePauseCommand() *cobra.Command {
	return a.queueStateCommand("pause", "Hand out no jobs until the queue is resumed", func(q *client.Queue, ctx context.Context) (client.QueueState, error) {
		if _, err := q.Get(ctx); err != nil { // Configure would create a misspelt queue
			return client.QueueState{}, err
		}
		on := true
		return q.Configure(ctx, client.QueueChange{Paused: &on})
	})
}

// queueSetCommand returns sous queue set. It sends only the flags that are set: --rate-limit 0
// removes the limit, and without the flag the limit stays. It creates a queue that does not
// exist.
func (a commands) queueSetCommand() *cobra.Command {
	var concurrency, rate int64
	var window, retention time.Duration
	var events, provider string
	cmd := &cobra.Command{
		Use: "set QUEUE", Short: "Limit the active jobs of a queue and the jobs that start in a time window, and set how long ended jobs are kept and which events are recorded",
		Example: `  sous queue set emails --max-concurrency 20
  sous queue set emails --rate-limit 100 --rate-window 1m
  sous queue set emails --retention 24h
  sous queue set emails --events all
  sous queue set agents --provider best`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.Int64Var(&concurrency, "max-concurrency", 0, "largest number of active jobs (0: no limit)")
	flags.Int64Var(&rate, "rate-limit", 0, "largest number of jobs that start in a window (0: no limit)")
	flags.DurationVar(&window, "rate-window", 0, "length of the window of --rate-limit (default 1s)")
	flags.DurationVar(&retention, "retention", 0, "how long ended jobs are kept, from 1h to 8760h (0: as long as the tenant's others)")
	flags.StringVar(&events, "events", "", "which events of jobs are recorded: all, ends (completed, dead, cancelled) or off")
	flags.StringVar(&provider, "provider", "", "provider of models, or route, of jobs without a routing (\"\": none)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		queue, err := a.queueTarget(args[0])
		if err != nil {
			return err
		}
		var change client.QueueChange
		if flags.Changed("events") {
			change.Events = &events
		}
		if flags.Changed("provider") {
			change.Provider = &provider
		}
		if flags.Changed("max-concurrency") {
			change.MaxConcurrency = &concurrency
		}
		if flags.Changed("rate-limit") {
			change.RateLimit = &rate
		}
		if flags.Changed("rate-window") {
			ms := window.Milliseconds()
			change.RateWindowMS = &ms
		}
		if flags.Changed("retention") {
			ms := retention.Milliseconds()
			change.RetentionMS = &ms
		}
		if change == (client.QueueChange{}) {
			return fmt.Errorf("nothing to set: give --max-concurrency, --rate-limit, --rate-window, --retention, --events or --provider")
		}
		return a.printQueue(queue.Configure(cmd.Context(), change))
	}
	return cmd
}

// queueClearCommand returns sous queue clear. It removes the jobs in the states pending,
// scheduled, retrying, held and waiting. For jobs that depend on one of them, that one counts
// as cancelled.
func (a commands) queueClearCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "clear QUEUE", Short: "Remove the jobs that wait to run; active and ended ones stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue, err := a.queueTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Remove all waiting jobs of %s?", args[0])); err != nil {
				return err
			}
			var n int
			err = a.Working("clearing "+args[0], func() (err error) {
				n, err = queue.Clear(cmd.Context())
				return err
			})
			if err != nil {
				return err
			}
			return a.Print(map[string]int{"cleared": n}, fmt.Sprintf("%s: %s removed\n", args[0], command.Plural(n, "job")))
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}

func (a commands) queueDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete QUEUE", Short: "Delete a queue with all its jobs", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue, err := a.queueTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete queue %s with all its jobs?", args[0])); err != nil {
				return err
			}
			if err := a.Working("deleting "+args[0], func() error { return queue.Delete(cmd.Context()) }); err != nil {
				return err
			}
			a.Note("%s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}

// queueRedriveCommand returns sous queue redrive. Its flags restrict each other: a job must
// match all of them. Without flags it redrives every dead job of the queue, and does not ask:
// no job is lost.
func (a commands) queueRedriveCommand() *cobra.Command {
	var f client.Redrive
	var tag string
	var since time.Duration
	cmd := &cobra.Command{
		Use: "redrive QUEUE", Short: "Give the queue's dead jobs one more attempt: all of them, or some",
		Example: `  sous queue redrive emails --reason attempts --since 1h
  sous queue redrive emails --tag customer=7 --limit 100`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue, err := a.queueTarget(args[0])
			if err != nil {
				return err
			}
			_, f.IDs, err = a.idTarget(cmd.Context(), command.JobID, f.IDs...)
			if err != nil {
				return err
			}
			f.Tag, f.TagValue = splitTag(tag)
			if since > 0 {
				f.FromMS = time.Now().Add(-since).UnixMilli()
			}
			var n int
			err = a.Working("redriving "+args[0], func() (err error) {
				n, err = queue.Redrive(cmd.Context(), f)
				return err
			})
			if err != nil {
				return err
			}
			return a.Print(map[string]int{"redriven": n}, fmt.Sprintf("%s: one more attempt for %s\n", args[0], command.Plural(n, "job")))
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.IDs, "id", nil, "only these jobs")
	flags.StringVar(&f.Reason, "reason", "", "only jobs that are dead for this reason: attempts, fatal, crashed, expired, rejected, dependency, iterations, cost, iteration_timeout or budget")
	flags.StringVar(&tag, "tag", "", "only jobs with this tag: NAME or NAME=VALUE")
	flags.DurationVar(&since, "since", 0, "only jobs that died within this time before now, such as 1h")
	flags.IntVar(&f.Limit, "limit", 0, "largest number of jobs (0: all)")
	return cmd
}
