package controlplane_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/documents"
)

// feedReads counts how often a feed is read from a store.
type feedReads struct{ n atomic.Int64 }

func (f *feedReads) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (f *feedReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (f *feedReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "xrange" {
				f.n.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

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
	var reads feedReads
	store.Client().AddHook(&reads)
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
	if most := 3 + int64(time.Since(begin)/pause); reads.n.Load() > most {
		t.Errorf("got %d reads for %d writes in %v, want at most %d", reads.n.Load(), writes, time.Since(begin), most)
	}
}
