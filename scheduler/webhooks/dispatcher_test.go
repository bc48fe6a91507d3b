package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	goredis "github.com/redis/go-redis/v9"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/invoker/hostcall"
	dispatch "github.com/codesous/sous/scheduler/webhooks"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

const waitLimit = time.Minute

// fixture is a tenant with a dispatcher.
type fixture struct {
	store  *storage.Store
	hooks  *webhooks.Repository
	log    *events.Log
	tenant string
}

func newFixture(t testing.TB, cfg storage.Config) *fixture {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatalf("GenerateX25519Identity: %v", err)
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	keys, err := secrets.OpenKeyFile(path, zap.NewNop())
	if err != nil {
		t.Fatalf("OpenKeyFile: %v", err)
	}
	s := storagetest.Open(t, cfg)
	return &fixture{s, webhooks.New(s, secrets.New(s, keys)), events.New(s), storagetest.Tenant(t)}
}

// run runs a dispatcher until the returned function is called or the test ends.
func (f *fixture) run(t testing.TB, cfg dispatch.Config) (stop func()) {
	t.Helper()
	if cfg.Sender == nil {
		cfg.Sender = hostcall.NewGuarded([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)
	}
	if cfg.BaseDelay == 0 {
		cfg.BaseDelay = time.Millisecond
	}
	d, err := dispatch.New(f.store, f.hooks, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// create creates a webhook and returns its secret.
func (f *fixture) create(t testing.TB, name, url string, change func(*webhook.Config)) string {
	t.Helper()
	c := webhook.Config{URL: url, Events: []string{"*"}, Enabled: true, RetryLimit: 5}
	if change != nil {
		change(&c)
	}
	made, _, err := f.hooks.Put(t.Context(), f.tenant, name, c, webhooks.Condition{IfNew: true})
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return made.Secret
}

// happen appends an event of the function called subject.
func (f *fixture) happen(t *testing.T, subject string) {
	t.Helper()
	err := f.log.Record(t.Context(), f.tenant, event.Change{Type: event.FunctionCreated, Of: "functions/shop", ID: subject, AtMS: f.store.NowMS(), Data: event.Data{Namespace: "shop"}})
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
}

// get returns a webhook.
func (f *fixture) get(t *testing.T, name string) webhook.Webhook {
	t.Helper()
	w, err := f.hooks.Get(t.Context(), f.tenant, name)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return w
}

// eventually waits until ok reports true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got no %s, want one within %s", what, waitLimit)
		}
	}
}

// receiver is an HTTP server that notes what it receives.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	answer   func(r *http.Request, body string, n int) int // n counts from 1
}

func newReceiver(t *testing.T, answer func(r *http.Request, body string, n int) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body) // a broken request is not noted as whole
		r.mu.Lock()
		r.requests, r.bodies = append(r.requests, req), append(r.bodies, string(body))
		n := len(r.requests)
		r.mu.Unlock()
		status := http.StatusNoContent
		if r.answer != nil {
			status = r.answer(req, string(body), n)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

// ids returns the webhook-ids of the requests.
func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]string, len(r.requests))
	for i, req := range r.requests {
		out[i] = req.Header.Get(webhook.HeaderID)
	}
	return out
}

// verify checks the signature of each request with each of the secrets.
func (r *receiver) verify(t *testing.T, secrets ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatalf("NewWebhook: %v", err)
		}
		for i, req := range r.requests {
			if err := verifier.Verify([]byte(r.bodies[i]), req.Header); err != nil {
				t.Errorf("Verify of request %d: got error %v, want success", i, err)
			}
		}
	}
}

// TestDeliver: an event is sent once, signed, and a failed attempt is repeated with the same id.
func TestDeliver(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, b.Config(t))
			r := newReceiver(t, func(_ *http.Request, _ string, n int) int {
				if n == 1 {
					return http.StatusInternalServerError
				}
				return http.StatusOK
			})
			f.happen(t, "before")
			secret := f.create(t, "one", r.URL, func(c *webhook.Config) { c.Namespace = "shop" })
			f.run(t, dispatch.Config{})
			f.happen(t, "a")
			eventually(t, "second attempt", func() bool { w := f.get(t, "one"); return len(r.ids()) == 2 && w.Pending == 0 && w.LastStatus == 200 })
			ids := r.ids()
			if ids[0] != ids[1] || !strings.Contains(r.bodies[0], `"functions/shop/a"`) || r.bodies[0] != r.bodies[1] {
				t.Errorf("got ids %v and bodies %v, want one event twice", ids, r.bodies)
			}
			r.verify(t, secret)
			items, _, err := f.hooks.Deliveries(t.Context(), f.tenant, "one", "", 10)
			if err != nil || len(items) != 2 || items[0].Result != webhook.Delivered || items[1].Result != webhook.Retrying || items[1].Attempt != 1 {
				t.Errorf("Deliveries: got %+v and error %v, want a success after a retry", items, err)
			}
			rotated, err := f.hooks.Rotate(t.Context(), f.tenant, "one", nil)
			if err != nil || rotated.Secret == secret || rotated.PreviousSecretUntilMS == 0 {
				t.Fatalf("Rotate: got %+v and error %v, want another secret", rotated, err)
			}
			first := len(r.ids())
			eventually(t, "request with two signatures", func() bool {
				f.happen(t, "b")
				r.mu.Lock()
				defer r.mu.Unlock()
				n := len(r.requests)
				return n > first && strings.Count(r.requests[n-1].Header.Get(webhook.HeaderSignature), "v1,") == 2
			})
			r.mu.Lock()
			r.requests, r.bodies = r.requests[len(r.requests)-1:], r.bodies[len(r.bodies)-1:]
			r.mu.Unlock()
			r.verify(t, secret, rotated.Secret)
		})
	}
}

func redis(t testing.TB) storage.Config { return storage.Config{URL: storagetest.Redis(t).URL} }

// TestOrdered: a delivery that fails holds back the later ones of its subject, and no others.
func TestOrdered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redis(t))
	r := newReceiver(t, func(_ *http.Request, body string, n int) int {
		if strings.Contains(body, "functions/shop/a") && n < 6 {
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	f.create(t, "one", r.URL, func(c *webhook.Config) { c.Ordered, c.RetryLimit = true, webhook.MaxRetryLimit })
	for _, subject := range []string{"a", "a", "b", "a"} {
		f.happen(t, subject)
	}
	f.run(t, dispatch.Config{})
	eventually(t, "end of all deliveries", func() bool { return f.get(t, "one").Pending == 0 && len(r.ids()) >= 6 })
	var order []string
	ids := r.ids()
	for i, body := range r.bodies {
		if strings.Contains(body, "functions/shop/a") && !slices.Contains(order, ids[i]) {
			order = append(order, ids[i])
		}
	}
	last := map[string]int{}
	for i, id := range ids {
		last[id] = i
	}
	if len(order) != 3 || !slices.IsSorted(order) || last[order[0]] > slices.Index(ids, order[1]) || last[order[1]] > slices.Index(ids, order[2]) {
		t.Errorf("got the events %v of requests %v, want three, each after the last attempt of the one before", order, ids)
	}
}

// TestHangingReceiverLeavesRoom: a receiver that does not answer has few requests, and events reach
// another one.
func TestHangingReceiverLeavesRoom(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redis(t))
	release := make(chan struct{})
	hangs := newReceiver(t, func(*http.Request, string, int) int { <-release; return http.StatusOK })
	defer close(release)
	r := newReceiver(t, nil)
	f.create(t, "hangs", hangs.URL, nil)
	f.create(t, "one", r.URL, nil)
	for i := range 50 {
		f.happen(t, fmt.Sprint("f", i))
	}
	f.run(t, dispatch.Config{Timeout: waitLimit})
	eventually(t, "delivery of all events", func() bool { return len(r.ids()) == 50 })
	if n := len(hangs.ids()); n > 4 {
		t.Errorf("got %d requests at the receiver that hangs, want at most 4", n)
	}
}

// TestNextReplicaContinues: what a replica had not finished when it ended, the next one delivers.
func TestNextReplicaContinues(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redis(t))
	block := make(chan struct{})
	r := newReceiver(t, func(_ *http.Request, _ string, n int) int {
		if n <= 2 {
			<-block
		}
		return http.StatusOK
	})
	f.create(t, "one", r.URL, nil)
	for i := range 10 {
		f.happen(t, fmt.Sprint("f", i))
	}
	stop := f.run(t, dispatch.Config{Timeout: waitLimit})
	eventually(t, "first requests", func() bool { return len(r.ids()) >= 2 })
	stop()
	close(block)
	f.happen(t, "f10")
	f.run(t, dispatch.Config{})
	eventually(t, "delivery of all events", func() bool {
		ids := r.ids()
		slices.Sort(ids)
		return len(slices.Compact(ids)) == 11 && f.get(t, "one").Pending == 0
	})
}

// TestDisabled: 410 disables a webhook at once, and failures of five days do, each with an event.
func TestDisabled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status   int
		failed   time.Duration // for how long already
		disabled bool
	}{
		"gone":       {http.StatusGone, 0, true},
		"first":      {http.StatusInternalServerError, 0, false},
		"four days":  {http.StatusInternalServerError, 4 * 24 * time.Hour, false},
		"five days":  {http.StatusInternalServerError, webhook.DisableAfterMS * time.Millisecond, true},
		"it is back": {http.StatusOK, webhook.DisableAfterMS * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redis(t))
			r := newReceiver(t, func(*http.Request, string, int) int { return tt.status })
			f.create(t, "one", r.URL, func(c *webhook.Config) { c.RetryLimit = 0 })
			if tt.failed > 0 {
				records, err := f.hooks.All(t.Context(), f.tenant)
				if err != nil || len(records) != 1 {
					t.Fatalf("All: got %+v and error %v, want one webhook", records, err)
				}
				state := f.store.Keys().Webhook(f.tenant, records[0].ID).State()
				if err := f.store.Client().HSet(t.Context(), state, "failing_since_ms", f.store.NowMS()-tt.failed.Milliseconds()).Err(); err != nil {
					t.Fatalf("HSet: %v", err)
				}
			}
			f.run(t, dispatch.Config{})
			f.happen(t, "a")
			eventually(t, "attempt", func() bool { w := f.get(t, "one"); return w.LastStatus == tt.status && w.Enabled != tt.disabled })
			page, err := f.log.Read(t.Context(), f.tenant, "", 100)
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			n, want := 0, map[bool]int{true: 1}[tt.disabled]
			for _, e := range page.Events {
				if e.Type == event.WebhookDisabled && e.Subject == "webhooks/one" && e.Data.Reason != "" {
					n++
				}
			}
			if n != want {
				t.Errorf("got %d events of the disabled webhook in %+v, want %d", n, page.Events, want)
			}
			_, err = f.hooks.Test(t.Context(), f.tenant, "one")
			if tt.disabled && api.ErrorCode(err) != api.CodeWebhookDisabled || !tt.disabled && err != nil {
				t.Errorf("Test: got error %v, want %s only if it is disabled", err, api.CodeWebhookDisabled)
			}
		})
	}
}

// TestRedeliver: the event of an attempt is sent again with its id, also after its last attempt failed.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redis(t))
	r := newReceiver(t, func(_ *http.Request, _ string, n int) int {
		if n == 1 {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	f.create(t, "one", r.URL, func(c *webhook.Config) { c.RetryLimit = 0 })
	f.run(t, dispatch.Config{})
	f.happen(t, "a")
	eventually(t, "failed attempt", func() bool { return f.get(t, "one").LastStatus == http.StatusBadRequest })
	items, _, err := f.hooks.Deliveries(t.Context(), f.tenant, "one", "", 10)
	if err != nil || len(items) != 1 || items[0].Result != webhook.Failed || !strings.Contains(items[0].Error, "400") {
		t.Fatalf("Deliveries: got %+v and error %v, want one failure", items, err)
	}
	if _, err := f.hooks.Redeliver(t.Context(), f.tenant, "one", items[0].ID); err != nil {
		t.Fatalf("Redeliver: %v", err)
	}
	eventually(t, "second request", func() bool { ids := r.ids(); return len(ids) == 2 && ids[0] == ids[1] })
}

// TestGuard: a webhook to this machine reaches nothing without the operator's permission.
func TestGuard(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redis(t))
	r := newReceiver(t, nil)
	f.create(t, "one", r.URL, func(c *webhook.Config) { c.RetryLimit = 0 })
	f.run(t, dispatch.Config{Sender: hostcall.NewGuarded(nil, nil)})
	f.happen(t, "a")
	eventually(t, "refusal", func() bool { return strings.Contains(f.get(t, "one").LastError, "not public") })
	if ids := r.ids(); len(ids) != 0 {
		t.Errorf("got requests %v, want none", ids)
	}
}

// TestInterruptedTake: a crash of the store in the middle of a take leaves deliveries before the
// position. The replica that takes their events again makes one request of each at a time.
func TestInterruptedTake(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redis(t))
	release := make(chan struct{})
	r := newReceiver(t, func(*http.Request, string, int) int { <-release; return http.StatusInternalServerError })
	defer close(release)
	f.create(t, "one", r.URL, nil)
	records, err := f.hooks.All(t.Context(), f.tenant)
	if err != nil || len(records) != 1 {
		t.Fatalf("All: got %+v and error %v, want one webhook", records, err)
	}
	for i := range 4 { // as many as it has requests in progress
		f.happen(t, fmt.Sprint("f", i))
	}
	page, err := f.log.Read(t.Context(), f.tenant, "", 1)
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("Read: got %+v and error %v, want one event", page, err)
	}
	raw, err := storage.Encode(webhooks.Delivery{Event: page.Events[0], Since: f.store.NowMS()})
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	k, member := f.store.Keys().Webhook(f.tenant, records[0].ID), string(webhooks.MemberOf(&page.Events[0]))
	f.store.Client().HSet(t.Context(), k.Pending(), member, raw)
	f.store.Client().ZAdd(t.Context(), k.Due(), goredis.Z{Score: 1, Member: member})
	f.run(t, dispatch.Config{Timeout: waitLimit})
	eventually(t, "four requests", func() bool { return len(r.ids()) == 4 })
	ids := slices.Sorted(slices.Values(r.ids()))
	if len(slices.Compact(slices.Clone(ids))) != 4 {
		t.Errorf("got requests of the events %v at the same time, want one of each", ids)
	}
}
