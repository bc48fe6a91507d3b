// Package followup handles the consequences of the ends of jobs: the next job of a chain
// (chain.go), the end of the activation and its outcome for a destination (outcome.go), the count
// of a batch (batch.go), and the release of jobs that depend on the ended one (dependents.go).
//
// Each of these steps is safe to repeat, because the id of each job that it makes is derived from
// the cause. The script that ends the job also writes a marker to the queue's after set, which is
// removed after the last step. Maintenance handles the markers that a crash left. For the first
// job of a chain of two:
//
//	job_ack.lua  j1 enters completed and after, its run becomes completed
//	crash        the worker has its answer or repeats the ack
//	handle       makes j2 under DerivedJobID("chain", tenant, "j1", "step")
//	crash        j2 may run and end meanwhile
//	handle       finds j2 by its id and changes nothing; j1 leaves after
//
// Once the marker is removed, the end of j1 must not be followed again: j2 may have been purged
// meanwhile, and would be made a second time.
//
// A job that ends here, because a job that it depends on did not complete, has consequences of
// its own. They are handled in turn, too.
package followup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/coalesce"
	"github.com/codesous/sous/queue/internal/admission"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/schedules"
)

const (
	// flushTimeout bounds one flush. Maintenance does the rest.
	flushTimeout = 15 * time.Second
	// flushJobs is the maximum number of jobs in one flush, unless one call has more.
	flushJobs = 256
	// parallel is how many jobs a flush handles at once. Each takes a few round trips, and the
	// jobs that they make are added together.
	parallel = 64
)

// Config holds the parts of the queue that a Follower uses. All fields are required.
type Config struct {
	Store     *storage.Store
	Jobs      *jobstore.Store
	Admission *admission.Admission
	Log       *zap.Logger
	// Enqueue adds a job of the platform under an id derived from its cause. A repeat changes
	// nothing.
	Enqueue func(ctx context.Context, q jobstore.Queue, id string, spec *api.JobSpec) error
	// Change makes the move that decide returns for a job, nil for none, and returns the job
	// after it. ended reports whether the move ended the job with consequences, which Change
	// does not handle.
	Change func(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (r *jobstore.Record, ended bool, err error)
}

// Follower handles consequences. It is safe for concurrent use.
type Follower struct {
	Config

	life        context.Context
	activations *activations.Repository
	schedules   *schedules.Repository
	calls       *coalesce.Coalescer[jobstore.Queue, []string]
}

// New returns a Follower. After the end of life it begins nothing, and Wait waits for the rest.
func New(life context.Context, cfg Config) *Follower {
	f := &Follower{Config: cfg, life: life, activations: activations.New(cfg.Store), schedules: schedules.New(cfg.Store)}
	calls := coalesce.Config[[]string]{Count: flushJobs, SecondFlushAt: flushJobs, Weigh: func(ids []string) (count, bytes int) { return len(ids), 0 }}
	f.calls = coalesce.New(life, calls, func(ctx context.Context, q jobstore.Queue, calls [][]string) {
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		ids := slices.Concat(calls...)
		for i, err := range f.handle(ctx, q, ids) {
			f.warn(q, ids[i], err)
		}
	})
	return f
}

// Wait waits for the flushes under way.
func (f *Follower) Wait() { f.calls.Wait() }

// Follow handles the consequences of the ends of jobs of q, together with those of concurrent
// calls, and returns after them. Consequences that could not be handled, and all that are left at
// the end of ctx or of the Follower's life, are left to maintenance.
func (f *Follower) Follow(ctx context.Context, q jobstore.Queue, ids []string) {
	if len(ids) > 0 {
		_ = f.calls.Do(ctx, q, ids) // the only errors are the ends of ctx and life
	}
}

// warn logs that the consequences of a job's end were not handled, unless the Follower ends.
func (f *Follower) warn(q jobstore.Queue, id string, err error) {
	if err != nil && f.life.Err() == nil {
		f.Log.Warn("the consequences of a job's end were not handled; maintenance tries again", zap.String("tenant", q.Tenant),
			zap.String("job_id", id), zap.Error(err))
	}
}

// One handles the consequences of one job's end, or releases a waiting job whose wait is over,
// and removes the job's marker.
func (f *Follower) One(ctx context.Context, q jobstore.Queue, id string) error {
	return f.handle(ctx, q, []string{id})[0]
}

// Marked is One for a job that may have no marker. Without one all consequences were handled, and
// the jobs that they made may have been deleted and must not be made again.
func (f *Follower) Marked(ctx context.Context, q jobstore.Queue, id string) error {
	err := f.Store.Client().ZScore(ctx, f.Jobs.Keys(q).After(), id).Err()
	if err != nil {
		return jobstore.Failure(ctx, "read a marker", err)
	}
	return f.One(ctx, q, id)
}

// Markers returns the ids of up to limit jobs of q whose end, or wait, has to be handled.
func (f *Follower) Markers(ctx context.Context, q jobstore.Queue, limit int64) ([]string, error) {
	ids, err := f.Store.Client().ZRangeByScore(ctx, f.Jobs.Keys(q).After(), &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: limit}).Result()
	return ids, jobstore.Failure(ctx, "read markers", err)
}

// endedJobs are jobs that have ended, by queue.
type endedJobs map[jobstore.Queue][]string

func (e endedJobs) add(others endedJobs) {
	for q, ids := range others {
		e[q] = append(e[q], ids...)
	}
}

// handle handles the consequences of jobs of q and returns the error of each. It then handles
// those of the jobs that ended by them, of the jobs that ended by these, and so on. Errors of
// those are logged: they have markers of their own.
func (f *Follower) handle(ctx context.Context, q jobstore.Queue, ids []string) []error {
	errs, ended := f.step(ctx, q, ids)
	for len(ended) > 0 {
		next := endedJobs{}
		for q, ids := range ended {
			failed, more := f.step(ctx, q, ids)
			for i, err := range failed {
				f.warn(q, ids[i], err)
			}
			next.add(more)
		}
		ended = next
	}
	return errs
}

// step handles the consequences of jobs of q. It returns the error of each, and the jobs that
// ended by them.
func (f *Follower) step(ctx context.Context, q jobstore.Queue, ids []string) (errs []error, ended endedJobs) {
	ended = endedJobs{}
	var unread error
	for part, err := range f.Jobs.Parts(ctx, q.Tenant, ids, jobstore.DetailFields...) {
		if err != nil {
			unread = err
			break
		}
		failed, more := f.part(ctx, q, ids[len(errs):][:len(part)], part)
		errs = append(errs, failed...)
		ended.add(more)
	}
	for _, id := range ids[len(errs):] {
		if len(ids) == 1 || api.ErrorCode(unread) == api.CodeStoreUnavailable {
			errs = append(errs, unread)
			continue
		}
		failed, more := f.step(ctx, q, []string{id}) // one that cannot be decoded stops no other
		errs = append(errs, failed...)
		ended.add(more)
	}
	return errs, ended
}

// part is step for jobs that have been read; found[i] is nil if ids[i] does not exist. It removes
// the markers of those that it handled.
func (f *Follower) part(ctx context.Context, q jobstore.Queue, ids []string, found []*jobstore.Record) (errs []error, ended endedJobs) {
	errs, ended = make([]error, len(ids)), endedJobs{}
	before, err := f.markers(ctx, q, ids)
	if err != nil {
		return slices.Repeat([]error{err}, len(ids)), ended
	}
	var mu sync.Mutex // guards ended
	var jobs errgroup.Group
	jobs.SetLimit(parallel)
	for i, r := range found {
		if r == nil {
			continue
		}
		jobs.Go(func() error {
			more, err := f.job(ctx, q.Tenant, r)
			errs[i] = err
			mu.Lock()
			defer mu.Unlock()
			ended.add(more)
			return nil
		})
	}
	_ = jobs.Wait() // errs has the errors
	f.countInBatches(ctx, q.Tenant, found, errs)
	if err := f.unmarkAfter(ctx, q, ids, errs, before); err != nil {
		for i := range errs {
			errs[i] = cmp.Or(errs[i], err)
		}
	}
	return errs, ended
}

// unmarkAfter removes the markers of the jobs without an error, unless one is newer than before: a
// job that was retried meanwhile has ended again.
func (f *Follower) unmarkAfter(ctx context.Context, q jobstore.Queue, ids []string, errs []error, before []float64) error {
	now, err := f.markers(ctx, q, ids)
	if err != nil {
		return err
	}
	var handled []any
	for i, id := range ids {
		if errs[i] == nil && now[i] == before[i] {
			handled = append(handled, id)
		}
	}
	if len(handled) == 0 {
		return nil
	}
	return jobstore.Failure(ctx, "remove markers", f.Store.Client().ZRem(ctx, f.Jobs.Keys(q).After(), handled...).Err())
}

// markers returns the times of the markers of jobs, 0 for those without one.
func (f *Follower) markers(ctx context.Context, q jobstore.Queue, ids []string) ([]float64, error) {
	pipe := f.Store.Client().Pipeline()
	replies := make([]*redis.FloatCmd, len(ids)) // ZMSCORE of KVRocks replies otherwise than redis-server's
	for i, id := range ids {
		replies[i] = pipe.ZScore(ctx, f.Jobs.Keys(q).After(), id)
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return nil, jobstore.Failure(ctx, "read markers", err)
	}
	times := make([]float64, len(ids))
	for i, reply := range replies {
		times[i] = reply.Val()
	}
	return times, nil
}

// job handles the consequences of r's end but for its batch, or releases r if its wait is over. A
// step that fails does not stop the others. All of them are repeated until one call has succeeded
// in all. ended are the jobs that ended by them.
func (f *Follower) job(ctx context.Context, tenant string, r *jobstore.Record) (ended endedJobs, err error) {
	switch {
	case r.Run.State == api.JobWaiting:
		return f.release(ctx, tenant, r.ID)
	case r.Run.State.Terminal():
		err = errors.Join(f.chain(ctx, tenant, r), f.SendOutcome(ctx, tenant, r), f.unmark(ctx, tenant, r))
		ended, unreleased := f.releaseDependents(ctx, tenant, r.ID)
		return ended, errors.Join(err, unreleased)
	}
	return nil, nil
}

// unmark removes r, a job that has ended, from the jobs in flight of its schedule.
func (f *Follower) unmark(ctx context.Context, tenant string, r *jobstore.Record) error {
	s := r.Spec.Schedule
	if s == nil || !s.Marked {
		return nil
	}
	_, err := f.schedules.Unmark(ctx, storage.SchedulePath{Tenant: tenant, Namespace: r.Spec.Namespace, Name: s.Schedule}, r.ID)
	return err
}
