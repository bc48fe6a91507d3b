package tasks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
)

// Swept counts the tasks of a sweep by what it did with them.
type Swept struct {
	Read        int // all records that were read
	Announced   int // announced: their announcement had not been made
	Republished int // returned to pending and announced again
	Failed      int // ended: they had been republished too often
	Waiting     int // left alone: their announcement still waits in its queue
	Refused     int // left for the next sweep: their queue is draining, or their tenant is at a quota
}

// Add adds the counts of another sweep.
func (s *Swept) Add(other Swept) {
	s.Read += other.Read
	s.Announced += other.Announced
	s.Republished += other.Republished
	s.Failed += other.Failed
	s.Waiting += other.Waiting
	s.Refused += other.Refused
}

// checked returns the number of stuck tasks that were looked at.
func (s *Swept) checked() int {
	return s.Announced + s.Republished + s.Failed + s.Waiting + s.Refused
}

// sweep is one call of Sweep.
type sweep struct {
	*Tasks
	now      int64
	limit    int
	done     Swept
	draining map[string]bool // queues that refused an announcement
}

// sweepPage bounds the stuck records that a sweep holds in memory.
const sweepPage = 500

// sweepReads bounds the records that a sweep reads, as a multiple of its limit. A tenant may have a
// million tasks, with payloads, and its sweep delays those of the others.
const sweepReads = 10

// Sweep repairs the tasks of a tenant whose workers have not reported in time at now, a Unix
// time in milliseconds. It returns them to pending and announces them again; after
// api.MaxTaskRepublishes times it fails them.
// It ends after limit stuck tasks, or sweepReads times as many records; the next sweep of this
// process continues there. Any number of sweeps may run at once: each repair is made by one of them.
// An error in one task does not keep Sweep from the others, unless the store does not answer.
func (t *Tasks) Sweep(ctx context.Context, tenant string, now int64, limit int) (Swept, error) {
	ctx = event.WithActor(ctx, event.ActorTasks)
	s := &sweep{Tasks: t, now: now, limit: limit, draining: map[string]bool{}}
	var failed error
	from, _ := t.swept.GetIfPresent(tenant)
	for more := true; more; {
		stuck, next, further, err := s.page(ctx, tenant, from)
		failed = cmp.Or(failed, err)
		for _, r := range stuck {
			if s.done.checked() >= limit {
				t.swept.Set(tenant, from)
				return s.done, failed
			}
			at := positionOf(r)
			err := s.repair(ctx, r)
			switch {
			case err == nil:
			case storage.Fatal(ctx, err):
				return s.done, err
			default:
				failed = cmp.Or(failed, err)
			}
			from = at
		}
		from, more = next, further
		if more && s.readsAll() {
			t.swept.Set(tenant, from)
			return s.done, failed
		}
	}
	t.swept.Invalidate(tenant)
	return s.done, failed
}

// readsAll reports whether the sweep has read as many records as it may.
func (s *sweep) readsAll() bool { return s.done.Read >= sweepReads*s.limit }

// page collects a page of the stuck tasks behind from before any is repaired: a repair moves
// its task to the end of the order in which they are read.
func (s *sweep) page(ctx context.Context, tenant string, from position) (stuck []*record, next position, more bool, err error) {
	for r, bad := range s.scan(ctx, tenant, "", from, youngest(s.now)) {
		if bad != nil {
			err = cmp.Or(err, bad)
			continue
		}
		if len(stuck) == sweepPage || s.readsAll() {
			return stuck, from, true, err
		}
		s.done.Read++
		from = positionOf(r)
		if r.StuckAt(s.now) {
			stuck = append(stuck, r)
		}
	}
	return stuck, from, false, err
}

// repair returns one stuck task to where a worker can find it.
//
//	state             its announcement  repair
//	claimed, running  —                 republish: its worker is silent
//	pending           does not exist    announceNow: it was never made
//	pending           has ended         republish: no worker claimed the task
//	pending           has not ended     postpone: it waits in the queue
func (s *sweep) repair(ctx context.Context, r *record) error {
	if r.State != api.TaskPending {
		return s.republish(ctx, r, fmt.Sprintf("worker %s has not reported for %s at step %d", r.Worker, s.silence(r), r.CurrentStep))
	}
	state, err := s.broker.StateOf(ctx, r.tenant, r.JobID)
	switch {
	case err != nil:
		return err
	case state == "":
		return s.announceNow(ctx, r)
	case state.Terminal():
		return s.republish(ctx, r, fmt.Sprintf("no worker claimed it for %s, and the job that announced it is %s", s.silence(r), state))
	}
	s.done.Waiting++
	return s.postpone(ctx, r)
}

// silence returns the time since the last change of r, in whole seconds.
func (s *sweep) silence(r *record) time.Duration {
	return (time.Duration(s.now-r.UpdatedAtMS) * time.Millisecond).Round(time.Second)
}

// announceNow makes the announcement that the record names, which a crash or a draining queue
// had prevented.
func (s *sweep) announceNow(ctx context.Context, r *record) error {
	announced, err := s.offer(ctx, r)
	if err != nil || !announced {
		return err
	}
	s.done.Announced++
	s.note(r, "announced", "its announcement had not been made")
	return s.postpone(ctx, r)
}

// offer announces r, and reports whether its queue accepted the job.
func (s *sweep) offer(ctx context.Context, r *record) (bool, error) {
	name := r.Namespace + "/" + r.Queue
	if !s.draining[name] {
		switch err := s.announce(ctx, r, false); api.ErrorCode(err) {
		case api.CodeQueueDraining:
			s.draining[name] = true
		case api.CodeTenantQuota, api.CodeTenantRate: // a later sweep tries again
		default:
			return err == nil, err
		}
	}
	s.done.Refused++
	return false, nil
}

// postpone puts off the next check of a pending task whose announcement waits in its queue. Such
// a task is not at fault, however long the queue is paused or its backlog is.
func (s *sweep) postpone(ctx context.Context, r *record) error {
	after := *r
	after.TimeoutAtMS = s.now + api.TaskStuckMS
	_, err := s.states.CompareAndSet(ctx, s.key(r), r.version(), r.changes(&after))
	return err
}

// republish returns a task to pending and announces it again, or fails it. It writes the record
// first. If the job came first, a waiting worker could fetch it, find the task still claimed by
// another worker, and drop the job. A crash in between leaves a pending task without its job,
// which a later sweep finds.
func (s *sweep) republish(ctx context.Context, r *record, reason string) error {
	next := r.Task
	next.UpdatedAtMS, next.TimeoutAtMS = s.now, 0
	if r.Republished >= api.MaxTaskRepublishes {
		next.State = api.TaskFailed
		next.Error = fmt.Sprintf("given up after it was announced again %d times: %s", r.Republished, reason)
		done, err := s.write(ctx, r, next)
		if done {
			s.done.Failed++
			s.note(r, "failed", reason)
		}
		return err
	}
	next.State, next.Worker, next.Republished = api.TaskPending, "", r.Republished+1
	next.JobID = announcementID(r, r.UpdatedAtMS, next.Republished)
	done, err := s.write(ctx, r, next)
	if !done || err != nil {
		return err
	}
	s.done.Republished++
	s.note(r, "republished", reason)
	_, err = s.offer(ctx, r)
	return err
}

// note logs a repair.
func (s *sweep) note(r *record, kind, reason string) {
	s.log.Info("a stuck task was repaired", zap.String("kind", kind), zap.String("tenant", r.tenant), zap.String("type", r.TaskType),
		zap.String("id", r.TaskID), zap.Int64("republished", r.Republished), zap.String("reason", reason))
}
