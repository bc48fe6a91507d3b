package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/traffic"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

const (
	topInterval    = 2 * time.Second
	minTopInterval = 250 * time.Millisecond
	// topWindow is the time over which rates are averaged. Replicas count calls every 2 s, so
	// the rate between two readings would jump.
	topWindow = 10 * time.Second
	topLimit  = 1000 // functions, and queues, that are read
)

// topSample is one reading of all numbers.
type topSample struct {
	at        time.Time
	functions []traffic.FunctionCalls
	queues    []api.Queue
}

// topFunction is a line about a function. Rates are null in the first reading.
type topFunction struct {
	Function       string                   `json:"function"`
	CallsPerSecond *float64                 `json:"calls_per_second"`
	Calls          int64                    `json:"calls"` // since about a day
	Failures       int64                    `json:"failures"`
	P50MS          *int64                   `json:"p50_ms"`
	P99MS          *int64                   `json:"p99_ms"`
	LastFailure    *traffic.FunctionFailure `json:"last_failure"`
}

// topQueue is a line about a queue.
type topQueue struct {
	Queue           string   `json:"queue"`
	EndedPerSecond  *float64 `json:"ended_per_second"` // completed, dead and cancelled jobs
	Pending         int64    `json:"pending"`
	Active          int64    `json:"active"`
	Retrying        int64    `json:"retrying"`
	Dead            int64    `json:"dead"`
	OldestPendingMS int64    `json:"oldest_pending_ms"`
	Paused          bool     `json:"paused"`
}

// topTable is the JSON form of the output of sous top.
type topTable struct {
	Namespace string        `json:"namespace"`
	Functions []topFunction `json:"functions"`
	Queues    []topQueue    `json:"queues"`
}

// topCommand returns sous top.
func (a commands) topCommand() *cobra.Command {
	var once bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the functions and queues of the namespace, busiest first, as they work",
		Long: `Show the functions and queues of the namespace, busiest first, and refresh the table until
q or Ctrl-C is pressed.

CALLS/S and ENDED/S are averages of the last 10 seconds; servers count calls every 2
seconds. CALLS and FAILED are those of the last 24 hours; P50 and P99 are interpolated in
their histogram, whose bounds double. With --once, with -o json and without a terminal, it
takes two readings, --interval apart, prints the table and ends.`,
		Example: `  sous top
  sous top --namespace shop --once
  sous top -o json | jq '.queues[] | select(.pending > 100)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < minTopInterval {
				return api.Errorf(api.CodeInvalid, "--interval %s: want %s or more", interval, minTopInterval)
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			var samples []topSample
			read := func(ctx context.Context) (topTable, error) {
				s, err := readTop(ctx, t)
				if err != nil {
					return topTable{}, err
				}
				samples = keepSamples(append(samples, s))
				return newTopTable(t.NamespaceName, samples[0], s), nil
			}
			if once || a.Output == command.FormatJSON || !a.Interactive() {
				return a.topOnce(cmd.Context(), interval, read)
			}
			return a.ShowScreen(cmd.Context(), interval, func(ctx context.Context, width, height int) (string, error) {
				table, err := read(ctx)
				title := fmt.Sprintf("%s  namespace %s  %s  every %s, q ends", t.Client.URL(), t.NamespaceName, time.Now().Format(time.TimeOnly), interval)
				return table.screen(title, width, height), err
			})
		},
	}
	a.RegisterRemote(cmd.Flags())
	cmd.Flags().BoolVar(&once, "once", false, "print the table once")
	cmd.Flags().DurationVar(&interval, "interval", topInterval, "time between two readings")
	return cmd
}

// topOnce prints the table of two readings, interval apart: rates need both.
func (a commands) topOnce(ctx context.Context, interval time.Duration, read func(context.Context) (topTable, error)) error {
	var table topTable
	err := a.Working("reading the numbers", func() error {
		if _, err := read(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
		var err error
		table, err = read(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return a.Print(table, table.text(a.Width()))
}

// readTop reads the numbers of functions and queues.
func readTop(ctx context.Context, t *command.Target) (topSample, error) {
	s := topSample{}
	readers, ctx := errgroup.WithContext(ctx)
	readers.Go(func() (err error) {
		s.functions, _, err = command.Collect(client.All(ctx, t.Namespace.FunctionCalls, client.PageOptions{Limit: api.MaxPageLimit}), topLimit)
		return err
	})
	readers.Go(func() (err error) {
		s.queues, _, err = command.Collect(client.All(ctx, t.Namespace.Queues, client.PageOptions{Limit: api.MaxPageLimit}), topLimit)
		return err
	})
	err := readers.Wait()
	s.at = time.Now()
	return s, err
}

// keepSamples drops the samples that are older than topWindow before the latest one, but the
// youngest of those, so that the rest spans topWindow.
func keepSamples(samples []topSample) []topSample {
	latest := samples[len(samples)-1].at
	for len(samples) > 2 && latest.Sub(samples[1].at) >= topWindow {
		samples = samples[1:]
	}
	return samples
}

// newTopTable returns the table of the sample last, with rates since the sample first.
func newTopTable(namespace string, first, last topSample) topTable {
	table := topTable{Namespace: namespace, Functions: []topFunction{}, Queues: []topQueue{}}
	seconds := last.at.Sub(first.at).Seconds()
	calls := map[string]int64{}
	for _, f := range first.functions {
		calls[f.Name] = f.Calls
	}
	for _, f := range last.functions {
		table.Functions = append(table.Functions, topFunction{
			Function: f.Name, CallsPerSecond: rate(calls[f.Name], f.Calls, seconds), Calls: f.Calls, Failures: f.Failures,
			P50MS: f.P50MS, P99MS: f.P99MS, LastFailure: f.LastFailure,
		})
	}
	ended := map[string]int64{}
	for _, q := range first.queues {
		ended[q.Queue] = endedJobs(q)
	}
	for _, q := range last.queues {
		table.Queues = append(table.Queues, topQueue{
			Queue: q.Queue, EndedPerSecond: rate(ended[q.Queue], endedJobs(q), seconds), Pending: q.Depths[api.JobPending],
			Active: q.Depths[api.JobActive], Retrying: q.Depths[api.JobRetrying], Dead: q.Depths[api.JobDead],
			OldestPendingMS: q.OldestPendingMS, Paused: q.Paused,
		})
	}
	slices.SortStableFunc(table.Functions, func(x, y topFunction) int {
		return cmp.Or(cmp.Compare(value(y.CallsPerSecond), value(x.CallsPerSecond)), cmp.Compare(y.Calls, x.Calls), cmp.Compare(x.Function, y.Function))
	})
	slices.SortStableFunc(table.Queues, func(x, y topQueue) int {
		return cmp.Or(cmp.Compare(value(y.EndedPerSecond), value(x.EndedPerSecond)), cmp.Compare(y.Pending+y.Active, x.Pending+x.Active), cmp.Compare(x.Queue, y.Queue))
	})
	return table
}

// endedJobs returns the number of jobs of a queue that have ended and are still kept.
func endedJobs(q api.Queue) int64 {
	return q.Depths[api.JobCompleted] + q.Depths[api.JobDead] + q.Depths[api.JobCancelled]
}

// rate returns the growth of a count in a second, nil without a time between the readings.
// A count that shrank, because old calls or jobs were dropped, has the rate 0.
func rate(before, after int64, seconds float64) *float64 {
	if seconds <= 0 {
		return nil
	}
	perSecond := float64(max(after-before, 0)) / seconds
	return &perSecond
}

func value(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

// text returns both tables; lines have at most width characters (0: any number).
func (t topTable) text(width int) string {
	return t.functionTable(width, len(t.Functions)) + "\n" + t.queueTable(width, len(t.Queues))
}

// screen returns the title and both tables in height lines. The functions have at least half
// of the lines, if they need as many.
func (t topTable) screen(title string, width, height int) string {
	const fixed = 4 // title, a blank line and two headers
	room := max(height-fixed, 2)
	queues := min(max(len(t.Queues), 1), max(room/2, room-max(len(t.Functions), 1)))
	functions := min(len(t.Functions), room-queues)
	if runes := []rune(title); len(runes) > width {
		title = string(runes[:max(width, 0)])
	}
	return title + "\n" + t.functionTable(width, functions) + "\n" + t.queueTable(width, queues)
}

// functionTable returns the first rows of the functions; its last row says how many more
// there are.
func (t topTable) functionTable(width, rows int) string {
	header := []string{"FUNCTION", "CALLS/S", "CALLS", "FAILED", "P50", "P99", "LAST FAILURE"}
	return command.FittedTable(header, firstRows(t.Functions, rows, len(header), func(f topFunction) []string {
		last := "-"
		if f.LastFailure != nil {
			last = command.TimeText(f.LastFailure.AtMS) + " " + command.ErrorSummary(&api.ActivationError{Type: f.LastFailure.Type, Message: f.LastFailure.Message})
		}
		return []string{f.Function, rateText(f.CallsPerSecond), strconv.FormatInt(f.Calls, 10), strconv.FormatInt(f.Failures, 10), msText(f.P50MS), msText(f.P99MS), last}
	}), width)
}

// queueTable is functionTable for queues.
func (t topTable) queueTable(width, rows int) string {
	header := []string{"QUEUE", "ENDED/S", "PENDING", "ACTIVE", "RETRYING", "DEAD", "OLDEST", "STATE"}
	return command.FittedTable(header, firstRows(t.Queues, rows, len(header), func(q topQueue) []string {
		oldest := "-"
		if q.Pending > 0 {
			oldest = (time.Duration(q.OldestPendingMS) * time.Millisecond).Round(time.Second).String()
		}
		return []string{
			q.Queue, rateText(q.EndedPerSecond), strconv.FormatInt(q.Pending, 10), strconv.FormatInt(q.Active, 10),
			strconv.FormatInt(q.Retrying, 10), strconv.FormatInt(q.Dead, 10), oldest, command.Mark(q.Paused, "paused"),
		}
	}), width)
}

// firstRows returns the cells of the first items in so many rows.
func firstRows[T any](items []T, rows, columns int, row func(T) []string) [][]string {
	out := make([][]string, 0, len(items))
	for i, item := range items {
		if i == rows-1 && len(items) > rows {
			more := make([]string, columns)
			more[0] = fmt.Sprintf("… %d more", len(items)-i)
			return append(out, more)
		}
		out = append(out, row(item))
	}
	return out
}

// rateText returns a rate with as many digits as it deserves, "-" if it is not known.
func rateText(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return "-"
	case *perSecond == 0:
		return "0"
	case *perSecond < 10:
		return strings.TrimSuffix(strconv.FormatFloat(*perSecond, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(*perSecond, 'f', 0, 64)
}

func msText(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return strconv.FormatInt(*ms, 10) + " ms"
}
