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
	// logRuns is the default number of activations whose lines fn logs prints first.
	logRuns = 10
	// logPoll is the time between two polls for new activations under --follow.
	logPoll = 500 * time.Millisecond
	// logLookBack is the age up to which an activation may appear in the index for the
	// first time: replicas' clocks differ, and the index is written after the start.
	logLookBack = 10 * time.Second
	// logStreams bounds the activations that are followed at the same time.
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
				return err // a misspelt name would be followed for ever
			}
			tail := &logTail{app: a.App, target: t, seen: map[string]int64{},
				filter: client.ActivationFilter{Namespace: t.NamespaceName, Function: args[0]}}
			return tail.run(cmd.Context(), runs, follow)
		},
	}
	cmd.Flags().UintVar(&runs, "runs", logRuns, "number of the latest activations to start with")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print the lines of new activations too, until interrupted")
	return cmd
}

// logTail prints the logs of one function's activations as they come. There is no event stream
// of a function, so it lists the latest activations every logPoll, and follows the stream of
// each new one. Lines of different activations are mixed; those of one are in order.
type logTail struct {
	app    *command.App
	target *command.Target
	filter client.ActivationFilter
	seen   map[string]int64 // start_ms of the activations printed or followed, within logLookBack

	printing sync.Mutex
}

// run prints the lines of the runs latest activations, oldest first, and with follow those of
// later ones. With follow an activation that still runs is followed, not printed in its place.
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

// latest returns the runs latest activations, oldest first. It marks every activation of
// the look-back as seen.
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

// follow prints the lines of the running activations and of each new one, up to logStreams
// at the same time, until ctx ends. The end of ctx is no error.
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
				return nil // Wait returns the error of the stream that failed
			case <-tick.C:
			}
			var err error
			fresh, err = l.fresh(inner)
			if err != nil && inner.Err() == nil {
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

// fresh returns the ids of the activations within logLookBack that were not seen before,
// oldest first, and marks them as seen. It drops marks that are older.
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

// print prints one line with the activation that wrote it.
func (l *logTail) print(id string, line api.LogLine) error {
	l.printing.Lock()
	defer l.printing.Unlock()
	return l.app.PrintLine(struct {
		ActivationID string `json:"activation_id"`
		api.LogLine
	}{id, line}, shortID(id)+" "+logText(line))
}

// printLog prints one line of an activation that the user named.
func (a commands) printLog(line api.LogLine) error {
	return a.PrintLine(line, logText(line))
}

// shortID returns the last 8 characters of an activation's id. The first ones are the time,
// which is the same for activations of the same moment.
func shortID(id string) string { return id[max(len(id)-8, 0):] }
