package invoker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// No more run than the version allows, and none is refused for it.
func TestAsyncRespectsMaxConcurrency(t *testing.T) {
	eachWorking(t, func(b *bench) {
		config := asynchronous(1)
		config.MaxConcurrency = 2
		b.publish("narrow", `export default () => new Promise((r) => setTimeout(r, 40));`, config)
		var ids []string
		for range 50 {
			ids = append(ids, b.enqueue("narrow", "null"))
		}
		most, mostHeld := 0, 0
		b.eventually("all have run", func() bool {
			mostHeld = max(mostHeld, b.engine.LeasedJobs())
			running, ended := 0, 0
			for _, a := range b.list("narrow") {
				switch a.Status {
				case api.StatusRunning:
					running++
				case api.StatusSuccess:
					ended++
				}
			}
			// A record may say running while its place is another's already.
			most = max(most, running)
			return ended == len(ids)
		})
		if most > 4 {
			b.t.Errorf("got %d concurrent runs, want at most 4", most)
		}
		// Beside those that run some are being settled; none is taken to wait.
		if mostHeld > 8 {
			b.t.Errorf("got %d leased jobs, want at most 8", mostHeld)
		}
		for _, id := range ids {
			if j := b.job(id); j.Attempt != 1 || len(j.Errors) > 0 {
				b.t.Errorf("job %s: got attempt %d, errors %+v, want attempt 1 without errors", id, j.Attempt, j.Errors)
			}
		}
	})
}

// A worker that is stopped while jobs come loses none and repeats none.
func TestAsyncCleanStop(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	open := func() *storage.Store { return storagetest.Open(t, storage.Config{URL: server.URL}) }
	here, there := newBench(t, open()), newBench(t, open())
	there.tenant = here.tenant
	config := asynchronous(3)
	config.MaxConcurrency = 20
	here.publish("count", `export default async (n, ctx) => { await new Promise((r) => setTimeout(r, 20)); return ctx.attempt; };`, config)
	there.work()
	var mu sync.Mutex
	var ids []string
	ctx, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				out, err := there.engine.Enqueue(context.WithoutCancel(ctx), there.invocation("count", "1"))
				if err != nil {
					t.Errorf("Enqueue: %v", err)
					return
				}
				mu.Lock()
				ids = append(ids, out.ActivationID)
				mu.Unlock()
				time.Sleep(2 * time.Millisecond) // the load's pace
			}
		})
	}
	for range 3 {
		stop := here.work()
		here.eventually("it has work", func() bool { return here.engine.LeasedJobs() > 0 })
		stop()
		if n := here.engine.LeasedJobs(); n != 0 {
			t.Errorf("got %d leased jobs after the stop, want none", n)
		}
	}
	end()
	load.Wait()
	for _, id := range ids {
		if a := here.ends(id); a.Status != api.StatusSuccess || a.Attempt != 1 || string(a.Result) != "1" {
			t.Errorf("activation %s: got status %s, attempt %d, result %s, want success with 1 at attempt 1", id, a.Status, a.Attempt, a.Result)
		}
	}
	t.Logf("%d invocations", len(ids))
}

// An engine that closes returns long runs to their queues, and their attempts do not count.
func TestAsyncGivesBack(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	open := func() *storage.Store { return storagetest.Open(t, storage.Config{URL: server.URL}) }
	here, there := newBench(t, open()), newBench(t, open())
	there.tenant = here.tenant
	config := asynchronous(1)
	config.TimeoutMS = 60_000
	here.publish("long", `export default async (e, ctx) => { console.log("began"); if (!(await cs.kv.get("n"))) { await cs.kv.set("n", 1); await new Promise((r) => setTimeout(r, 50000)); } return ctx.attempt; };`, config)
	id := here.enqueue("long", "1")
	stop := here.work()
	here.eventually("it runs", func() bool { return here.kv("n") != "" })
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = here.engine.Close(ctx) // its wait ran out, as it should
	<-ended
	if a := here.stored(id); a.Status != api.StatusQueued || a.Attempt != 0 {
		t.Errorf("got released activation %+v, want it queued at attempt 0", a)
	}
	there.work()
	if a := there.ends(id); a.Status != api.StatusSuccess || string(a.Result) != "1" || a.Attempt != 1 {
		t.Errorf("on the other replica: got status %s, result %s, attempt %d, want success with 1 at attempt 1", a.Status, a.Result, a.Attempt)
	}
	if lines, _, err := activations.NewLogs(there.store).Read(t.Context(), there.tenant, id, activations.LogCursor{}, 10); err != nil || len(lines) != 2 {
		t.Errorf("logs: got %+v and error %v, want 2 lines", lines, err)
	}
}

// An idle worker reads the 16 ready sets at most every five seconds.
func TestAsyncIdleCostsLittle(t *testing.T) {
	t.Parallel()
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.engine.Work(ctx) })
	defer wg.Wait()
	defer cancel()
	b.publish("echo", `export default (e) => e;`, asynchronous(1))
	b.ends(b.enqueue("echo", "1"))
	polls := func() int64 { return storagetest.Calls(t, b.store.Client())["zrangebyscore"] }
	// From one poll to the one after the next; the first may come at once.
	from := polls()
	b.eventually("it polls", func() bool { return polls() >= from+storage.DueShards })
	var began time.Time
	began, from = time.Now(), polls()
	b.eventually("it polls again", func() bool { return polls() >= from+2*storage.DueShards })
	if took := time.Since(began); took < 7*time.Second {
		t.Errorf("got two polls within %s, want at least 7 s", took)
	}
}
