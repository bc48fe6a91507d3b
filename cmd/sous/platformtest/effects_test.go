package platformtest_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// Servers that are killed at random moments leave no effect without a record: an
// activation is in the store before its function's first write.
func TestEveryEffectHasARecord(t *testing.T) {
	t.Parallel()
	const (
		kills   = 8
		callers = 8
		prefix  = "effect:"
	)
	store := storagetest.Redis(t)
	server := platformtest.Serve(t, store.URL)
	server.Publish(t, "writer", `{"timeout_ms": 1000, "capabilities": {"kv": {"prefixes": ["effect:"], "ops": ["set"]}}}`, map[string]string{
		"function.js": `export default async (event, ctx) => {
  await cs.kv.set("effect:" + ctx.activation_id, "x");
  await new Promise((r) => setTimeout(r, 5 * Math.random()));
};`,
	})
	for range kills {
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		runs := make(chan bool, 1)
		for range callers {
			load.Go(func() {
				for ctx.Err() == nil {
					_, err := server.Web(ctx, "writer", nil) // the killed server answers nothing
					select {
					case runs <- err == nil:
					default:
					}
				}
			})
		}
		if !<-runs {
			t.Error("the first call failed, want an answer")
		}
		kill := time.NewTimer(rand.N(200 * time.Millisecond))
		<-kill.C
		if err := server.Kill(); err != nil {
			t.Fatalf("Kill: %v", err)
		}
		stop()
		load.Wait()
		server = platformtest.Serve(t, store.URL)
	}
	s := storagetest.Open(t, storage.Config{URL: store.URL})
	effects, unended := 0, 0
	keys := s.Client().Scan(t.Context(), 0, "cs:kv:"+platformtest.Tenant+":"+platformtest.Namespace+":"+prefix+"*", 1000).Iterator()
	records := activations.New(s)
	for keys.Next(t.Context()) {
		effects++
		id := keys.Val()[strings.LastIndex(keys.Val(), ":")+1:]
		a, err := records.Get(t.Context(), platformtest.Tenant, id)
		if err != nil {
			t.Errorf("the effect of activation %s: got %v, want its record", id, err)
			continue
		}
		if a.Status == api.StatusRunning || a.Error != nil && a.Error.Type == api.ErrLost {
			unended++
		}
	}
	if err := keys.Err(); err != nil {
		t.Fatalf("scan the activations: %v", err)
	}
	if effects < kills || unended < kills/2 {
		t.Errorf("got %d effects, %d of them interrupted; want both above 0", effects, unended)
	}
}
