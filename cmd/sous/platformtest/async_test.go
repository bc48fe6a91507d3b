package platformtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// asyncLayout is two replicas of every role over one store that keeps what it was
// told, and a function whose runs take a while.
type asyncLayout struct {
	store    string
	replicas [2]*platformtest.Server
}

func startAsync(t *testing.T, config, source string) *asyncLayout {
	t.Helper()
	l := &asyncLayout{store: storagetest.Redis(t, "--appendonly", "yes").URL}
	for i := range l.replicas {
		l.replicas[i] = platformtest.Serve(t, l.store, "--sandbox-memory-budget", "8192")
	}
	l.replicas[0].Publish(t, "work", config, map[string]string{"function.js": source})
	return l
}

// enqueue invokes the function n times asynchronously, from four clients, and returns
// the ids of the activations.
func (l *asyncLayout) enqueue(t *testing.T, s *platformtest.Server, n int) []string {
	t.Helper()
	fn := s.API(t).Namespace(platformtest.Namespace).Function("work")
	ids := make([]string, n)
	var wg sync.WaitGroup
	for who := range 4 {
		wg.Go(func() {
			for k := who; k < n; k += 4 {
				out, err := fn.Enqueue(context.WithoutCancel(t.Context()), client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(fmt.Sprint(k))})
				if err != nil {
					t.Errorf("Enqueue: %v", err)
					return
				}
				ids[k] = out.ActivationID
			}
		})
	}
	wg.Wait()
	return ids
}

// A replica that is killed has its work resumed by the other within seconds, and
// all that was accepted ends as success, once.
func TestKilledReplicaLosesNoAsyncInvocation(t *testing.T) {
	t.Parallel()
	l := startAsync(t, `{"timeout_ms": 20000, "memory_mb": 16, "max_concurrency": 8, "retry": {"max_attempts": 5}}`,
		`export default async (n, ctx) => { await new Promise((r) => setTimeout(r, 150)); return {n, attempt: ctx.attempt}; };`)
	const invocations = 200
	ids := l.enqueue(t, l.replicas[0], invocations)
	survivor := l.replicas[0].API(t)
	platformtest.Eventually(t, 20*time.Second, "the work is under way", func() error {
		return countStatus(t.Context(), survivor, ids[:40], api.StatusSuccess)
	})
	if err := l.replicas[1].Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	killed := time.Now()
	platformtest.Eventually(t, 60*time.Second, "all have succeeded", func() error {
		return countStatus(t.Context(), survivor, ids, api.StatusSuccess)
	})
	t.Logf("done %s after the kill", time.Since(killed))
	again, slowest := 0, time.Duration(0)
	for k, id := range ids {
		a, err := survivor.Activation(t.Context(), id)
		if err != nil {
			t.Fatalf("Activation: %v", err)
		}
		if want := fmt.Sprintf(`{"n":%d,"attempt":%d}`, k, a.Attempt); string(a.Result) != want || a.JobID != id {
			t.Errorf("activation %s: got result %s of job %s, want result %s of the job with the same id", id, a.Result, a.JobID, want)
		}
		if a.Attempt > 1 {
			again++
			slowest = max(slowest, time.UnixMilli(a.EndMS).Sub(killed))
		}
	}
	if again == 0 || again > 16 {
		t.Errorf("%d activations ran twice, want 1 to 16", again)
	}
	if slowest > 10*time.Second {
		t.Errorf("the last activation of the killed replica ended %s after the kill, want at most 10s", slowest)
	}
	t.Logf("%d ran again, the last one done %s after the kill", again, slowest)
}

// A replica that is stopped in order, as by a deployment, costs no attempt.
func TestStoppedReplicaRepeatsNoAsyncInvocation(t *testing.T) {
	t.Parallel()
	l := startAsync(t, `{"timeout_ms": 20000, "memory_mb": 16, "max_concurrency": 8}`,
		`export default async (n, ctx) => { await new Promise((r) => setTimeout(r, 100)); return ctx.attempt; };`)
	var ids []string
	for range 3 {
		ids = append(ids, l.enqueue(t, l.replicas[0], 60)...)
		old := l.replicas[1]
		if err := errors.Join(old.Signal(syscall.SIGTERM), old.Wait()); err != nil {
			t.Fatalf("stop the replica: %v", err)
		}
		l.replicas[1] = platformtest.Serve(t, l.store)
	}
	tenant := l.replicas[0].API(t)
	platformtest.Eventually(t, 60*time.Second, "all have succeeded", func() error {
		return countStatus(t.Context(), tenant, ids, api.StatusSuccess)
	})
	for _, id := range ids {
		if a, err := tenant.Activation(t.Context(), id); err != nil || a.Attempt != 1 || string(a.Result) != "1" {
			t.Errorf("activation %s: got attempt %d, result %s and error %v; want attempt 1 and result 1", id, a.Attempt, a.Result, err)
		}
	}
}

// Each role does its part in a process of its own, and none does another's.
func TestRolesApart(t *testing.T) {
	t.Parallel()
	store := redis(t)
	front := platformtest.Serve(t, store, "--roles", "api")
	front.Publish(t, "work", `{"retry": {"max_attempts": 2, "backoff": "none"}}`, map[string]string{
		"function.js": `export default (n, ctx) => { if (ctx.attempt < 2) throw new Error("again"); return n; };`,
	})
	l := &asyncLayout{store: store}
	ids := l.enqueue(t, front, 5)
	scheduler := platformtest.Serve(t, store, "--roles", "scheduler")
	if pids := scheduler.Sandboxes(t); len(pids) > 0 {
		t.Errorf("a replica with the scheduler role has %d sandboxes, want 0", len(pids))
	}
	if err := countStatus(t.Context(), front.API(t), ids, api.StatusQueued); err != nil {
		t.Errorf("countStatus: %v", err)
	}
	platformtest.Serve(t, store, "--roles", "invoker")
	platformtest.Eventually(t, 30*time.Second, "all have succeeded", func() error {
		return countStatus(t.Context(), front.API(t), ids, api.StatusSuccess)
	})
}
