package webhooks_test

import (
	"testing"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

// Two dispatchers that read from one position: the second one writes nothing, or the events that the
// first one has delivered since would be delivered once more, and the position would move back.
func TestTakeFromAnOldPositionWritesNothing(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s, newKeys(t))
		f.create(t, "one")
		rec := f.record(t, "one")
		from := f.position(t, rec)
		of, to := f.happen(t, 3)
		take := func(of []event.Event, to events.Position) bool {
			moved, err := f.hooks.Take(t.Context(), f.tenant, rec.ID, of, from, to)
			if err != nil {
				t.Fatalf("Take: %v", err)
			}
			return moved
		}
		if !take(of, to) {
			t.Fatal("Take: got the position unmoved, want it moved")
		}
		for i := range of {
			if err := f.settle(t, f.hooks, rec, webhooks.MemberOf(&of[i]), webhook.Delivery{Result: webhook.Delivered, Status: 200}, 0); err != nil {
				t.Fatalf("Settle: %v", err)
			}
		}
		behind := events.Position(of[0].ID)
		for name, got := range map[string]bool{"a shorter page": take(of[:1], behind), "a longer page": take(of, to+"1")} {
			pending, due := f.stored(t, rec)
			if at := f.position(t, rec); got || at != to || len(pending)+len(due) != 0 {
				t.Errorf("%s: got moved %t, position %s and deliveries %v at the times of %v, want false, %s and none", name, got, at, pending, due, to)
			}
		}
		if !take(of, to) {
			t.Error("the same page again, after a lost answer: got the position of another, want that of the caller")
		}
		if pending, due := f.stored(t, rec); len(pending)+len(due) != 0 {
			t.Errorf("the same page again: got deliveries %v at the times of %v, want none", pending, due)
		}
	})
}
