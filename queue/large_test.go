package queue_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const (
	mib = 1 << 20
	// mostRead is the most that one round trip may read: a part of 1 MiB, or one job of 1 MiB
	// with its run and a spec.
	mostRead = mib + 64<<10
)

// replies is a hook that counts the bytes of replies.
type replies struct{ largest, total atomic.Int64 }

func (*replies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.count(cmd)
		return err
	}
}

func (r *replies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.count(cmds...)
		return err
	}
}

// count adds the replies of one round trip.
func (r *replies) count(cmds ...redis.Cmder) {
	n := int64(0)
	for _, cmd := range cmds {
		if list, ok := cmd.(*redis.SliceCmd); ok {
			for _, v := range list.Val() {
				text, _ := v.(string)
				n += int64(len(text))
			}
		}
	}
	r.total.Add(n)
	for most := r.largest.Load(); n > most && !r.largest.CompareAndSwap(most, n); most = r.largest.Load() {
	}
}

// newLarge returns a broker on a server of its own with n pending jobs of 1 MiB, and the counts
// of the replies from then on.
func newLarge(t *testing.T, n int) (f *fixture, sizes *replies, ids []string) {
	t.Helper()
	f = newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	for range n {
		ids = append(ids, f.add(t, api.NewJob{Payload: text(mib - 2)})[0].ID)
	}
	sizes = &replies{}
	f.store.Client().AddHook(sizes)
	return f, sizes, ids
}

func (r *replies) check(t *testing.T, what string) {
	t.Helper()
	if got := r.largest.Load(); got > mostRead {
		t.Errorf("%s: one round trip read %d bytes, want at most %d", what, got, mostRead)
	}
}

// TestPagesOfLargeJobs: a page ends with 8 MiB of jobs, and one of a filter that excludes all with
// 32 MiB that were read. The next page continues behind it.
func TestPagesOfLargeJobs(t *testing.T) {
	t.Parallel()
	f, sizes, ids := newLarge(t, 36)
	list := queue.List{Tenant: f.tenant, Namespace: namespace, Queue: emails, State: api.JobPending, Limit: api.MaxPageLimit}
	var listed []string
	for {
		items, next, err := f.List(t.Context(), list)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if len(items) == 0 || len(items) > 8 {
			t.Errorf("the page after %q has %d jobs of 1 MiB, want from 1 to 8", list.Cursor, len(items))
		}
		for i := range items {
			listed = append(listed, items[i].ID)
		}
		if got := sizes.total.Swap(0); got > 10*mib {
			t.Errorf("the page after %q read %d bytes, want at most 10 MiB", list.Cursor, got)
		}
		list.Cursor = next
		if next == "" {
			break
		}
	}
	if !slices.Equal(listed, ids) {
		t.Errorf("the pages have %d jobs, want each of %d once and in order", len(listed), len(ids))
	}
	list.Tag = "none"
	items, next, err := f.List(t.Context(), list)
	if err != nil || len(items) > 0 || next == "" {
		t.Errorf("List of a tag: got %d jobs, next %q, error %v, want an empty page with a next", len(items), next, err)
	}
	if got := sizes.total.Swap(0); got > 34*mib {
		t.Errorf("a page of a tag read %d bytes, want at most 34 MiB", got)
	}
	list.Cursor = next
	items, next, err = f.List(t.Context(), list)
	if err != nil || len(items) > 0 || next != "" {
		t.Errorf("the rest of a tag: got %d jobs, next %q, error %v, want none and no next", len(items), next, err)
	}
	sizes.total.Store(0)
	list.Tag, list.Cursor, list.ID = "", "", ids[20]
	items, _, err = f.List(t.Context(), list)
	if err != nil || len(items) != 1 || items[0].ID != ids[20] {
		t.Errorf("List of an id: got %d jobs, error %v, want the job", len(items), err)
	}
	if got := sizes.total.Load(); got > 2*mib {
		t.Errorf("a list of one id read %d bytes, want at most 2 MiB", got)
	}
	sizes.check(t, "List")
}

// TestResultsAndCheckpointsCountInPages: payloads are not all that a page has.
func TestResultsAndCheckpointsCountInPages(t *testing.T) {
	t.Parallel()
	f, sizes, _ := newLarge(t, 0)
	for range 12 {
		f.add(t, job(`1`))
	}
	for _, j := range f.fetch(t, 12) {
		beat := api.JobHeartbeat{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Checkpoint: text(api.MaxCheckpointBytes - 2)}
		if _, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{beat}); err != nil {
			t.Fatalf("Heartbeat: %v", err)
		}
		f.ack(t, j, string(text(mib-2)))
	}
	items, next, err := f.List(t.Context(), queue.List{Tenant: f.tenant, Namespace: namespace, Queue: emails, State: api.JobCompleted})
	if err != nil || len(items) != 7 || next == "" {
		t.Errorf("List: got %d jobs of 1.25 MiB, next %q, error %v, want 7 and a next", len(items), next, err)
	}
	if got := sizes.largest.Load(); got > mostRead+api.MaxCheckpointBytes {
		t.Errorf("one round trip read %d bytes, want at most one job", got)
	}
}

// TestBulkOperationsReadLargeJobsInParts: each operation that reads many jobs, on a broker that
// knows none of them.
func TestBulkOperationsReadLargeJobsInParts(t *testing.T) {
	t.Parallel()
	const n = 6
	f, sizes, ids := newLarge(t, n)
	var leases []api.FetchedJob
	for range n {
		leases = append(leases, f.fetch(t, 1)...)
	}
	step := func(what string, call func(b *queue.Broker) error) {
		t.Helper()
		sizes.largest.Store(0)
		if err := call(brokerOn(t, f.store)); err != nil {
			t.Errorf("%s: got error %v, want none", what, err)
		}
		sizes.check(t, what)
	}
	count := func(got int, err error) error {
		if err == nil && got != n {
			t.Errorf("got %d jobs, want %d", got, n)
		}
		return err
	}
	step("Heartbeat", func(b *queue.Broker) error {
		var beats []api.JobHeartbeat
		for _, j := range leases {
			beats = append(beats, api.JobHeartbeat{ID: j.ID, LeaseEpoch: j.LeaseEpoch})
		}
		out, err := b.Heartbeat(t.Context(), f.tenant, beats)
		return count(len(out), err)
	})
	step("Standing", func(b *queue.Broker) error {
		out, err := b.Standing(t.Context(), f.tenant, ids)
		return count(len(out), err)
	})
	for _, j := range leases {
		f.fail(t, j, func(fail *api.JobFail) { fail.Fatal = true })
	}
	step("Redrive", func(b *queue.Broker) error {
		return count(b.Redrive(t.Context(), queue.Redrive{Tenant: f.tenant, Namespace: namespace, Queue: emails}))
	})
	step("Clear", func(b *queue.Broker) error { return count(b.Clear(t.Context(), f.tenant, namespace, emails)) })
	call := queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, IdempotencyKey: "k"}
	for range n {
		call.Jobs = append(call.Jobs, api.NewJob{Payload: text(mib - 2)})
	}
	for range 2 { // the second is a repeat, which reads the jobs
		step("Enqueue", func(b *queue.Broker) error {
			out, err := b.Enqueue(t.Context(), call)
			return count(len(out), err)
		})
	}
	for range n {
		f.ack(t, f.fetch(t, 1)[0], `1`)
	}
	step("DeleteQueue", func(b *queue.Broker) error { return b.DeleteQueue(t.Context(), f.tenant, namespace, emails) })
}

// TestPagesOfLargeBatches: a list of batches ends with 8 MiB of callbacks.
func TestPagesOfLargeBatches(t *testing.T) {
	t.Parallel()
	f, sizes, _ := newLarge(t, 0)
	const n = 12
	for range n {
		if _, err := f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: emails, NewJob: api.NewJob{Payload: text(mib - 2)}}); err != nil {
			t.Fatalf("CreateBatch: %v", err)
		}
	}
	seen, pages := map[string]bool{}, 0
	for after := ""; ; pages++ {
		items, next, err := f.ListBatches(t.Context(), f.tenant, namespace, after, api.MaxPageLimit)
		if err != nil || len(items) == 0 || len(items) > 8 {
			t.Fatalf("ListBatches: got %d batches with callbacks of 1 MiB, error %v, want from 1 to 8", len(items), err)
		}
		for i := range items {
			if seen[items[i].ID] {
				t.Errorf("got batch %s twice, want it once", items[i].ID)
			}
			seen[items[i].ID] = true
		}
		after = next
		if next == "" {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("the pages have %d batches, want %d", len(seen), n)
	}
	sizes.check(t, "ListBatches")
}

// TestMaintenanceTakesLargeChainsInParts: one visit keeps at most 8 MiB of jobs, and the next one
// continues.
func TestMaintenanceTakesLargeChainsInParts(t *testing.T) {
	t.Parallel()
	f, sizes, _ := newLarge(t, 0)
	const n = 12
	for range n {
		f.add(t, job(`1`, func(j *api.NewJob) {
			j.RunAtMS = f.clock.ms.Load() + 1
			j.Chain = &api.Chain{Steps: []api.ChainStep{{NewJob: api.NewJob{Payload: text(mib - 2)}}}}
		}))
	}
	f.clock.advance(time.Second)
	promoted := 0
	for visits := 1; promoted < n; visits++ {
		got := f.tend(t).Promoted
		if got == 0 || got > 8 {
			t.Fatalf("visit %d: promoted %d jobs of 1 MiB, want from 1 to 8", visits, got)
		}
		promoted += got
	}
	sizes.check(t, "Tend")
}
