package bulk

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
	"github.com/codesous/sous/storage/storagetest"
)

const (
	namespace = "shop"
	mail      = "mail"
)

// fixture has the operations of a replica with a mirror, over a store of its own, since the due set is
// that of all tenants.
type fixture struct {
	*Operations
	mirror *mirror.Mirror
	ms     *atomic.Int64
	tenant string
}

func (f *fixture) advance(d time.Duration) { f.ms.Add(d.Milliseconds()) }

// each runs test on stores of several kinds.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	for name, config := range storagetest.OwnStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ms := &atomic.Int64{}
			ms.Store(1_760_000_000_000)
			cfg := config(t)
			cfg.Clock = func() time.Time { return time.UnixMilli(ms.Load()) }
			store := storagetest.Open(t, cfg)
			broker, err := queue.New(t.Context(), store, queue.Config{})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			t.Cleanup(broker.Close)
			f := &fixture{ms: ms, tenant: storagetest.Tenant(t)}
			f.replica(t, store, broker)
			test(t, f)
		})
	}
}

// replica sets f to the operations and the empty mirror of a new replica.
func (f *fixture) replica(t *testing.T, store *storage.Store, broker *queue.Broker) {
	t.Helper()
	m, err := mirror.New(mirror.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("mirror.New: %v", err)
	}
	if _, _, err := m.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	m.SetServing()
	f.mirror = m
	// The deadline is long: the machine of the tests may be busy.
	f.Operations, err = New(store, broker, mirrorsearch.New(mirrorsearch.Of(m), time.Minute), nil)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
}

// add enqueues jobs, later than all before.
func (f *fixture) add(t *testing.T, tenant, name string, jobs ...api.NewJob) (ids []string) {
	t.Helper()
	added, err := f.broker.Enqueue(t.Context(), queue.Enqueue{Tenant: tenant, Namespace: namespace, Queue: name, Jobs: jobs})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	for _, job := range added {
		ids = append(ids, job.ID)
	}
	f.advance(time.Second)
	return ids
}

// some returns n jobs.
func some(n int) []api.NewJob {
	return slices.Repeat([]api.NewJob{{Payload: json.RawMessage(`1`)}}, n)
}

// reflect writes the present state of jobs to the mirror.
func (f *fixture) reflect(t *testing.T, tenant string, ids ...string) {
	t.Helper()
	var batch mirror.Batch
	for _, id := range ids {
		job := f.job(t, tenant, id)
		doc, err := api.EncodeJSON(job)
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		batch.Jobs = append(batch.Jobs, mirror.Job{Tenant: tenant, ID: id, Run: "1", View: job, Doc: doc})
	}
	if _, err := f.mirror.Apply(t.Context(), &batch); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

func (f *fixture) job(t *testing.T, tenant, id string) *api.Job {
	t.Helper()
	job, err := f.broker.Get(t.Context(), tenant, id)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return job
}

// cancelled adds n jobs that are cancelled, also in the mirror.
func (f *fixture) cancelled(t *testing.T, tenant string, n int) (ids []string) {
	t.Helper()
	ids = f.add(t, tenant, mail, some(n)...)
	for _, id := range ids {
		if _, err := f.broker.Cancel(t.Context(), tenant, id); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
	}
	f.advance(time.Second)
	f.reflect(t, tenant, ids...)
	return ids
}

// retry creates an operation that retries cancelled jobs.
func (f *fixture) retry(t *testing.T, tenant string) *search.Bulk {
	t.Helper()
	return f.create(t, tenant, &search.NewBulk{Operation: search.BulkRetry, Selection: search.Selection{States: []api.JobState{api.JobCancelled}}})
}

func (f *fixture) create(t *testing.T, tenant string, n *search.NewBulk) *search.Bulk {
	t.Helper()
	b, created, err := f.Create(event.WithActor(t.Context(), "key_1"), tenant, "", n)
	if err != nil || !created {
		t.Fatalf("Create: got created %t (%v), want true", created, err)
	}
	f.advance(time.Second)
	return b
}

// finish runs rounds until the operation has ended.
func (f *fixture) finish(t *testing.T, tenant, id string) *search.Bulk {
	t.Helper()
	for range 100 {
		if b := f.get(t, tenant, id); b.State != search.BulkRunning {
			return b
		}
		f.round(t)
	}
	t.Fatalf("got operation %+v, want it ended after 100 rounds", f.get(t, tenant, id))
	return nil
}

func (f *fixture) round(t *testing.T) {
	t.Helper()
	if _, err := f.RunOnce(t.Context()); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	f.advance(time.Minute)
}

func (f *fixture) get(t *testing.T, tenant, id string) *search.Bulk {
	t.Helper()
	b, err := f.Get(t.Context(), tenant, id)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return b
}

// expect checks the counts of an operation.
func expect(t *testing.T, b *search.Bulk, state search.BulkState, done, skipped, failed int64) {
	t.Helper()
	if b.State != state || b.Done != done || b.Skipped != skipped || b.Failed != failed {
		t.Errorf("got state %s, done %d, skipped %d, failed %d (%s, %+v); want %s, %d, %d, %d", b.State, b.Done, b.Skipped, b.Failed, b.Error, b.Errors, state, done, skipped, failed)
	}
}

// refused checks the code of an error.
func refused(t *testing.T, err error, want api.Code) {
	t.Helper()
	if got := api.ErrorCode(err); got != want {
		t.Errorf("got code %q (%v), want %s", got, err, want)
	}
}
