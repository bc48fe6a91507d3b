package bulk

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
)

const (
	chunkJobs = 100 // jobs of a chunk
	together  = 4   // jobs of a chunk that are operated on at once
	// window is how many rows before the cursor a chunk begins. A job of which the row was taken has
	// one close behind it, and another one in the mirror of another replica.
	window    = 256
	maxStalls = 10 // searches in a row that take too long, after which the operation fails
)

// outcome tells how the operation on one job ended.
type outcome int

const (
	skipped outcome = iota
	changed
	failed
)

// chunk examines the next jobs of r and returns r with its progress. An error leaves the progress as it
// was: the jobs are examined again.
func (o *Operations) chunk(ctx context.Context, r *record) (*record, error) {
	after := *r
	q := r.Query()
	from, row, err := mirrorsearch.Back(r.Cursor, window)
	if err != nil {
		return nil, err
	}
	page, err := o.selector.Jobs(ctx, r.tenant, &q, from, min(chunkJobs+len(r.Recent), api.MaxPageLimit))
	if err != nil {
		return o.unreadable(r, err)
	}
	after.Stalls, after.Cursor = 0, page.Next
	jobs := slices.DeleteFunc(page.Items, func(job api.Job) bool {
		return slices.ContainsFunc(r.Recent, func(s seen) bool { return s.ID == job.ID })
	})
	left := int64(chunkJobs) // the page has more of them if it has not all of r.Recent
	if r.Limit > 0 {
		left = min(left, r.Limit-r.Done)
	}
	if int64(len(jobs)) > left {
		jobs = jobs[:left]
		last := jobs[left-1]
		after.Cursor = mirrorsearch.Behind(mirror.RowOf(last.CreatedAtMS, last.ID))
	}
	if err := o.applyAll(ctx, &after, &q, jobs); err != nil {
		return nil, err
	}
	if after.Cursor != "" {
		_, row, err = mirrorsearch.Back(after.Cursor, 0)
		if err != nil {
			return nil, err
		}
	}
	after.remember(jobs, row)
	if after.Cursor == "" || r.Limit > 0 && after.Done >= r.Limit {
		after.end(search.BulkCompleted, o.store.NowMS())
	}
	return &after, nil
}

// unreadable returns r after a search that failed, or its error if another attempt may succeed.
func (o *Operations) unreadable(r *record, err error) (*record, error) {
	after := *r
	switch api.ErrorCode(err) {
	case api.CodeSearchDeadline:
		after.Stalls++
		if after.Stalls < maxStalls {
			return &after, nil
		}
	case api.CodeInvalid, api.CodeSearchSyntax:
	default:
		return nil, err
	}
	after.Error = event.Shorten(err.Error())
	after.end(search.BulkFailed, o.store.NowMS())
	return &after, nil
}

// end ends an operation.
func (r *record) end(state search.BulkState, now int64) {
	r.State, r.EndedAtMS, r.Cursor, r.Recent = state, now, "", nil
}

// remember keeps the examined jobs that the next chunk may read again: those near row.
func (r *record) remember(jobs []api.Job, row int64) {
	recent := slices.Clone(r.Recent)
	for i := range jobs {
		recent = append(recent, seen{jobs[i].ID, mirror.RowOf(jobs[i].CreatedAtMS, jobs[i].ID)})
	}
	r.Recent = slices.DeleteFunc(recent, func(s seen) bool { return s.Row < row-2*window })
}

// applyAll operates on jobs and counts what became of them.
func (o *Operations) applyAll(ctx context.Context, r *record, q *search.Jobs, jobs []api.Job) error {
	ctx = event.WithActor(ctx, r.CreatedBy)
	outcomes, faults := make([]outcome, len(jobs)), make([]error, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i := range jobs {
		group.Go(func() error {
			outcomes[i], faults[i] = o.apply(ctx, r, q, jobs[i].ID)
			if faults[i] != nil && storage.Fatal(ctx, faults[i]) {
				return faults[i]
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("bulk operation %s: %w", r.ID, err)
	}
	for i, outcome := range outcomes {
		switch outcome {
		case changed:
			r.Done++
		case skipped:
			r.Skipped++
		case failed:
			r.Failed++
			r.Errors = append(slices.Clone(r.Errors), search.BulkError{
				JobID: jobs[i].ID, Code: api.ErrorCode(faults[i]), Message: event.Shorten(faults[i].Error()),
			})
			r.Errors = r.Errors[max(0, len(r.Errors)-search.MaxBulkErrors):]
		}
	}
	return nil
}

// apply reads a job in the store and operates on it if it still matches. err is that of failed.
func (o *Operations) apply(ctx context.Context, r *record, q *search.Jobs, id string) (outcome, error) {
	job, err := o.broker.Get(ctx, r.tenant, id)
	if api.ErrorCode(err) == api.CodeJobNotFound {
		return skipped, nil
	}
	if err != nil {
		return failed, err
	}
	if !q.Matches(job) || !allows(r, job) {
		return skipped, nil
	}
	if r.Operation == search.BulkMove && job.UniqueKey != "" {
		return failed, api.Errorf(api.CodeJobState, "the job has a unique key in its queue: it cannot be moved")
	}
	err = operate(ctx, r, o.broker.Unchanged(r.tenant, job))
	switch api.ErrorCode(err) {
	case "":
		return changed, nil
	case api.CodeJobNotFound, api.CodeJobState: // it has changed since it was read
		return skipped, nil
	}
	return failed, err
}

// allows reports whether the state of a job allows the operation and is not its result.
func allows(r *record, job *api.Job) bool {
	switch r.Operation {
	case search.BulkRetry:
		return job.State == api.JobDead || job.State == api.JobCancelled
	case search.BulkCancel:
		return !job.State.Terminal()
	case search.BulkMove:
		return !job.State.Terminal() && job.State != api.JobActive && job.Queue != r.Target
	}
	return job.State != api.JobActive
}

// jobOperations are the operations on one job, of queue.Unchanged.
type jobOperations interface {
	Retry(ctx context.Context) error
	Cancel(ctx context.Context) error
	Move(ctx context.Context, queue string) error
	Delete(ctx context.Context) error
}

func operate(ctx context.Context, r *record, job jobOperations) error {
	switch r.Operation {
	case search.BulkRetry:
		return job.Retry(ctx)
	case search.BulkCancel:
		return job.Cancel(ctx)
	case search.BulkMove:
		return job.Move(ctx, r.Target)
	}
	return job.Delete(ctx)
}
