package platformtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
	"github.com/codesous/sous/storage/storagetest"
)

// watchers observe a chaos: followers of the event log on each replica, a webhook, and the mirror of
// each replica.
type watchers struct {
	c         *chaos
	mirrors   []string // the folders, by replica
	followers []*follower
	receiver  *chaosReceiver
	stop      context.CancelFunc
	work      sync.WaitGroup
}

// watched are the types of the events that the followers and the webhook select.
func watched() []string { return []string{event.JobCompleted, event.JobDead} }

// watch starts the watchers. It is called before the first job.
func (c *chaos) watch() *watchers {
	t := c.t
	t.Helper()
	w := &watchers{c: c, mirrors: c.mirrors[:]}
	w.receiver = startReceiver(t)
	tenant := c.replicas[0].API(t)
	made, err := tenant.Webhook("ends").Create(t.Context(), webhook.HookSettings{URL: "http://" + w.receiver.address, Events: watched()})
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	verifier, err := standardwebhooks.NewWebhook(made.Secret)
	if err != nil {
		t.Fatalf("NewWebhook: %v", err)
	}
	w.receiver.verifier.Store(verifier)
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	t.Cleanup(func() {
		stop()
		w.work.Wait()
	})
	for i := range 2 * len(c.replicas) {
		f := &follower{}
		w.followers = append(w.followers, f)
		// Killed replicas come back at their address: each call is repeated until it succeeds.
		at, err := client.New(c.replicas[i%len(c.replicas)].URL, client.Config{MaxAttempts: 10_000, Transport: c.transports[i%len(c.replicas)]})
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		w.work.Go(func() {
			err := at.Tenant(platformtest.Tenant).FollowEvents(ctx, client.EventSelection{
				Filter: event.Filter{Types: watched()}, Since: time.Now().Add(-time.Minute),
			}, f.handle, func() error { return errors.New("a gap is announced") })
			if ctx.Err() == nil {
				t.Errorf("follower %d: got error %v before its end, want none", i, err)
			}
		})
	}
	return w
}

// follower has the ids of the events that it got, in their order.
type follower struct {
	mu  sync.Mutex
	ids []string
}

func (f *follower) handle(e event.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, e.ID)
	return nil
}

// verify waits until the watchers have seen everything, and holds them to the log and the store.
// Every job has ended.
func (w *watchers) verify() {
	c, t := w.c, w.c.t
	t.Helper()
	var log []string
	for e, err := range c.replicas[1].API(t).AllEvents(t.Context(), client.EventSelection{Filter: event.Filter{Types: watched()}}) {
		if err != nil {
			t.Fatalf("AllEvents: %v", err)
		}
		log = append(log, e.ID)
	}
	if len(log) < chaosJobs {
		t.Errorf("got %d events, want one of each of %d jobs", len(log), chaosJobs)
	}
	for i, f := range w.followers {
		platformtest.Eventually(t, time.Minute, fmt.Sprintf("follower %d has every event", i), func() error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.ids) < len(log) {
				return fmt.Errorf("it has %d of %d", len(f.ids), len(log))
			}
			return nil
		})
	}
	w.stop()
	w.work.Wait()
	for i, f := range w.followers {
		if !slices.Equal(f.ids, log) {
			repeated := len(f.ids) - len(slices.Compact(slices.Sorted(slices.Values(f.ids))))
			t.Errorf("follower %d: got %d events of %d, %d of them repeated, want those of the log in their order", i, len(f.ids), len(log), repeated)
		}
	}
	w.receiver.await(t, log)
	w.compare()
}

// compare compares every row of the mirrors with the store.
func (w *watchers) compare() {
	c, t := w.c, w.c.t
	t.Helper()
	store := storagetest.Open(t, storage.Config{URL: c.store.URL})
	broker, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	for i, dir := range w.mirrors {
		db, err := mirror.OpenReader(dir)
		if err != nil {
			t.Fatalf("OpenReader: %v", err)
		}
		platformtest.Eventually(t, 2*time.Minute, fmt.Sprintf("mirror %d equals the store", i), func() error {
			differences, records, err := feed.Compare(t.Context(), store, broker.Records(), db)
			if err == nil && len(differences) > 0 {
				err = fmt.Errorf("%d of %d records differ; the first: %s", len(differences), records, differences[0])
			}
			if err == nil && records < chaosJobs {
				err = fmt.Errorf("got %d records, want at least %d", records, chaosJobs)
			}
			return err
		})
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// chaosReceiver receives deliveries, and can be killed.
type chaosReceiver struct {
	address  string
	verifier atomic.Pointer[standardwebhooks.Webhook]

	mu       sync.Mutex
	server   *http.Server
	accepted map[string]int // by the id of the event
	wrong    []error
}

// startReceiver starts a receiver at a free address.
func startReceiver(t *testing.T) *chaosReceiver {
	t.Helper()
	r := &chaosReceiver{address: "127.0.0.1:0", accepted: map[string]int{}}
	r.start(t)
	t.Cleanup(r.kill)
	return r
}

// start listens at the address of r.
func (r *chaosReceiver) start(t *testing.T) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	r.address = listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(r.receive), ReadHeaderTimeout: time.Minute}
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // until it is killed
}

// kill closes the listener and all connections, in the middle of requests.
func (r *chaosReceiver) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.server.Close() // a listener that fails to close is closed nevertheless
}

func (r *chaosReceiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender died
	}
	var e event.Event
	err = r.verifier.Load().Verify(body, req.Header)
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.wrong = append(r.wrong, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.accepted[e.ID]++
	w.WriteHeader(http.StatusNoContent)
}

// await waits until each event has been delivered.
func (r *chaosReceiver) await(t *testing.T, events []string) {
	t.Helper()
	platformtest.Eventually(t, 2*time.Minute, "all events are delivered", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(events), func(id string) bool { return r.accepted[id] > 0 })
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d events are missing; the first: %s", len(missing), len(events), missing[0])
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) > 0 {
		t.Errorf("got %d requests that do not verify, want 0; the first: %v", len(r.wrong), r.wrong[0])
	}
}
