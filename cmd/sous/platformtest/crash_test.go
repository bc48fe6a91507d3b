package platformtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

func redis(t testing.TB) string {
	t.Helper()
	return storagetest.Redis(t).URL
}

// A server that dies in the middle of 200 invocations leaves none of them
// running, forgets none, and takes its sandboxes with it.
func TestKilledServerLosesNothing(t *testing.T) {
	t.Parallel()
	const invocations = 200
	store := redis(t)
	args := []string{"--sandbox-max", fmt.Sprint(invocations), "--sandbox-reserve", "-1", "--sandbox-memory-budget", "65536"}
	server := platformtest.Serve(t, store, args...)
	server.Publish(t, "sleeper", `{"timeout_ms": 40000, "memory_mb": 16, "max_concurrency": 200}`, map[string]string{
		"function.js": `export default () => new Promise((r) => setTimeout(r, 39000));`,
	})
	sleeper := server.API(t).Namespace(platformtest.Namespace).Function("sleeper")
	ids := make([]string, invocations)
	var wg sync.WaitGroup
	for n := range ids {
		key := fmt.Sprintf("call-%d", n)
		ids[n] = api.DerivedActivationID(platformtest.Tenant, platformtest.Namespace, "sleeper", api.Ref{Alias: "prod"}, key)
		wg.Go(func() {
			out, err := sleeper.Invoke(context.WithoutCancel(t.Context()), client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, IdempotencyKey: key})
			if err == nil {
				t.Errorf("call %d ended with %s on a killed server, want an error", n, out.Status)
			}
		})
	}
	tenant := server.API(t)
	platformtest.Eventually(t, 60*time.Second, "all invocations run", func() error {
		return countStatus(t.Context(), tenant, ids, api.StatusRunning)
	})
	children := server.Sandboxes(t)
	if len(children) < invocations {
		t.Errorf("%d sandboxes run, want %d, one for each invocation", len(children), invocations)
	}
	if err := server.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	wg.Wait()
	if err := soustest.Gone(children); err != nil {
		t.Errorf("a sandbox survives its parent: %v", err)
	}
	again := platformtest.Serve(t, store, args...)
	// The list reads the index, not the records one by one: what it shows as ended
	// was ended by the sweeper or by this reading.
	tenant = again.API(t)
	platformtest.Eventually(t, 90*time.Second, "every activation is ended as lost", func() error {
		return countStatus(t.Context(), tenant, ids, api.StatusError)
	})
	for _, id := range ids {
		a, err := tenant.Activation(t.Context(), id)
		if err != nil || a.Error == nil || a.Error.Type != api.ErrLost {
			t.Fatalf("activation %s: got %+v and error %v, want error type %s", id, a, err, api.ErrLost)
		}
	}
}

// countStatus returns nil if all activations have the status.
func countStatus(ctx context.Context, tenant *client.Tenant, ids []string, want api.Status) error {
	have := 0
	var last error
	for _, id := range ids {
		a, err := tenant.Activation(ctx, id)
		switch {
		case err != nil:
			last = err
		case a.Status == want:
			have++
		default:
			last = fmt.Errorf("%s is %s", id, a.Status)
		}
	}
	if have == len(ids) {
		return nil
	}
	return fmt.Errorf("%d of %d are %s: %w", have, len(ids), want, last)
}

// While the store is away every call is told so in good time; when it is back
// the service is, by itself.
func TestStoreOutageUnderLoad(t *testing.T) {
	t.Parallel()
	store := storagetest.Redis(t, "--appendonly", "yes")
	server := platformtest.Serve(t, store.URL)
	server.Publish(t, "hello", "", map[string]string{"function.js": `export default () => "hello";`})

	var mu sync.Mutex
	var wrong []string
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for ctx.Err() == nil {
				answer, err := server.Web(context.WithoutCancel(ctx), "hello", nil)
				fine := err == nil && (answer.Status == http.StatusOK ||
					answer.Status == http.StatusServiceUnavailable && answer.Code() == string(api.CodeStoreUnavailable) &&
						answer.Header.Get("Retry-After") != "")
				if !fine || answer.Took > 15*time.Second {
					mu.Lock()
					wrong = append(wrong, fmt.Sprintf("%v %d %.200s after %s", err, answer.Status, answer.Body, answer.Took))
					mu.Unlock()
				}
			}
		})
	}
	answers := func(want int) func() error {
		return func() error {
			answer, err := server.Web(t.Context(), "hello", nil)
			if err == nil && answer.Status != want {
				err = errors.New(answer.Body)
			}
			return err
		}
	}
	for range 2 {
		platformtest.Eventually(t, 20*time.Second, "calls succeed", answers(http.StatusOK))
		store.Stop(t)
		platformtest.Eventually(t, 20*time.Second, "calls fail because of the outage", answers(http.StatusServiceUnavailable))
		store.Start(t)
	}
	platformtest.Eventually(t, 20*time.Second, "service resumes", answers(http.StatusOK))
	cancel()
	load.Wait()
	if len(wrong) > 0 {
		t.Errorf("%d unexpected answers, want 0; the first: %s", len(wrong), wrong[0])
	}
}

// A server that is told to end answers what it has in hand, writes the records,
// and leaves no sandbox.
func TestStopsCleanly(t *testing.T) {
	t.Parallel()
	store := redis(t)
	server := platformtest.Serve(t, store)
	server.Publish(t, "slow", `{"timeout_ms": 10000}`, map[string]string{
		"function.js": `export default () => new Promise((r) => setTimeout(() => r("done"), 1500));`,
	})
	const calls = 5
	answers := make(chan platformtest.Answer, calls)
	for range calls {
		go func() {
			answer, err := server.Web(context.WithoutCancel(t.Context()), "slow", nil)
			if err != nil {
				t.Errorf("Web: %v", err)
			}
			answers <- answer
		}()
	}
	platformtest.Eventually(t, 10*time.Second, "all calls run", func() error {
		page, err := server.API(t).Activations(t.Context(), client.ActivationFilter{
			Namespace: platformtest.Namespace, Function: "slow", Status: api.StatusRunning,
		}, client.PageOptions{})
		if err == nil && len(page.Items) < calls {
			err = fmt.Errorf("%d run", len(page.Items))
		}
		return err
	})
	// Stop sees to it that no sandbox is left.
	if err := server.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	ids := make([]string, 0, calls)
	for range calls {
		answer := <-answers
		if answer.Status != http.StatusOK {
			t.Errorf("a call in flight got %d %s, want 200", answer.Status, answer.Body)
		}
		ids = append(ids, answer.ActivationID)
	}
	again := platformtest.Serve(t, store)
	if err := countStatus(t.Context(), again.API(t), ids, api.StatusSuccess); err != nil {
		t.Errorf("countStatus: %v", err)
	}
}
