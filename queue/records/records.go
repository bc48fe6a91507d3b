// Package records reads the jobs of a store for copies of them: many at a time, and by the sets of
// their queues. It changes nothing.
package records

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
)

// maxKeys is the number of keys of one command that reads short values.
const maxKeys = 512

// Reader reads jobs. It is safe for concurrent use.
type Reader struct {
	store *storage.Store
	jobs  *jobstore.Store
	log   *zap.Logger
}

// New returns a reader of the jobs in store, which is that of jobs.
func New(store *storage.Store, jobs *jobstore.Store, log *zap.Logger) *Reader {
	return &Reader{store, jobs, log}
}

// Read reads jobs of a tenant as Broker.Get returns them, and passes them to each in parts of about 1
// MiB, in the order of ids. A job that does not exist has no View. One that cannot be decoded is
// logged and left out. Errors: those of each, and CodeStoreUnavailable.
func (r *Reader) Read(ctx context.Context, tenant string, ids []string, each func([]mirror.Job) error) error {
	done := 0
	for part, err := range r.jobs.Parts(ctx, tenant, ids, jobstore.DetailFields...) {
		if err != nil {
			if storage.Fatal(ctx, err) || done >= len(ids) {
				return err
			}
			return r.readOneByOne(ctx, tenant, ids[done:], each)
		}
		jobs, err := r.views(ctx, tenant, ids[done:done+len(part)], part)
		if storage.Fatal(ctx, err) {
			return err
		}
		if err != nil {
			return r.readOneByOne(ctx, tenant, ids[done:], each)
		}
		if err := each(jobs); err != nil {
			return err
		}
		done += len(part)
	}
	return nil
}

// readOneByOne is Read where one of the jobs cannot be decoded.
func (r *Reader) readOneByOne(ctx context.Context, tenant string, ids []string, each func([]mirror.Job) error) error {
	for _, id := range ids {
		found, err := r.jobs.FindWith(ctx, tenant, id, jobstore.DetailFields...)
		if storage.Fatal(ctx, err) {
			return err
		}
		var jobs []mirror.Job
		if err == nil {
			jobs, err = r.views(ctx, tenant, []string{id}, []*jobstore.Record{found})
		}
		if storage.Fatal(ctx, err) {
			return err
		}
		if err != nil {
			r.log.Warn("a job cannot be decoded; the mirror leaves it out", zap.String("tenant", tenant), zap.String("job", id), zap.Error(err))
			continue
		}
		if err := each(jobs); err != nil {
			return err
		}
	}
	return nil
}

// views returns records as jobs, with the errors and attempts of those that have any.
func (r *Reader) views(ctx context.Context, tenant string, ids []string, found []*jobstore.Record) ([]mirror.Job, error) {
	keys, pipe := r.store.JobKeys(tenant), r.store.Client().Pipeline()
	lists := make([]*redis.StringSliceCmd, len(found))
	for i, record := range found {
		if record != nil && record.MayHaveAttempts() {
			lists[i] = pipe.LRange(ctx, keys.Errors(ids[i]), 0, -1)
		}
	}
	if pipe.Len() > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, jobstore.Failure(ctx, "read the errors of jobs", err)
		}
	}
	out := make([]mirror.Job, len(found))
	for i, record := range found {
		out[i] = mirror.Job{Tenant: tenant, ID: ids[i]}
		if record == nil {
			continue
		}
		view := record.View(tenant)
		var stored []string
		if lists[i] != nil {
			stored = lists[i].Val()
		}
		if err := record.AddAttempts(view, stored); err != nil {
			return nil, err
		}
		doc, err := api.EncodeJSON(view)
		if err != nil {
			return nil, err
		}
		out[i].Run, out[i].View, out[i].Doc = record.Stored, view, doc
	}
	return out, nil
}

// Runs returns the versions of the jobs of rows, in their order, "" for those that do not exist, and
// the number of commands that it took. Errors: CodeStoreUnavailable.
func (r *Reader) Runs(ctx context.Context, rows []mirror.Row) (runs []string, commands int, err error) {
	pipe, size := r.store.Client().Pipeline(), maxKeys
	if _, cluster := r.store.Client().(*redis.ClusterClient); cluster {
		size = 1 // two jobs may be on two servers
	}
	var replies []*redis.SliceCmd
	for part := range slices.Chunk(rows, size) {
		keys := make([]string, len(part))
		for i := range part {
			keys[i] = r.store.JobKeys(part[i].Tenant).Run(part[i].ID)
		}
		replies = append(replies, pipe.MGet(ctx, keys...))
	}
	if len(replies) == 0 {
		return nil, 0, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, len(replies), jobstore.Failure(ctx, "read jobs", err)
	}
	for _, reply := range replies {
		runs = append(runs, jobstore.Words(reply.Val())...)
	}
	return runs, len(replies), nil
}

// Queues returns the queues of a tenant, each as namespace/queue, in order. Errors:
// CodeStoreUnavailable.
func (r *Reader) Queues(ctx context.Context, tenant string) (queues []string, commands int, err error) {
	return r.store.Members(ctx, r.store.JobKeys(tenant).Queues())
}

// Sets returns the keys of the sets of a queue's jobs of one state. Every member is the id of a job.
func (r *Reader) Sets(tenant, namespace, queue string, state api.JobState) []string {
	return r.jobs.Sets(jobstore.Queue{Tenant: tenant, Namespace: namespace, Name: queue}, state)
}
