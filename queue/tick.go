package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// Tick moves one schedule on, if it is still as it was read.
type Tick struct {
	Path storage.SchedulePath
	// Turn is that of the state that was read, "" for none.
	Turn string
	// NextMS is the schedule's next tick, 0 for none.
	NextMS int64
	// State is the new fields of its state, and their values.
	State []string
	// Ended are jobs in flight that have ended.
	Ended []string
	// Job is what the tick makes, nil for nothing.
	Job *TickJob
}

// TickJob is the job of a tick, under an id that is derived from it: whatever is cut
// short and done again makes the same one.
type TickJob struct {
	ID string
	// Spec says which tick made it, and names the queue.
	Spec *api.JobSpec

	item *jobstore.Entry
	err  error
}

// TickOutcome is what became of a Tick.
type TickOutcome string

// The outcomes. Only TickDone changed anything.
const (
	TickDone      TickOutcome = "ok"
	TickMoved     TickOutcome = "moved"     // the schedule is not as it was read
	TickDraining  TickOutcome = "draining"  // the queue takes no new jobs
	TickDuplicate TickOutcome = "duplicate" // a living job has the unique key
	TickFailed    TickOutcome = "failed"    // the store, or what it holds, did not allow it
)

// tickConcurrency is how many functions are looked up at once for the jobs of ticks.
const tickConcurrency = 8

// Tick moves schedules on, those of each tenant in one script, all tenants' in one round
// trip, and makes their jobs. The outcomes are in the order of ticks, which come
// tenant by tenant; err tells of those that failed.
func (b *Broker) Tick(ctx context.Context, ticks []*Tick) (out []TickOutcome, err error) {
	out = make([]TickOutcome, len(ticks))
	left, errs := b.tickItems(ctx, ticks, out)
	for len(left) > 0 {
		var failed []error
		left, failed = b.tick(ctx, ticks, left, out)
		errs = append(errs, failed...)
	}
	return out, errors.Join(append(errs, b.announceTicks(ctx, ticks, out))...)
}

// tickItems prepares the jobs of ticks, and gives the places of those that go on.
func (b *Broker) tickItems(ctx context.Context, ticks []*Tick, out []TickOutcome) (left []int, errs []error) {
	var group errgroup.Group
	group.SetLimit(tickConcurrency)
	for _, t := range ticks {
		if t.Job == nil {
			continue
		}
		group.Go(func() error {
			q := t.queue()
			t.Job.Spec.Namespace = q.Namespace
			items, err := b.items(ctx, q, []string{t.Job.ID}, []*api.JobSpec{t.Job.Spec}, false)
			t.Job.err = err
			if err == nil {
				t.Job.item = items[0]
			}
			return nil
		})
	}
	_ = group.Wait() // each has its own outcome
	for i, t := range ticks {
		switch {
		case t.Job == nil || t.Job.err == nil:
			left = append(left, i)
		case api.ErrorCode(t.Job.err) == api.CodeJobNotFound:
			out[i] = TickMoved // the job that it was to wait for has been purged
		default:
			out[i] = TickFailed
			errs = append(errs, fmt.Errorf("schedule %s/%s: %w", t.Path.Namespace, t.Path.Name, t.Job.err))
		}
	}
	return left, errs
}

// queue is where the tick's job goes.
func (t *Tick) queue() jobstore.Queue {
	return jobstore.Queue{Tenant: t.Path.Tenant, Namespace: t.Path.Namespace, Name: t.Job.Spec.Queue}
}

// tick runs the script for those of ticks that left names, and gives those that are to be
// tried again: the unique key's holder has ended.
func (b *Broker) tick(ctx context.Context, ticks []*Tick, left []int, out []TickOutcome) (again []int, errs []error) {
	var calls []storage.ScriptCall
	var parts [][]int
	for from := 0; from < len(left); {
		to, tenant := from, ticks[left[from]].Path.Tenant
		for to < len(left) && ticks[left[to]].Path.Tenant == tenant {
			to++
		}
		parts = append(parts, left[from:to])
		calls = append(calls, b.tickCall(tenant, ticks, left[from:to]))
		from = to
	}
	replies, failed := b.store.ScriptEach(ctx, storage.ScriptScheduleTick, calls)
	for k, part := range parts {
		words := jobstore.Words(replies[k])
		for i, place := range part {
			err := failed[k]
			if err == nil {
				out[place], err = b.tickOutcome(ctx, ticks[place], words[i])
			}
			switch {
			case err != nil:
				out[place] = TickFailed
				errs = append(errs, fmt.Errorf("schedule %s/%s: %w", ticks[place].Path.Namespace, ticks[place].Path.Name, err))
			case out[place] == "":
				again = append(again, place)
			}
		}
	}
	return again, errs
}

// tickOutcome reads the script's word on a tick; "" where it is to be tried again.
func (b *Broker) tickOutcome(ctx context.Context, t *Tick, word string) (TickOutcome, error) {
	holder, held := strings.CutPrefix(word, "held ")
	if !held {
		return TickOutcome(word), nil
	}
	item := t.Job.item
	item.Holder = holder
	freed, _, err := b.lookAtHolders(ctx, t.Path.Tenant, []*jobstore.Entry{item})
	item.Holder = ""
	if err != nil || freed {
		return "", err
	}
	return TickDuplicate, nil
}

// tickCall lays the ticks of one tenant out as schedule_tick.lua reads them.
func (b *Broker) tickCall(tenant string, ticks []*Tick, part []int) storage.ScriptCall {
	jobs := b.store.JobKeys(tenant)
	c := storage.ScriptCall{
		Keys: []string{b.store.ScheduleDueKey(tenant), jobs.Queues()},
		Args: []any{len(part)},
	}
	for _, i := range part {
		t := ticks[i]
		state, inFlight := b.store.ScheduleKeys(t.Path)
		c.Keys = append(c.Keys, state, inFlight)
		next, id := "", ""
		if t.NextMS > 0 {
			next = jobstore.ScoreText(t.NextMS)
		}
		if t.Job != nil {
			id = t.Job.ID
		}
		c.Args = append(c.Args, t.Path.Namespace+"/"+t.Path.Name, t.Turn, next)
		c.Args = appendList(c.Args, t.State)
		c.Args = appendList(c.Args, t.Ended)
		c.Args = append(c.Args, id)
		if t.Job != nil {
			b.tickJob(&c, jobs, t)
		}
	}
	return c
}

func appendList(args []any, list []string) []any {
	args = append(args, len(list))
	for _, s := range list {
		args = append(args, s)
	}
	return args
}

// tickJob lays out the job of a tick.
func (b *Broker) tickJob(c *storage.ScriptCall, jobs storage.JobKeys, t *Tick) {
	item, key := t.Job.item, t.queue()
	spec, q, options := item.Spec, b.jobs.Keys(key), item.Spec.WithDefaults()
	unique, ttl, mark := q.Config(), int64(0), ""
	if spec.UniqueKey != "" {
		unique, ttl = jobs.Unique(key.Namespace, key.Name, spec.UniqueKey), max(1, options.UniqueTTLMS)
	}
	if spec.Schedule.Marked {
		mark = jobstore.ScoreText(spec.Schedule.TickMS)
	}
	c.Keys = append(c.Keys, jobs.Run(item.Id), jobs.Spec(item.Id), b.jobs.SetOf(key, api.JobPending, spec.Score), q.Set(string(api.JobWaiting)),
		q.Expiry(), q.After(), q.Cursor(), q.Config(), unique)
	c.Args = append(c.Args, mark, key.Path(), item.Text, item.Run.String(),
		jobstore.ScoreText(spec.Score), spec.Priority.Rank(), spec.ExpireAtMS, ttl, item.Ended)
}

// announceTicks tells of the jobs that ticks made, and enters the records of those that run
// functions, so that they can be read before they run.
func (b *Broker) announceTicks(ctx context.Context, ticks []*Tick, out []TickOutcome) error {
	pipe := b.rdb.Pipeline()
	var group errgroup.Group
	group.SetLimit(tickConcurrency)
	var made []*Tick
	for i, t := range ticks {
		if t.Job == nil || out[i] != TickDone {
			continue
		}
		q, items := t.queue(), []*jobstore.Entry{t.Job.item}
		b.jobs.Announce(ctx, pipe, q, items)
		b.metrics.added(q, items)
		made = append(made, t)
		if a := activations.Queued(q.Tenant, t.Job.ID, t.Job.Spec); a != nil {
			group.Go(func() error {
				_, _, err := b.activations.Start(ctx, a)
				return err
			})
		}
	}
	if pipe.Len() > 0 {
		_, err := pipe.Exec(ctx)
		if err := jobstore.Failure(ctx, "announce jobs", err); err != nil {
			_ = group.Wait() // the worker writes the records that are missing
			return err
		}
	}
	for _, t := range made {
		b.woken(t.queue(), []*jobstore.Entry{t.Job.item})
	}
	return group.Wait()
}

// Standing says where a tenant's jobs stand, "" for those that are not there. One that
// waits and is not in its queue, since its making was cut short, is entered there.
func (b *Broker) Standing(ctx context.Context, tenant string, ids []string) ([]api.JobState, error) {
	found, err := b.jobs.Load(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	out := make([]api.JobState, len(ids))
	for i, r := range found {
		if r == nil {
			continue
		}
		out[i] = r.Run.State
		if out[i] == api.JobPending || out[i] == api.JobWaiting {
			if _, err := b.jobs.Reindex(ctx, tenant, r); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// unmark takes a job that has ended out of those of its schedule that are in flight.
func (b *Broker) unmark(ctx context.Context, tenant string, r *jobstore.Record) error {
	s := r.Spec.Schedule
	if s == nil || !s.Marked {
		return nil
	}
	_, err := b.schedules.Unmark(ctx, storage.SchedulePath{Tenant: tenant, Namespace: r.Spec.Namespace, Name: s.Schedule}, r.Id)
	return err
}
