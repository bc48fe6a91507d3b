package activations

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

const (
	// tailPoll is the time between two polls for new activations.
	tailPoll = 500 * time.Millisecond
	// tailLookBack is the age up to which an activation may appear in the index for the
	// first time: replicas' clocks differ, and the index is written after the start.
	tailLookBack = 10 * time.Second
	// tailStreams bounds the activations that are followed at the same time.
	tailStreams = 32
	// tailBurst bounds the new activations that one poll shows.
	tailBurst = 500
)

// tailSelection holds the flags that select activations and lines.
type tailSelection struct {
	status   string
	level    string
	grep     string
	sampling float64
	since    time.Duration
}

func (s *tailSelection) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.status, "status", "", "only activations that ended so: success, error, timeout or cancelled")
	flags.StringVar(&s.level, "level", "debug", "only lines of this level and above: debug, info, warn or error")
	flags.StringVar(&s.grep, "grep", "", "only lines whose message matches this regular expression (Go's syntax)")
	flags.Float64Var(&s.sampling, "sampling", 1, "share of the activations to show, above 0 and at most 1")
	flags.DurationVar(&s.since, "since", 0, "also activations that started within this time before now, such as 15m")
}

// tail returns the tail of the activations that filter admits, with the flags applied.
func (s *tailSelection) tail(app *command.App, t *command.Target, filter client.ActivationFilter) (*tail, error) {
	l := &tail{
		app: app, target: t, filter: filter, since: s.since, sampling: s.sampling, seen: map[string]int64{},
		status: api.Status(s.status), level: slices.Index(command.LogLevels, s.level),
	}
	terminal := []api.Status{api.StatusSuccess, api.StatusError, api.StatusTimeout, api.StatusCancelled}
	if s.status != "" && !slices.Contains(terminal, l.status) {
		return nil, fmt.Errorf("--status %q: want success, error, timeout or cancelled", s.status)
	}
	if l.level < 0 {
		return nil, fmt.Errorf("--level %q: want debug, info, warn or error", s.level)
	}
	if !(s.sampling > 0 && s.sampling <= 1) {
		return nil, fmt.Errorf("--sampling %v: want a share above 0 and at most 1", s.sampling)
	}
	grep, err := regexp.Compile(s.grep)
	if err != nil {
		return nil, fmt.Errorf("--grep: %w", err)
	}
	l.grep = grep
	return l, nil
}

// tail prints the logs of activations as they come. There is no event stream of several
// activations, so it lists the latest ones every tailPoll, and follows the log of each new
// one. Lines of different activations are mixed; those of one are in order.
type tail struct {
	app       *command.App
	target    *command.Target
	filter    client.ActivationFilter
	functions []string // the names to show; empty for all that filter admits
	outcomes  bool     // print how each activation ended, and the names of functions
	since     time.Duration
	status    api.Status // of the activations to show, "" for all
	level     int        // the lowest one to show, an index into command.LogLevels
	grep      *regexp.Regexp
	sampling  float64
	seen      map[string]int64 // start_ms of the activations printed or followed, within tailLookBack

	printing sync.Mutex
}

// run prints the lines of the latest activations, oldest first, and with follow those of later
// ones. With follow an activation that still runs is followed, not printed in its place.
func (l *tail) run(ctx context.Context, runs uint, follow bool) error {
	latest, err := l.latest(ctx, runs)
	if err != nil {
		return err
	}
	running := []api.Activation{}
	for _, act := range latest {
		if follow && !act.Status.Terminal() {
			running = append(running, act)
			continue
		}
		if err := l.show(ctx, act); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return l.follow(ctx, running)
}

// latest returns the runs latest activations, oldest first; with since, at most those within
// that time, and all of them for 0 runs. It marks every activation of the look-back as seen.
func (l *tail) latest(ctx context.Context, runs uint) ([]api.Activation, error) {
	if _, err := l.fresh(ctx); err != nil || runs == 0 && l.since == 0 {
		return nil, err
	}
	filter := l.filter
	filter.FromMS, filter.Status = 0, l.status
	if l.since > 0 {
		filter.FromMS = time.Now().Add(-l.since).UnixMilli()
	}
	var latest []api.Activation
	for act, err := range client.All(ctx, activationsOf(l.target, filter), client.PageOptions{}) {
		if err != nil {
			return nil, err
		}
		if l.selects(act) {
			latest = append(latest, act)
		}
		if runs > 0 && uint(len(latest)) == runs {
			break
		}
	}
	slices.Reverse(latest)
	return latest, nil
}

// selects reports whether the names and the sample include act.
func (l *tail) selects(act api.Activation) bool {
	if len(l.functions) > 0 && !slices.Contains(l.functions, act.Function) {
		return false
	}
	if l.sampling == 1 {
		return true
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(act.ActivationID)) // a hash takes every write
	return float64(h.Sum32()) < l.sampling*(1<<32)
}

// follow prints the lines of the running activations and of each new one, up to tailStreams
// at the same time, until ctx ends. The end of ctx is no error.
func (l *tail) follow(ctx context.Context, running []api.Activation) error {
	streams, inner := errgroup.WithContext(ctx)
	streams.SetLimit(tailStreams)
	tick := time.NewTicker(tailPoll)
	defer tick.Stop()
	err := func() error {
		for fresh := running; ; {
			for _, act := range fresh {
				if !streams.TryGo(func() error { return l.show(inner, act) }) {
					delete(l.seen, act.ActivationID) // a later poll finds it again
				}
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

// fresh returns the activations within tailLookBack that were not seen before, oldest first,
// and marks them as seen. It drops marks that are older.
func (l *tail) fresh(ctx context.Context) ([]api.Activation, error) {
	filter := l.filter
	filter.FromMS = time.Now().Add(-tailLookBack).UnixMilli()
	maps.DeleteFunc(l.seen, func(_ string, startMS int64) bool { return startMS < filter.FromMS })
	var out []api.Activation
	for act, err := range client.All(ctx, activationsOf(l.target, filter), client.PageOptions{Limit: api.MaxPageLimit}) {
		if err != nil {
			return nil, err
		}
		if _, known := l.seen[act.ActivationID]; known {
			continue
		}
		l.seen[act.ActivationID] = act.StartMS
		if l.selects(act) {
			out = append(out, act)
		}
		if len(out) == tailBurst {
			l.app.Note("more than %d new activations: some are not shown; --sampling, --function and --status show fewer", tailBurst)
			break
		}
	}
	slices.Reverse(out)
	return out, nil
}

// show prints the lines of an activation and how it ended. It waits for the end of one that
// runs; if a status is selected, it prints nothing before.
func (l *tail) show(ctx context.Context, act api.Activation) error {
	if act.Status.Terminal() && l.status != "" && act.Status != l.status {
		return nil
	}
	var held []api.LogLine
	shown, last := 0, api.LogLine{}
	take := func(line api.LogLine) error {
		if !l.admits(line) {
			return nil
		}
		shown++
		last = line
		if l.status != "" {
			held = append(held, line)
			return nil
		}
		return l.printLine(act, line)
	}
	ended, err := l.read(ctx, act, take)
	if err != nil || l.status != "" && ended.Status != l.status {
		return err
	}
	for _, line := range held {
		if err := l.printLine(act, line); err != nil {
			return err
		}
	}
	return l.printEnd(ended, shown, command.ShowsError(last, ended.Error))
}

// read passes the lines of an activation to take until it has ended, and returns it as it
// ended. An activation whose record has expired meanwhile is returned as it was.
func (l *tail) read(ctx context.Context, act api.Activation, take func(api.LogLine) error) (api.Activation, error) {
	if act.Status.Terminal() {
		for line, err := range l.target.Tenant.LogLines(ctx, act.ActivationID) {
			if err != nil {
				return act, err
			}
			if err := take(line); err != nil {
				return act, err
			}
		}
		return act, nil
	}
	if err := l.target.Tenant.FollowLogs(ctx, act.ActivationID, take); err != nil {
		return act, err
	}
	if !l.outcomes && l.status == "" {
		return act, nil
	}
	ended, err := l.target.Tenant.Activation(ctx, act.ActivationID)
	if api.ErrorCode(err) == api.CodeActivationNotFound {
		return act, nil
	}
	ended.Result = nil
	return ended, err
}

// admits reports whether the level and the pattern select a line.
func (l *tail) admits(line api.LogLine) bool {
	return slices.Index(command.LogLevels, line.Level) >= l.level && l.grep.MatchString(command.MessageText(line))
}

// name returns the function of an activation, with its namespace if several are shown.
func (l *tail) name(act api.Activation) string {
	if l.filter.Namespace == "" {
		return act.Namespace + "/" + act.Function
	}
	return act.Function
}

// printLine prints one line with the activation that wrote it.
func (l *tail) printLine(act api.Activation, line api.LogLine) error {
	text := command.ShortID(act.ActivationID) + " " + l.app.LogText(line)
	shown := tailed{ActivationID: act.ActivationID, LogLine: &line}
	if l.outcomes {
		text = l.app.ActivityLine(l.name(act), act.ActivationID, line)
		shown.Namespace, shown.Function = act.Namespace, act.Function
	}
	l.printing.Lock()
	defer l.printing.Unlock()
	return l.app.PrintLine(shown, text)
}

// printEnd prints how an activation ended. shown is the number of its lines that were printed,
// and errorShown reports whether the last of them has its error. If none was printed, a level or
// a pattern hides the end too; a level alone does not hide that of a failed activation.
func (l *tail) printEnd(act api.Activation, shown int, errorShown bool) error {
	failed := act.Status == api.StatusError || act.Status == api.StatusTimeout
	filtered := l.grep.String() != "" || l.level > slices.Index(command.LogLevels, "info") && !failed
	if !l.outcomes || filtered && shown == 0 {
		return nil
	}
	l.printing.Lock()
	defer l.printing.Unlock()
	return l.app.PrintLine(tailed{ActivationID: act.ActivationID, Namespace: act.Namespace, Function: act.Function, End: &act},
		l.app.ActivityEnd(l.name(act), &act, errorShown))
}

// tailed is the JSON form of a printed line: a log line, or with End the end of an activation.
type tailed struct {
	ActivationID string `json:"activation_id"`
	Namespace    string `json:"namespace,omitempty"`
	Function     string `json:"function,omitempty"`
	*api.LogLine
	End *api.Activation `json:"end,omitempty"`
}
