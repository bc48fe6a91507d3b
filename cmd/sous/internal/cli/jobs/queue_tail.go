package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// queueTailCommand returns sous queue tail. There is no event stream of a queue, so it lists
// the ended jobs again and again. A job that ends and is deleted between two polls is missed.
func (a commands) queueTailCommand() *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use: "tail QUEUE", Short: "Print each job as it ends, until interrupted", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queue, err := a.queueTarget(args[0])
			if err != nil {
				return err
			}
			if every < minTailInterval {
				return api.Errorf(api.CodeInvalid, "--interval %s: want at least %s", every, minTailInterval)
			}
			tail := &queueTail{queue: queue, seen: map[tailKey]bool{}}
			if _, err := tail.poll(cmd.Context()); err != nil {
				return command.Interrupted(cmd.Context(), err)
			}
			a.Note("waiting for jobs of %s to end", args[0])
			return command.Interrupted(cmd.Context(), tail.follow(cmd.Context(), every, a.printEnded))
		},
	}
	cmd.Flags().DurationVar(&every, "interval", time.Second, "time between two polls")
	return cmd
}

// minTailInterval is the smallest --interval.
const minTailInterval = 100 * time.Millisecond

// tailSlack is the time by which an end may be older than the newest one seen and still be
// new: replicas' clocks differ, and an end is written a moment after its time.
const tailSlack = 10_000 // ms

// queueTail finds the jobs of a queue that ended since the poll before. Lists of ended jobs
// have the newest first, so a poll reads each list until it meets a job that ended tailSlack
// before the newest end that it knows. The jobs within tailSlack are read again each time;
// seen keeps them from being printed twice.
type queueTail struct {
	queue  *client.Queue
	began  bool             // the first poll is done
	newest int64            // time of the newest end that was seen, in ms
	seen   map[tailKey]bool // ends within tailSlack of it
}

// tailKey identifies one end of a job: a job that is retried ends again.
type tailKey struct {
	id      string
	endedMS int64
}

// follow polls every interval and calls show for each job that ended, until ctx ends.
func (q *queueTail) follow(ctx context.Context, every time.Duration, show func(api.Job) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		ended, err := q.poll(ctx)
		if err != nil {
			return err
		}
		for _, job := range ended {
			if err := show(job); err != nil {
				return err
			}
		}
	}
}

// poll returns the jobs whose ends were not seen, oldest first. The first poll marks what it
// finds; its jobs ended before the command began and are not printed.
func (q *queueTail) poll(ctx context.Context) ([]api.Job, error) {
	var found []api.Job
	from := q.newest - tailSlack
	for _, state := range []api.JobState{api.JobCompleted, api.JobDead, api.JobCancelled} {
		list := func(ctx context.Context, o client.PageOptions) (api.Page[api.Job], error) {
			return q.queue.Jobs(ctx, client.JobFilter{State: state}, o)
		}
		n := 0
		for job, err := range client.All(ctx, list, client.PageOptions{Limit: api.MaxPageLimit}) {
			if err != nil {
				return nil, err
			}
			n++
			if job.EndedAtMS < from || !q.began && n > api.MaxPageLimit {
				break // the first poll only finds the newest end, which is on the first page
			}
			if key := (tailKey{job.ID, job.EndedAtMS}); !q.seen[key] {
				found = append(found, job)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b api.Job) int { return cmp.Compare(a.EndedAtMS, b.EndedAtMS) })
	for _, job := range found {
		q.seen[tailKey{job.ID, job.EndedAtMS}] = true
		q.newest = max(q.newest, job.EndedAtMS)
	}
	q.began = true
	for key := range q.seen { // later polls do not read further back than this
		if key.endedMS < q.newest-tailSlack {
			delete(q.seen, key)
		}
	}
	return found, nil
}

// printEnded prints a job as one line, or as one JSON value in a line.
func (a commands) printEnded(j api.Job) error {
	line := fmt.Sprintf("%s  %-9s  %s  attempt %d", command.TimeText(j.EndedAtMS), j.State, j.ID, j.Attempt)
	if j.DeadReason != "" {
		line += "  " + j.DeadReason
	}
	if tags := tagsText(j.Tags); tags != "" {
		line += "  " + tags
	}
	return a.PrintLine(j, line)
}
