package controlplane_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// Who follows a namespace that is written all the time reads its feed now and then, not
// at each write: a thousand followers would keep the store from everything else.
func TestFollowersReadNowAndThen(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	service, err := documents.New(t.Context(), store, documents.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	h := startOn(t, store, func(c *controlplane.Config) { c.Documents = service })
	events := h.followFeed(t.Context(), t, "", "")
	reads := storagetest.CountCommands(store.Client(), "xrange")
	const writes = 500
	begin := time.Now()
	for range writes {
		put := api.DocumentPut{Namespace: "settings", DocumentItem: api.DocumentItem{Key: "a", Value: json.RawMessage(`1`)}}
		if _, err := service.Put(t.Context(), h.tenant, "crm", put); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	for last := int64(0); last < writes; {
		e, more := <-events
		if !more || e.change.ID != last+1 {
			t.Fatalf("got event %+v after the change %d, want the change %d", e, last, last+1)
		}
		last = e.change.ID
	}
	const pause = 20 * time.Millisecond // as the documentation says
	if most := 3 + int64(time.Since(begin)/pause); reads() > most {
		t.Errorf("got %d reads for %d writes in %v, want at most %d", reads(), writes, time.Since(begin), most)
	}
}
