package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

// noSender is a Sender for tests that send nothing.
type noSender struct{}

func (noSender) Do(string, *http.Request) (*http.Response, error) {
	return nil, errors.New("this test sends nothing")
}
func (noSender) Reason(_ context.Context, err error) string { return err.Error() }

// newTestRun returns a run of a tenant without webhooks.
func newTestRun(t *testing.T) *run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("Keygen: %v", err)
	}
	keys, err := secrets.OpenKeyFile(path, zaptest.NewLogger(t))
	if err != nil {
		t.Fatalf("OpenKeyFile: %v", err)
	}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	d, err := New(s, webhooks.New(s, secrets.New(s, keys)), Config{Sender: noSender{}})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return newRun(d, storagetest.Tenant(t), time.Now())
}

// create creates a webhook behind the last event.
func (r *run) create(t *testing.T, name string) {
	t.Helper()
	c := webhook.Config{URL: "https://example.com/hooks", Events: []string{"*"}, Enabled: true}
	if _, _, err := r.d.hooks.Put(t.Context(), r.tenant, name, c, webhooks.Condition{}); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

// happen appends n events.
func (r *run) happen(t *testing.T, n int) {
	t.Helper()
	pipe := r.d.store.Client().Pipeline()
	for i := range n {
		r.d.log.Append(t.Context(), pipe, r.tenant, event.Change{Type: event.FunctionCreated, Of: "functions/shop", ID: fmt.Sprint("f", i), AtMS: r.d.store.NowMS()})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("Exec: %v", err)
	}
}

// reload reads the webhooks.
func (r *run) reload(t *testing.T) {
	t.Helper()
	r.loaded = time.Time{}
	if err := r.load(t.Context()); err != nil {
		t.Fatalf("load: %v", err)
	}
}

// mustFollow reads the log once.
func (r *run) mustFollow(t *testing.T) (more bool) {
	t.Helper()
	more, err := r.follow(t.Context())
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	return more
}

// end returns the position behind the last event.
func (r *run) end(t *testing.T) events.Position {
	t.Helper()
	end, err := r.d.log.End(t.Context(), r.tenant)
	if err != nil {
		t.Fatalf("End: %v", err)
	}
	return end
}

// TestWebhooksShareReads: webhooks at positions of their own within one page are served by one read,
// each with the events behind its position.
func TestWebhooksShareReads(t *testing.T) {
	t.Parallel()
	const hooks, later = 12, 3
	r := newTestRun(t)
	for i := range hooks {
		r.happen(t, 1)
		r.create(t, fmt.Sprintf("w%02d", i))
	}
	r.happen(t, later)
	r.reload(t)
	reads := storagetest.CountCommands(r.d.store.Client(), "xrange")
	if more := r.mustFollow(t); more || reads() != 1 {
		t.Errorf("got %d reads of the log, and more %t, want 1 and false", reads(), more)
	}
	for i, h := range r.hooks {
		if want := hooks - 1 - i + later; len(h.waiting) != want || h.position != r.end(t) {
			t.Errorf("%s: got %d deliveries and position %s, want %d and %s", h.Name, len(h.waiting), h.position, want, r.end(t))
		}
	}
	r.mustFollow(t)
	if reads() != 2 {
		t.Errorf("got %d reads of the log after a second look at its end, want 2", reads())
	}
	r.reload(t) // the store has the same
	for i, h := range r.hooks {
		if want := hooks - 1 - i + later; len(h.waiting) != want || h.position != r.end(t) {
			t.Errorf("%s, stored: got %d deliveries and position %s, want %d and %s", h.Name, len(h.waiting), h.position, want, r.end(t))
		}
	}
}

// TestWebhookFarBehind: one that is more than a page behind holds up no other, and catches up.
func TestWebhookFarBehind(t *testing.T) {
	t.Parallel()
	r := newTestRun(t)
	r.create(t, "behind")
	r.happen(t, readEvents+100)
	r.create(t, "current")
	r.happen(t, 1)
	r.reload(t)
	behind, current := r.hooks[0], r.hooks[1]
	if more := r.mustFollow(t); !more || len(behind.waiting) != readEvents || len(current.waiting) != 1 {
		t.Errorf("got %d and %d deliveries, and more %t, want %d and 1, and more", len(behind.waiting), len(current.waiting), more, readEvents)
	}
	if more := r.mustFollow(t); more || len(behind.waiting) != readEvents+101 || len(current.waiting) != 1 || behind.position != current.position {
		t.Errorf("got %d and %d deliveries at %s and %s, and more %t, want %d and 1 at the end", len(behind.waiting), len(current.waiting), behind.position, current.position, more, readEvents+101)
	}
}

// TestWebhookWithLittleRoom: it takes as many events of a shared page as it has room for, and those
// behind them later.
func TestWebhookWithLittleRoom(t *testing.T) {
	t.Parallel()
	r := newTestRun(t)
	r.create(t, "full")
	r.create(t, "little")
	r.create(t, "much")
	r.happen(t, 100)
	r.reload(t)
	full, little, much := r.hooks[0], r.hooks[1], r.hooks[2]
	full.waiting, little.waiting = make([]waiting, webhook.MaxPending-leastRoom+1), make([]waiting, webhook.MaxPending-leastRoom)
	r.mustFollow(t)
	if got := len(little.waiting); got != webhook.MaxPending {
		t.Errorf("the webhook with little room: got %d deliveries, want %d", got, webhook.MaxPending)
	}
	if got := len(full.waiting); got != webhook.MaxPending-leastRoom+1 || len(much.waiting) != 100 {
		t.Errorf("got %d more deliveries of the full webhook and %d of the one with much room, want none and 100", got-(webhook.MaxPending-leastRoom+1), len(much.waiting))
	}
	little.waiting = nil
	r.mustFollow(t)
	if got := len(little.waiting); got != 100-leastRoom || little.position != much.position {
		t.Errorf("the webhook with room again: got %d deliveries at %s, want %d at %s", got, little.position, 100-leastRoom, much.position)
	}
}

// TestExpiredLog: a log that expired as a whole is one gap, not one at each look, and later events
// arrive.
func TestExpiredLog(t *testing.T) {
	t.Parallel()
	r := newTestRun(t)
	r.happen(t, 1)
	r.create(t, "one")
	r.happen(t, 1)
	r.create(t, "two")
	if err := r.d.store.Client().Del(t.Context(), r.d.store.JobKeys(r.tenant).Events()).Err(); err != nil {
		t.Fatalf("Del: %v", err)
	}
	r.reload(t)
	for range 3 {
		r.mustFollow(t)
	}
	if got := testutil.ToFloat64(r.d.m.gaps); got != 2 {
		t.Errorf("got %v gaps of two webhooks at positions of their own, want 2", got)
	}
	r.happen(t, 1)
	r.mustFollow(t)
	for _, h := range r.hooks {
		if len(h.waiting) != 1 || h.position != r.end(t) {
			t.Errorf("%s: got %d deliveries at %s, want 1 at %s", h.Name, len(h.waiting), h.position, r.end(t))
		}
	}
}
