package webhooks_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/webhooks"
)

// fixture is a tenant whose webhooks are in a store.
type fixture struct {
	store  *storage.Store
	hooks  *webhooks.Repository
	tenant string
}

// newKeys returns a key file with one identity.
func newKeys(t *testing.T) *secrets.KeyFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := secrets.Keygen(path, time.Now()); err != nil {
		t.Fatalf("Keygen: %v", err)
	}
	return openKeys(t, path)
}

func openKeys(t *testing.T, path string) *secrets.KeyFile {
	t.Helper()
	keys, err := secrets.OpenKeyFile(path, zaptest.NewLogger(t))
	if err != nil {
		t.Fatalf("OpenKeyFile: %v", err)
	}
	return keys
}

func newFixture(t *testing.T, s *storage.Store, keys *secrets.KeyFile) *fixture {
	t.Helper()
	return &fixture{s, webhooks.New(s, secrets.New(s, keys)), storagetest.Tenant(t)}
}

// config returns the configuration of a webhook that selects all events.
func config() webhook.Config {
	return webhook.Config{URL: "https://example.com/hooks", Events: []string{"*"}, Enabled: true, RetryLimit: 5}
}

// create creates a webhook.
func (f *fixture) create(t *testing.T, name string) webhook.Webhook {
	t.Helper()
	made, _, err := f.hooks.Put(t.Context(), f.tenant, name, config(), webhooks.Condition{IfNew: true})
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return made
}

// record returns the stored form of a webhook.
func (f *fixture) record(t *testing.T, name string) webhooks.Record {
	t.Helper()
	all, err := f.hooks.All(t.Context(), f.tenant)
	if err != nil {
		t.Fatalf("All: %v", err)
	}
	at := slices.IndexFunc(all, func(rec webhooks.Record) bool { return rec.Name == name })
	if at < 0 {
		t.Fatalf("All: got %+v, want webhook %s among them", all, name)
	}
	return all[at]
}

// happen appends n events, and returns those of the whole log with the position behind them.
func (f *fixture) happen(t *testing.T, n int) ([]event.Event, events.Position) {
	t.Helper()
	log := events.New(f.store)
	for i := range n {
		err := log.Record(t.Context(), f.tenant, event.Change{Type: event.FunctionCreated, Of: "functions/shop", ID: fmt.Sprint("f", i), AtMS: f.store.NowMS()})
		if err != nil {
			t.Fatalf("Record: %v", err)
		}
	}
	page, err := log.Read(t.Context(), f.tenant, "", 100)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return page.Events, page.Next
}

// position returns the position of a webhook.
func (f *fixture) position(t *testing.T, rec webhooks.Record) events.Position {
	t.Helper()
	states, err := f.hooks.Statuses(t.Context(), f.tenant, []webhooks.Record{rec})
	if err != nil {
		t.Fatalf("Statuses: %v", err)
	}
	return states[0].Position
}

// stored returns the deliveries of a webhook that have not ended, and those that have a time.
func (f *fixture) stored(t *testing.T, rec webhooks.Record) (pending, due []string) {
	t.Helper()
	k := f.store.Keys().Webhook(f.tenant, rec.ID)
	pending, err := f.store.Client().HKeys(t.Context(), k.Pending()).Result()
	if err != nil {
		t.Fatalf("HKeys: %v", err)
	}
	due, err = f.store.Client().ZRange(t.Context(), k.Due(), 0, -1).Result()
	if err != nil {
		t.Fatalf("ZRange: %v", err)
	}
	slices.Sort(pending)
	slices.Sort(due)
	return pending, due
}

// members returns the sorted names of the deliveries of events.
func members(of []event.Event) []string {
	out := make([]string, len(of))
	for i := range of {
		out[i] = string(webhooks.MemberOf(&of[i]))
	}
	slices.Sort(out)
	return out
}
