package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// TestEachPriorityHasAnIndex: with one set for all priorities, reading an empty priority on KVRocks
// would walk over the deleted entries of the next one.
func TestEachPriorityHasAnIndex(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		priorities := []api.Priority{api.PriorityLow, api.PriorityNormal, api.PriorityCritical, api.PriorityHigh}
		var ids []string
		for _, p := range slices.Concat(priorities, priorities) {
			j := job(`1`)
			j.Priority = p
			ids = append(ids, f.add(t, j)[0].ID)
		}
		order := []string{ids[2], ids[6], ids[3], ids[7], ids[1], ids[5], ids[0], ids[4]}
		k := f.store.JobKeys(f.tenant).Queue(namespace, emails)
		for i, p := range []api.Priority{api.PriorityCritical, api.PriorityHigh, api.PriorityNormal, api.PriorityLow} {
			members, err := f.store.Client().ZRange(t.Context(), k.Pending(p), 0, -1).Result()
			if want := order[2*i : 2*i+2]; err != nil || !slices.Equal(members, want) {
				t.Errorf("%s: got %v, %v; want %v", k.Pending(p), members, err, want)
			}
		}
		for _, limit := range []int{1, 2, 3, 8} {
			var listed []string
			for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
				page, next, err := f.List(t.Context(), queue.List{
					Tenant: f.tenant, Namespace: namespace, Queue: emails, State: api.JobPending, Cursor: cursor, Limit: limit,
				})
				if err != nil || len(page) == 0 || len(page) > limit {
					t.Fatalf("List behind %q: got %d jobs and error %v, want 1 to %d", cursor, len(page), err, limit)
				}
				for _, j := range page {
					listed = append(listed, j.ID)
				}
				cursor = next
			}
			if !slices.Equal(listed, order) {
				t.Errorf("pages of %d: got %v, want %v", limit, listed, order)
			}
		}
		if q, err := f.GetQueue(t.Context(), f.tenant, namespace, emails); err != nil || q.Depths[api.JobPending] != int64(len(ids)) {
			t.Errorf("depth: got %+v, %v; want %d pending", q, err, len(ids))
		}
		var fetched []string
		for _, j := range f.fetch(t, len(ids)) {
			fetched = append(fetched, j.ID)
		}
		if !slices.Equal(fetched, order) {
			t.Errorf("fetched: got %v, want %v", fetched, order)
		}
		f.sound(t, ids...)
	})
}

// TestEntriesOfOtherPrioritiesAreMoved: earlier releases kept all pending jobs in one set. Entries of
// other priorities in it do not hinder fetches, and a repairer moves them to their sets.
func TestEntriesOfOtherPrioritiesAreMoved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		k := f.store.JobKeys(f.tenant).Queue(namespace, emails)
		var ids []string
		for _, p := range []api.Priority{api.PriorityCritical, api.PriorityLow} {
			j := job(`1`)
			j.Priority = p
			id := f.add(t, j)[0].ID
			ids = append(ids, id)
			entry := f.members(t, k.Pending(p))[0]
			pipe := f.store.Client().Pipeline()
			pipe.ZRem(t.Context(), k.Pending(p), id)
			pipe.ZAdd(t.Context(), k.Pending(api.PriorityNormal), entry)
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatalf("Exec: %v", err)
			}
		}
		normal := f.add(t, job(`2`))[0].ID
		if got := f.fetch(t, 3); len(got) != 1 || got[0].ID != normal {
			t.Errorf("before the repair: got %+v, want job %s alone", got, normal)
		}
		f.clock.advance(2 * time.Minute)
		findings, err := f.NewRepairer().Queues(t.Context(), f.tenant, f.clock.ms.Load(), 1000)
		if err != nil || len(findings.Repairs) != len(ids) {
			t.Errorf("repairs: got %+v, %v; want %d", findings.Repairs, err, len(ids))
		}
		var fetched []string
		for _, j := range f.fetch(t, 3) {
			fetched = append(fetched, j.ID)
		}
		if !slices.Equal(fetched, ids) {
			t.Errorf("fetched behind the repair: got %v, want %v", fetched, ids)
		}
		f.sound(t, append(ids, normal)...)
	})
}
