package functions

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

const (
	// logRuns is how many of the latest activations fn logs shows at first.
	logRuns = 10
	// logPoll is how often a followed function is asked for new activations.
	logPoll = 500 * time.Millisecond
	// logLookBack is how far back new activations are looked for: a start is its
	// replica's clock, and is in the index a moment later.
	logLookBack = 10 * time.Second
	// logStreams bounds the activations that are followed at once.
	logStreams = 16
)

func (a commands) fnLogsCommand() *cobra.Command {
	var runs uint
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log lines of a function's latest activations",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			if _, err := fn.Get(cmd.Context()); err != nil {
				return err // a misspelt name would be waited for, for ever
			}
			tail := &logTail{app: a.App, target: t, seen: map[string]int64{},
				filter: client.ActivationFilter{Namespace: t.NamespaceName, Function: args[0]}}
			return tail.run(cmd.Context(), runs, follow)
		},
	}
	cmd.Flags().UintVar(&runs, "runs", logRuns, "how many of the latest activations to begin with")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with those to come, until interrupted")
	return cmd
}

// logTail prints the logs of one function's activations as they come.
type logTail struct {
	app    *command.App
	target *command.Target
	filter client.ActivationFilter
	seen   map[string]int64 // start_ms of what was taken on, within the look-back

	printing sync.Mutex
}

func (l *logTail) run(ctx context.Context, runs uint, follow bool) error {
	latest, err := l.latest(ctx, runs)
	if err != nil {
		return err
	}
	running := []string{}
	for _, act := range latest {
		if follow && !act.Status.Terminal() {
			running = append(running, act.ActivationID)
			continue
		}
		for line, err := range l.target.Tenant.LogLines(ctx, act.ActivationID) {
			if err != nil {
				return err
			}
			if err := l.print(act.ActivationID, line); err != nil {
				return err
			}
		}
	}
	if !follow {
		return nil
	}
	return l.follow(ctx, running)
}

// latest lists the runs latest activations, oldest first, and notes what is not
// to be taken for new later.
func (l *logTail) latest(ctx context.Context, runs uint) ([]api.Activation, error) {
	if _, err := l.fresh(ctx); err != nil || runs == 0 {
		return nil, err
	}
	all := l.filter
	all.FromMS = 0
	latest, _, err := command.Collect(client.All(ctx, activationsOf(l.target, all), client.PageOptions{}), runs)
	slices.Reverse(latest)
	return latest, err
}

// follow takes on what runs and each new activation, several at once, until ctx
// ends: an interrupt is how following ends, and no error.
func (l *logTail) follow(ctx context.Context, running []string) error {
	streams, inner := errgroup.WithContext(ctx)
	streams.SetLimit(logStreams)
	tick := time.NewTicker(logPoll)
	defer tick.Stop()
	err := func() error {
		for fresh := running; ; {
			for _, id := range fresh {
				streams.Go(func() error {
					return l.target.Tenant.FollowLogs(inner, id, func(line api.LogLine) error { return l.print(id, line) })
				})
			}
			select {
			case <-inner.Done():
				return nil // which of the streams failed, Wait says
			case <-tick.C:
			}
			var err error
			if fresh, err = l.fresh(inner); err != nil && inner.Err() == nil {
				return err
			}
		}
	}()
	if waited := streams.Wait(); err == nil {
		err = waited
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// fresh lists, oldest first, the latest activations that were not taken on
// before. It forgets those too old to be listed again.
func (l *logTail) fresh(ctx context.Context) ([]string, error) {
	l.filter.FromMS = time.Now().Add(-logLookBack).UnixMilli()
	maps.DeleteFunc(l.seen, func(_ string, startMS int64) bool { return startMS < l.filter.FromMS })
	var out []string
	for act, err := range client.All(ctx, activationsOf(l.target, l.filter), client.PageOptions{Limit: api.MaxPageLimit}) {
		if err != nil {
			return nil, err
		}
		if _, known := l.seen[act.ActivationID]; !known {
			l.seen[act.ActivationID] = act.StartMS
			out = append(out, act.ActivationID)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// print writes one line with the activation that it is from.
func (l *logTail) print(id string, line api.LogLine) error {
	l.printing.Lock()
	defer l.printing.Unlock()
	return l.app.PrintLine(struct {
		ActivationID string `json:"activation_id"`
		api.LogLine
	}{id, line}, shortID(id)+" "+logText(line))
}

// printLog writes one line of a known activation: NDJSON for scripts.
func (a commands) printLog(line api.LogLine) error {
	return a.PrintLine(line, logText(line))
}

// shortID is the end of an activation's id: its beginning is its time, which
// neighbours share.
func shortID(id string) string { return id[max(len(id)-8, 0):] }
