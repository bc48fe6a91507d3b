package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// Tick is one step of a schedule: its next moment, its new state, and the job that it makes.
type Tick struct {
	Path storage.SchedulePath
	// Turn is the turn of the schedule's state that was read, "" if it had none. The state
	// must still have it: of two replicas that compute the same tick, one makes it.
	Turn string
	// NextMS is the Unix time in milliseconds of the schedule's next tick, 0 for none.
	NextMS int64
	// State holds the changed fields of the state, each followed by its value. It contains
	// the next turn, and is empty for a repair of NextMS alone.
	State []string
	// Ended holds the ids of the jobs in flight that have ended.
	Ended []string
	// Job is the job that the tick makes, nil for none.
	Job *TickJob
}

// TickJob is the job of a tick. Its id is derived from the tick, so that repeating an
// interrupted tick makes the same job.
type TickJob struct {
	ID string
	// Spec names the queue, and the tick that made the job.
	Spec *api.JobSpec

	item *jobstore.Entry
	err  error
}

// TickOutcome is the outcome of a Tick.
type TickOutcome string

// The outcomes of a Tick. Only TickDone means that something was changed.
const (
	TickDone      TickOutcome = "ok"
	TickMoved     TickOutcome = "moved"     // the schedule has changed since it was read
	TickDraining  TickOutcome = "draining"  // the queue accepts no new jobs
	TickDuplicate TickOutcome = "duplicate" // a job that has not ended holds the unique key
	TickFailed    TickOutcome = "failed"    // the store is unavailable, or a record in it is invalid
)

// tickConcurrency is how many functions are resolved concurrently for the jobs of ticks.
const tickConcurrency = 8

// Tick advances schedules that have not changed since they were read, and makes their jobs.
// One script handles the ticks of each tenant, and one round trip those of all tenants; the
// ticks of one tenant must be consecutive. The outcomes are in the order of ticks. err joins
// the errors of those with TickFailed.
//
// schedule_tick.lua writes the job before the state. A script that is interrupted in between
// leaves a job whose id the repeated tick derives again. The marks of the jobs follow the
// script; if they fail, err is set although the outcomes are TickDone.
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

// tickItems prepares the jobs of ticks, as an enqueue does. It returns the indexes of the ticks
// whose jobs could be prepared, or that have none, and sets the outcomes of the others.
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
			items, err := b.items(ctx, q, []string{t.Job.ID}, []*api.JobSpec{t.Job.Spec}, ofCaller)
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

// queue returns the queue of the tick's job.
func (t *Tick) queue() jobstore.Queue {
	return jobstore.Queue{Tenant: t.Path.Tenant, Namespace: t.Path.Namespace, Name: t.Job.Spec.Queue}
}

// tick runs the script for the ticks with the indexes left. It returns the indexes of those
// to be tried again, because the holder of their unique key has ended.
func (b *Broker) tick(ctx context.Context, ticks []*Tick, left []int, out []TickOutcome) (again []int, errs []error) {
	var calls []storage.ScriptCall
	var parts [][]int
	for from := 0; from < len(left); {
		to, tenant := from, ticks[left[from]].Path.Tenant
		for to < len(left) && ticks[left[to]].Path.Tenant == tenant {
			to++
		}
		parts = append(parts, left[from:to])
		calls = append(calls, b.tickCall(ctx, tenant, ticks, left[from:to]))
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

// tickOutcome returns the outcome for the script's reply word, "" if the tick is to be tried
// again: the holder of the job's unique key has ended, and the next call names it as such.
func (b *Broker) tickOutcome(ctx context.Context, t *Tick, word string) (TickOutcome, error) {
	holder, held := strings.CutPrefix(word, "held ")
	if !held {
		return TickOutcome(word), nil
	}
	item := t.Job.item
	item.Holder = holder
	freed, _, err := b.readHolders(ctx, t.Path.Tenant, []*jobstore.Entry{item})
	item.Holder = ""
	if err != nil || freed {
		return "", err
	}
	return TickDuplicate, nil
}

// tickCall returns the keys and arguments of schedule_tick.lua for ticks of one tenant. The actor of
// ctx makes their jobs, or else the ticker.
func (b *Broker) tickCall(ctx context.Context, tenant string, ticks []*Tick, part []int) storage.ScriptCall {
	jobs := b.store.JobKeys(tenant)
	c := storage.ScriptCall{
		Keys: []string{b.store.ScheduleDueKey(tenant), jobs.Queues(), jobs.Events()},
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
			b.tickJob(&c, jobs, t, cmp.Or(event.ActorOf(ctx), event.ActorSchedules))
		}
	}
	return c
}

// appendList appends the length of list and its elements.
func appendList(args []any, list []string) []any {
	args = append(args, len(list))
	for _, s := range list {
		args = append(args, s)
	}
	return args
}

// tickJob appends the keys and arguments of the job of a tick, in the order of
// lua/include/schedule_job.lua. A job without a unique key passes the queue's configuration in
// its place, so that each job has nine keys. actor makes the job.
func (b *Broker) tickJob(c *storage.ScriptCall, jobs storage.JobKeys, t *Tick, actor string) {
	item, key := t.Job.item, t.queue()
	spec, q, options := item.Spec, b.jobs.Keys(key), item.Spec.WithDefaults()
	unique, ttl, mark := q.Config(), int64(0), ""
	if spec.UniqueKey != "" {
		unique, ttl = jobs.Unique(key.Namespace, key.Name, spec.UniqueKey), max(1, options.UniqueTTLMS)
	}
	if spec.Schedule.Marked {
		mark = jobstore.ScoreText(spec.Schedule.TickMS)
	}
	c.Keys = append(c.Keys, jobs.Run(item.ID), jobs.Spec(item.ID), b.jobs.SetOf(key, api.JobPending, spec.Score), q.Set(string(api.JobWaiting)),
		q.Expiry(), q.After(), q.Cursor(), q.Config(), unique, q.Set(string(api.JobHeld)), jobs.Approvals())
	c.Args = append(c.Args, mark, key.Path(), item.Text, item.Run.String(),
		jobstore.ScoreText(spec.Score), spec.Priority.Rank(), item.ExpiresMS(), ttl, item.Ended)
	fired := event.Change{
		Type: event.ScheduleFired, Of: event.KindSchedules + "/" + key.Namespace, ID: t.Path.Name, AtMS: item.Run.At, Actor: actor,
		Data: event.Data{Namespace: key.Namespace, Queue: key.Name, Function: event.FunctionOf(key.Name), JobID: item.ID},
	}
	enqueued := event.Detail{Actor: actor}
	c.Args = append(c.Args, fired.Text(), enqueued.Text())
}

// announceTicks marks and notifies the jobs that ticks made, and writes the records of those
// that run functions, so that they can be read before they run. A crash before it leaves jobs
// that are indexed but not marked; the schedule's next tick, or the sweeper, marks their queue.
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
			_ = group.Wait() // a worker writes the records that are missing
			return err
		}
	}
	for _, t := range made {
		b.wake(t.queue(), []*jobstore.Entry{t.Job.item})
	}
	return group.Wait()
}

// Standing returns the states of a tenant's jobs, in the order of ids, "" for those that do
// not exist. It adds pending and waiting jobs to their index if the call that made them was
// interrupted: a schedule would otherwise wait for a job that no worker can find. Errors:
// CodeStoreUnavailable.
func (b *Broker) Standing(ctx context.Context, tenant string, ids []string) ([]api.JobState, error) {
	out := make([]api.JobState, 0, len(ids))
	for part, err := range b.jobs.Parts(ctx, tenant, ids) {
		if err != nil {
			return nil, err
		}
		for _, r := range part {
			if r == nil {
				out = append(out, "")
				continue
			}
			out = append(out, r.Run.State)
			if r.Run.State == api.JobPending || r.Run.State == api.JobWaiting {
				if _, err := b.jobs.Reindex(ctx, tenant, r); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}
