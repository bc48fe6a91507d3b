package platformtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// layout is deploy/docker-compose.yml as processes: a store that keeps what it
// was told, two replicas that want keys, and a balancer before them.
type layout struct {
	t        *testing.T
	config   platformtest.Config
	replicas [2]*platformtest.Server
	balancer *balancer
}

func startLayout(t *testing.T) *layout {
	t.Helper()
	store := storagetest.Redis(t, "--appendonly", "yes")
	l := &layout{t: t, config: platformtest.Config{
		Store: store.URL, Key: platformtest.Bootstrap(t, store.URL), Args: []string{"--drain-delay", "1s"},
	}}
	var addresses []string
	for i := range l.replicas {
		l.replicas[i] = l.config.Serve(t)
		addresses = append(addresses, l.address(i))
	}
	l.replicas[0].Publish(t, "greet", `{"timeout_ms": 1000}`, map[string]string{
		"function.js": `export default async (event) => {
  await new Promise((r) => setTimeout(r, 30));
  return { statusCode: 200, body: "greetings" };
};`,
	})
	l.balancer = balance(t, addresses...)
	return l
}

func (l *layout) address(i int) string { return strings.TrimPrefix(l.replicas[i].URL, "http://") }

// restart ends replica i as a deployment does, and starts it again.
func (l *layout) restart(i int) {
	l.t.Helper()
	old := l.replicas[i]
	children, err := soustest.Children(old.Pid())
	if err == nil {
		err = old.Signal(syscall.SIGTERM)
	}
	if err == nil {
		err = old.Wait()
	}
	if err := errors.Join(err, soustest.Gone(children)); err != nil {
		l.t.Fatalf("stop the replica: %v", err)
	}
	l.start(i)
}

// start starts replica i where it was, until the balancer sends to it.
func (l *layout) start(i int) {
	l.t.Helper()
	again := l.config
	again.Listen = l.address(i)
	l.replicas[i] = again.Serve(l.t)
	platformtest.Eventually(l.t, 10*time.Second, "the balancer sees the replica", l.balancer.allReady)
}

// load is clients that call without pause.
type load struct {
	calls  atomic.Int64
	mu     sync.Mutex
	failed map[string]string // by Idempotency-Key
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// startLoad calls the function through the balancer from n clients, each in
// three ways by turns, every call with an Idempotency-Key of its own.
func (l *layout) startLoad(n int) *load {
	ctx, cancel := context.WithCancel(l.t.Context())
	out := &load{failed: make(map[string]string), stop: cancel}
	for who := range n {
		out.wg.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
			defer c.CloseIdleConnections()
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("call-%d-%d", who, i)
				if err := l.call(context.WithoutCancel(ctx), c, i, key); err != nil {
					out.mu.Lock()
					out.failed[key] = err.Error()
					out.mu.Unlock()
				}
				out.calls.Add(1)
			}
		})
	}
	return out
}

func (l *layout) call(ctx context.Context, c *http.Client, way int, key string) error {
	web := l.balancer.URL + "/v1/web/" + platformtest.Tenant + "/" + platformtest.Namespace + "/greet/prod"
	invoke := l.balancer.URL + "/v1/tenants/" + platformtest.Tenant + "/namespaces/" + platformtest.Namespace + "/functions/greet:invoke"
	method, url, body := http.MethodGet, web, ""
	switch way % 3 {
	case 1:
		method, body = http.MethodPost, "a body"
	case 2:
		method, url, body = http.MethodPost, invoke, `{"ref": {"alias": "prod"}}`
	}
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+l.config.Key)
	request.Header.Set("Idempotency-Key", key)
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(answer), "greetings") {
		return fmt.Errorf("%s %s: %d %.300s %w", method, url, response.StatusCode, answer, err)
	}
	return nil
}

// end waits for the calls in flight and returns those that failed.
func (l *load) end() map[string]string {
	l.stop()
	l.wg.Wait()
	return l.failed
}

const clients = 12

// Restarting each replica in its turn fails not one request.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	l := startLayout(t)
	load := l.startLoad(clients)
	for range 3 {
		for i := range l.replicas {
			before := load.calls.Load()
			l.restart(i)
			if load.calls.Load() == before {
				t.Error("0 calls during the rolling restart, want at least 1")
			}
		}
	}
	failed := load.end()
	for key, why := range failed {
		t.Errorf("%d of %d calls failed, want 0; %s: %s", len(failed), load.calls.Load(), key, why)
		break
	}
	if cuts := l.balancer.cutOff(); len(cuts) > 0 {
		t.Errorf("got %d requests sent and not answered, want 0; the first: %v", len(cuts), cuts[0].cause)
	}
	t.Logf("%d calls", load.calls.Load())
}

// The kill of a replica loses the calls that it executes and no others, and none of
// their activations stays running.
func TestKilledReplica(t *testing.T) {
	t.Parallel()
	l := startLayout(t)
	load := l.startLoad(clients)
	platformtest.Eventually(t, 20*time.Second, "calls are under way", func() error {
		if n := load.calls.Load(); n < 200 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	killed := l.balancer.replicas[1]
	if err := l.replicas[1].Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	// Until the balancer has seen the ends of its connections it may send more.
	gone := time.Now().Add(pollInterval)
	at := load.calls.Load()
	platformtest.Eventually(t, 20*time.Second, "calls succeed again", func() error {
		if n := load.calls.Load() - at; n < 200 {
			return fmt.Errorf("%d calls", n)
		}
		return nil
	})
	l.start(1)
	failed := load.end()
	inHand := make(map[string]bool)
	for _, c := range l.balancer.cutOff() {
		if c.replica != killed || c.sent.After(gone) {
			t.Errorf("%s was sent to %s, %s after its end, and failed with %v; want an answer", c.key, c.replica.address, c.sent.Sub(gone), c.cause)
		}
		inHand[c.key] = true
	}
	if len(inHand) == 0 || len(inHand) > clients {
		t.Errorf("%d calls were in flight on the killed replica, want 1 to %d", len(inHand), clients)
	}
	var ids []string
	for key, why := range failed {
		if !inHand[key] {
			t.Errorf("call %s failed with %s, want success, as it was not in flight on the killed replica", key, why)
		}
		ids = append(ids, api.DerivedActivationID(platformtest.Tenant, platformtest.Namespace, "greet", api.Ref{Alias: "prod"}, key))
	}
	t.Logf("%d calls, %d in the replica's hands", load.calls.Load(), len(inHand))
	l.awaitLost(ids)
}

// awaitLost demands that each activation has ended: as lost, unless only its
// answer was, or it never began.
func (l *layout) awaitLost(ids []string) {
	l.t.Helper()
	lost := make(map[string]bool)
	platformtest.Eventually(l.t, 40*time.Second, "what the replica had in its hands ends", func() error {
		for _, id := range ids {
			a, err := l.replicas[0].API(l.t).Activation(l.t.Context(), id)
			switch {
			case api.ErrorCode(err) == api.CodeActivationNotFound:
			case err != nil:
				return err
			case !a.Status.Terminal():
				return fmt.Errorf("%s is %s", id, a.Status)
			case a.Status == api.StatusError && a.Error != nil && a.Error.Type == api.ErrLost:
				lost[id] = true
			case a.Status != api.StatusSuccess:
				l.t.Fatalf("activation %s ended as %s: %+v, want success or lost", id, a.Status, a.Error)
			}
		}
		return nil
	})
	if len(lost) == 0 {
		l.t.Errorf("0 of %d activations are lost, want at least 1", len(ids))
	}
}
