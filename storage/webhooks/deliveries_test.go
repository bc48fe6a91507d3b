package webhooks_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// An event of the log is delivered again while the rest of its last delivery, which a crash left, is
// removed: the new delivery has a time.
func TestDeliveryThatIsAddedWhileARestIsRemoved(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s, newKeys(t))
		rec, m := f.taken(t)
		if err := f.settle(t, f.hooks, rec, m, webhook.Delivery{Result: webhook.Failed, Status: 400}, 1_000); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		items, _, err := f.hooks.Deliveries(t.Context(), f.tenant, "one", "", 10)
		if err != nil || len(items) != 1 {
			t.Fatalf("Deliveries: got %+v and error %v, want one", items, err)
		}
		due := f.store.Keys().Webhook(f.tenant, rec.ID).Due()
		if err := s.Client().ZAdd(t.Context(), due, redis.Z{Score: 1, Member: string(m)}).Err(); err != nil { // the rest
			t.Fatalf("ZAdd: %v", err)
		}
		var once sync.Once
		s.Client().AddHook(storagetest.Before(func(cmds []redis.Cmder) {
			if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Name() == "zrem" }) {
				once.Do(func() {
					if _, err := f.hooks.Redeliver(t.Context(), f.tenant, "one", items[0].ID); err != nil {
						t.Errorf("Redeliver: %v", err)
					}
				})
			}
		}))
		if d, _, found, err := f.hooks.Pending(t.Context(), f.tenant, rec.ID, m); err != nil || found {
			t.Errorf("Pending: got %+v, %t and error %v, want none", d, found, err)
		}
		if pending, times := f.stored(t, rec); !slices.Equal(pending, []string{string(m)}) || !slices.Equal(times, pending) {
			t.Errorf("got deliveries %v at the times of %v, want %s", pending, times, m)
		}
	})
}
