package triggers_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/triggers"
)

func record(queue, function string) triggers.Record {
	n := trigger.NewQueueTrigger{Function: function}
	return triggers.Record{QueueTrigger: n.Trigger(queue), Principal: api.Principal{Sub: "me", Roles: []string{"admin"}}, Access: api.AccessGranted}
}

// TestLimit: concurrent creations stop at the limit of a namespace.
func TestLimit(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		r, tenant := triggers.New(s), storagetest.Tenant(t)
		var made, refused atomic.Int32
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range trigger.MaxQueueTriggers/4 + 2 {
					_, _, err := r.Put(t.Context(), tenant, "default", record(fmt.Sprintf("q-%d-%d", w, i), "f"), nil, 1)
					switch api.ErrorCode(err) {
					case "":
						made.Add(1)
					case api.CodeTriggerLimit:
						refused.Add(1)
					default:
						t.Errorf("Put: got error %v, want success or code %s", err, api.CodeTriggerLimit)
					}
				}
			})
		}
		wg.Wait()
		if made.Load() != trigger.MaxQueueTriggers || refused.Load() != 8 {
			t.Errorf("got %d made and %d refused, want %d and 8", made.Load(), refused.Load(), trigger.MaxQueueTriggers)
		}
		all, err := r.All(t.Context())
		of := slices.DeleteFunc(all, func(f triggers.Found) bool { return f.Tenant != tenant })
		if err != nil || len(of) != trigger.MaxQueueTriggers {
			t.Errorf("All: got %d of the tenant, error %v, want %d", len(of), err, trigger.MaxQueueTriggers)
		}
	})
}

// TestConcurrentChanges: of changes at the same revision one takes effect, and the others see it.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		r, tenant := triggers.New(s), storagetest.Tenant(t)
		if _, _, err := r.Put(t.Context(), tenant, "default", record("q", "f"), nil, 1); err != nil {
			t.Fatalf("Put: %v", err)
		}
		var won atomic.Int32
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				change, revision := record("q", "f"), int64(1)
				change.BatchSize = w + 20
				_, _, err := r.Put(t.Context(), tenant, "default", change, &revision, 2)
				switch api.ErrorCode(err) {
				case "":
					won.Add(1)
				case api.CodePreconditionFailed:
				default:
					t.Errorf("Put: got error %v, want success or code %s", err, api.CodePreconditionFailed)
				}
			})
		}
		wg.Wait()
		got, err := r.Get(t.Context(), tenant, "default", "q")
		if err != nil || won.Load() != 1 || got.Revision != 2 || got.CreatedAtMS != 1 || got.UpdatedAtMS != 2 {
			t.Errorf("got %d changes and %+v, error %v, want one, at revision 2", won.Load(), got, err)
		}
	})
}

// TestSlots: replicas hold as many slots as the trigger has, a slot that is left is free, and one
// whose replica died ends.
func TestSlots(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx := t.Context()
		var now atomic.Int64
		now.Store(s.NowMS())
		here, there := triggers.NewSlots(triggers.New(s), now.Load), triggers.NewSlots(triggers.New(s), now.Load)
		found := &triggers.Found{Tenant: storagetest.Tenant(t), Namespace: "default", Record: record("q", "f")}
		found.Concurrency = 2
		enter := func(of *triggers.Slots, want bool) *triggers.Slot {
			t.Helper()
			slot, err := of.Enter(ctx, found)
			if err != nil || (slot != nil) != want {
				t.Fatalf("Enter: got %v and error %v, want a slot: %v", slot, err, want)
			}
			return slot
		}
		first := enter(here, true)
		enter(there, true)
		enter(here, false)
		if err := here.Leave(ctx, first); err != nil {
			t.Fatalf("Leave: %v", err)
		}
		enter(here, true)
		// here renews, there has died.
		for range 4 {
			now.Add(6000)
			if err := here.Renew(ctx); err != nil {
				t.Fatalf("Renew: %v", err)
			}
		}
		enter(here, true)
		enter(here, false)
	})
}

// TestLostSlotsAreTakenAgain: a replica that could not renew its slot in time takes it again as soon
// as there is room.
func TestLostSlotsAreTakenAgain(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		var now atomic.Int64
		now.Store(s.NowMS())
		here, there := triggers.NewSlots(triggers.New(s), now.Load), triggers.NewSlots(triggers.New(s), now.Load)
		found := &triggers.Found{Tenant: storagetest.Tenant(t), Namespace: "default", Record: record("q", "f")}
		found.Concurrency = 1
		if slot, err := here.Enter(t.Context(), found); err != nil || slot == nil {
			t.Fatalf("Enter: got %v and error %v, want a slot", slot, err)
		}
		now.Add(time.Minute.Milliseconds())
		taken, err := there.Enter(t.Context(), found)
		if err != nil || taken == nil {
			t.Fatalf("Enter after the slot ended: got %v and error %v, want a slot", taken, err)
		}
		renew := func() {
			t.Helper()
			if err := here.Renew(t.Context()); err != nil {
				t.Fatalf("Renew: %v", err)
			}
		}
		renew() // all are taken
		if err := there.Leave(t.Context(), taken); err != nil {
			t.Fatalf("Leave: %v", err)
		}
		renew()
		if slot, err := there.Enter(t.Context(), found); err != nil || slot != nil {
			t.Errorf("Enter after the lost slot was taken again: got %v and error %v, want none", slot, err)
		}
	})
}

// TestIndex: a view follows the changes of other processes.
func TestIndex(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		r, tenant := triggers.New(s), storagetest.Tenant(t)
		x := triggers.NewIndex(r)
		if err := s.Subscribe(t.Context(), func(c storage.Change) {
			if c.Kind == storage.ChangeTrigger {
				x.ReadSoon(triggers.Space{Tenant: c.Tenant, Namespace: c.Namespace})
			}
		}); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		q := triggers.Queue{Tenant: tenant, Namespace: "default", Queue: "q"}
		changed := make(chan triggers.Queue, 1000)
		go x.Follow(t.Context(), func(c triggers.Queue) {
			if c.Tenant == tenant {
				changed <- c
			}
		}, zap.NewNop())
		if _, _, err := r.Put(t.Context(), tenant, "default", record("q", "f"), nil, 1); err != nil {
			t.Fatalf("Put: %v", err)
		}
		<-changed
		if got := x.Of(q); got == nil || got.Function != "f" || !slices.Contains(x.Some(100), q) {
			t.Errorf("got %+v, want the trigger of q", got)
		}
		off := record("q", "f")
		off.Enabled = false
		if _, _, err := r.Put(t.Context(), tenant, "default", off, nil, 2); err != nil {
			t.Fatalf("Put: %v", err)
		}
		if _, _, err := r.Put(t.Context(), tenant, "default", record("r", "f"), nil, 2); err != nil {
			t.Fatalf("Put: %v", err)
		}
		if c := <-changed; c.Queue != "r" {
			t.Fatalf("got a change of %v, want r", c)
		}
		if got := x.Of(q); got != nil {
			t.Errorf("got %+v for a disabled trigger, want none", got)
		}
	})
}

// TestQuota: the triggers of a tenant are limited over all of its namespaces, and a deleted one
// counts no more.
func TestQuota(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		quotastest.Limit(t, s, quota.TenantLimits{Triggers: 3})
		r, tenant := triggers.New(s), storagetest.Tenant(t)
		put := func(namespace string) error {
			_, _, err := r.Put(t.Context(), tenant, namespace, record("q", "f"), nil, 1)
			return err
		}
		for _, namespace := range []string{"a", "b", "c", "a"} { // the last one changes nothing
			if err := put(namespace); err != nil {
				t.Fatalf("Put in %s: %v", namespace, err)
			}
		}
		if err := put("d"); api.ErrorCode(err) != api.CodeTenantQuota {
			t.Errorf("Put of a fourth trigger: got error %v, want %s", err, api.CodeTenantQuota)
		}
		if err := r.Delete(t.Context(), tenant, "a", "q", nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if err := put("d"); err != nil {
			t.Errorf("Put after a deletion: got error %v, want none", err)
		}
		if n, err := quotas.Count(t.Context(), s, tenant); err != nil || n == 0 {
			t.Fatalf("Count: %d commands, error %v, want some", n, err)
		}
		if used, err := quotas.Stored(t.Context(), s, tenant); err != nil || used[quota.Triggers] != 3 {
			t.Errorf("Stored: got %d triggers, error %v, want 3", used[quota.Triggers], err)
		}
	})
}

// TestIndexReadsWhatChanged: a change of a trigger reads the triggers of its namespace, not those of
// all tenants.
func TestIndexReadsWhatChanged(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	r, tenant, other := triggers.New(s), storagetest.Tenant(t), storagetest.Tenant(t)
	const namespaces = 50
	for i := range namespaces {
		if _, _, err := r.Put(t.Context(), other, fmt.Sprint("n", i), record("q", "f"), nil, 1); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	x := triggers.NewIndex(r)
	changed := make(chan triggers.Queue, 1000)
	go x.Follow(t.Context(), func(q triggers.Queue) { changed <- q }, zap.NewNop())
	for range namespaces {
		<-changed
	}
	before := storagetest.Calls(t, s.Client())["hgetall"]
	at := triggers.Space{Tenant: tenant, Namespace: "default"}
	if _, _, err := r.Put(t.Context(), at.Tenant, at.Namespace, record("q", "f"), nil, 1); err != nil {
		t.Fatalf("Put: %v", err)
	}
	x.ReadSoon(at)
	if got, want := <-changed, (triggers.Queue{Tenant: tenant, Namespace: "default", Queue: "q"}); got != want {
		t.Errorf("got a change of %v, want of %v", got, want)
	}
	if reads := storagetest.Calls(t, s.Client())["hgetall"] - before; reads != 1 {
		t.Errorf("one change: got %d reads of triggers, want 1", reads)
	}
	count := func(most int) map[string]int {
		out := map[string]int{}
		for _, q := range x.Some(most) {
			out[q.Tenant]++
		}
		return out
	}
	if diff := cmp.Diff(map[string]int{tenant: 1, other: 10}, count(10)); diff != "" {
		t.Errorf("queues of Some(10), by tenant (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{tenant: 1, other: namespaces}, count(1000)); diff != "" {
		t.Errorf("queues of Some(1000), by tenant (-want +got):\n%s", diff)
	}
}
