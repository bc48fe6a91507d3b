package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/activity"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
	"github.com/codesous/sous/storage/storagetest"
)

const waitLimit = 2 * time.Minute

// fixture is a store of its own with queues, and a folder for a mirror.
type fixture struct {
	server *storagetest.Server
	store  *storage.Store
	broker *queue.Broker
	tenant string
	dir    string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	server := storagetest.Redis(t)
	store := storagetest.Open(t, storage.Config{URL: server.URL, ScriptPrelude: "--\n"})
	broker, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	return &fixture{server, store, broker, storagetest.Tenant(t), t.TempDir()}
}

// mirrored is a running mirror.
type mirrored struct {
	*mirror.Mirror

	stop func() // ends it and waits for that
}

// run runs a mirror in the folder of f until its stop or the end of the test.
func (f *fixture) run(t testing.TB, cfg feed.Config) *mirrored {
	t.Helper()
	m, err := mirror.New(mirror.Config{Dir: f.dir})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return f.start(t, m, cfg)
}

func (f *fixture) start(t testing.TB, m *mirror.Mirror, cfg feed.Config) *mirrored {
	t.Helper()
	return f.startWith(t, m, f.broker.Records(), cfg)
}

func (f *fixture) startWith(t testing.TB, m *mirror.Mirror, jobs feed.Jobs, cfg feed.Config) *mirrored {
	t.Helper()
	cfg.Watch = f.broker.Watch
	loop, err := feed.New(f.store, m, jobs, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		loop.Run(ctx)
	}()
	out := &mirrored{m, func() { cancel(); <-ended }}
	t.Cleanup(out.stop)
	return out
}

// eventually waits until missing returns "".
func eventually(t testing.TB, what string, missing func() string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(waitLimit); time.Now().Before(end); {
		last = missing()
		if last == "" {
			return
		}
		select {
		case <-t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("got %s after %s, want %s", last, waitLimit, what)
}

// equal waits until the mirror equals the store, which has records.
func (f *fixture) equal(t testing.TB, m *mirrored, records int) {
	t.Helper()
	eventually(t, "the mirror equals the store", func() string {
		db := m.Reader()
		if db == nil {
			return m.Status().Reason
		}
		differences, n, err := feed.Compare(t.Context(), f.store, f.broker.Records(), db)
		switch {
		case err != nil:
			return err.Error()
		case len(differences) > 0:
			return fmt.Sprintf("%d of %d records differ; the first: %s; status %+v", len(differences), n, differences[0], m.Status())
		case n != records:
			return fmt.Sprintf("got %d records in the store, want %d", n, records)
		}
		return ""
	})
}

// enqueue makes n jobs and returns their ids.
func (f *fixture) enqueue(t testing.TB, queueName string, n int, change func(i int, j *api.NewJob)) (ids []string) {
	t.Helper()
	for made := 0; made < n; {
		jobs := make([]api.NewJob, min(api.MaxEnqueueJobs, n-made))
		for i := range jobs {
			jobs[i].Payload = json.RawMessage(fmt.Sprintf(`{"to":"user%d@example.com"}`, made+i))
			if change != nil {
				change(made+i, &jobs[i])
			}
		}
		out, err := f.broker.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: "shop", Queue: queueName, Jobs: jobs})
		if err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		for i := range out {
			ids = append(ids, out[i].ID)
		}
		made += len(jobs)
	}
	return ids
}

// work takes up to n jobs, and settles those for which fail returns "" as completed, the others as
// failed. It returns how many it took.
func (f *fixture) work(t testing.TB, queueName string, n int, fail func(j *api.FetchedJob) string) int {
	t.Helper()
	jobs, err := f.broker.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: "shop", Queues: []string{queueName}, WorkerID: "w1", Count: n})
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	var acks []api.JobAck
	var fails []api.JobFail
	for i := range jobs {
		if text := fail(&jobs[i]); text != "" {
			fails = append(fails, api.JobFail{ID: jobs[i].ID, LeaseEpoch: jobs[i].LeaseEpoch, Error: text})
		} else {
			acks = append(acks, api.JobAck{ID: jobs[i].ID, LeaseEpoch: jobs[i].LeaseEpoch, Result: json.RawMessage(`{"sent":true}`)})
		}
	}
	if _, err := f.broker.Ack(t.Context(), f.tenant, acks); len(acks) > 0 && err != nil {
		t.Fatalf("Ack: %v", err)
	}
	if _, err := f.broker.Fail(t.Context(), f.tenant, fails); len(fails) > 0 && err != nil {
		t.Fatalf("Fail: %v", err)
	}
	return len(jobs)
}

// events sets which events the queue records.
func (f *fixture) events(t testing.TB, queueName, recorded string) {
	t.Helper()
	if _, err := f.broker.Configure(t.Context(), f.tenant, "shop", queueName, queue.Change{Events: &recorded}); err != nil {
		t.Fatalf("Configure: %v", err)
	}
}

func succeed(*api.FetchedJob) string { return "" }

// TestEveryJobIsSeen: jobs of queues with all events, with those of ends and without events, in
// several states, those from before the mirror included.
func TestEveryJobIsSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, recorded := range []string{"all", "ends", "off"} {
		f.enqueue(t, recorded, 30, nil)
		f.work(t, recorded, 10, succeed)
	}
	m := f.run(t, feed.Config{})
	eventually(t, "rebuild", func() string {
		if s := m.Status(); s.State != mirror.StateServing || s.Rebuilding {
			return fmt.Sprintf("got status %+v", s)
		}
		return ""
	})
	f.equal(t, m, 90)
	for _, recorded := range []string{"all", "ends", "off"} {
		f.events(t, recorded, recorded)
		ids := f.enqueue(t, recorded, 30, func(i int, j *api.NewJob) {
			j.Tags = map[string]string{"n": fmt.Sprint(i)}
			j.Hold = i%10 == 3
			if i%10 == 4 {
				j.RunAtMS = f.store.NowMS() + time.Hour.Milliseconds()
			}
		})
		if _, err := f.broker.Cancel(t.Context(), f.tenant, ids[0]); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		f.work(t, recorded, 20, func(j *api.FetchedJob) string {
			if strings.Contains(string(j.Payload), "3@") {
				return "connection refused"
			}
			return ""
		})
	}
	f.equal(t, m, 180)
}

// TestFunctionsThatRanAreVisited: an activation without an event is seen after the notice of its
// function, long before a pass would find it.
func TestFunctionsThatRanAreVisited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m := f.run(t, feed.Config{})
	eventually(t, "rebuild", func() string {
		if s := m.Status(); s.State != mirror.StateServing || s.Rebuilding {
			return fmt.Sprintf("got status %+v", s)
		}
		return ""
	})
	began, ran := time.Now(), activity.New(t.Context(), f.store, zap.NewNop())
	a := &activations.Record{Activation: api.Activation{
		ActivationID: "a1", Tenant: f.tenant, Namespace: "shop", Function: "hello", Status: api.StatusSuccess, StartMS: f.store.NowMS(), EndMS: f.store.NowMS() + 5,
		DurationMS: 5, Trigger: api.Trigger{Type: api.TriggerAPI},
	}}
	if won, _, err := activations.New(f.store).RecordEnded(t.Context(), a, nil); err != nil || !won {
		t.Fatalf("RecordEnded: got won %v, error %v, want a new record", won, err)
	}
	ran.Note(activity.Function{Tenant: f.tenant, Namespace: "shop", Name: "hello"})
	eventually(t, "the activation", func() string {
		var n int
		err := m.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM activations WHERE id = 'a1'").Scan(&n)
		if err != nil || n != 1 {
			return fmt.Sprintf("%d rows, error %v", n, err)
		}
		return ""
	})
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("got the row after %v, want it within seconds: a pass comes after a minute", took)
	}
}

// TestActivationsAreSeen: activations are found by the indexes of their functions, also where no event
// is recorded, and large results are part of the row.
func TestActivationsAreSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	repository := activations.New(f.store)
	record := func(id string, result string) {
		a := &activations.Record{Activation: api.Activation{
			ActivationID: id, Tenant: f.tenant, Namespace: "shop", Function: "hello", Status: api.StatusSuccess, StartMS: f.store.NowMS(), EndMS: f.store.NowMS() + 5,
			DurationMS: 5, CPUMS: 1.25, Result: json.RawMessage(result), Trigger: api.Trigger{Type: api.TriggerAPI},
		}}
		if won, _, err := repository.RecordEnded(t.Context(), a, nil); err != nil || !won {
			t.Fatalf("RecordEnded: got won %v, error %v, want a new record", won, err)
		}
	}
	if err := storage.NewTenants(f.store).RegisterNamespace(t.Context(), f.tenant, "shop"); err != nil {
		t.Fatalf("RegisterNamespace: %v", err)
	}
	if err := f.store.Client().ZAdd(t.Context(), f.store.Keys().FunctionIndex(f.tenant, "shop"), goredis.Z{Member: "hello"}).Err(); err != nil {
		t.Fatalf("ZAdd: %v", err)
	}
	record("a1", `"small"`)
	record("a2", `"`+strings.Repeat("large ", 2000)+`"`)
	m := f.run(t, feed.Config{})
	f.equal(t, m, 2)
	if err := f.store.Client().Del(t.Context(), f.store.Keys().ActivationMeta(f.tenant, "a1")).Err(); err != nil {
		t.Fatalf("Del: %v", err)
	}
	m.Rebuild()
	f.equal(t, m, 1)
	// A record that cannot be decoded is left out, and does not hold up the others.
	record("a3", `"damaged"`)
	if err := f.store.Client().Set(t.Context(), f.store.Keys().ActivationMeta(f.tenant, "a3"), "{", goredis.KeepTTL).Err(); err != nil {
		t.Fatalf("Set: %v", err)
	}
	record("a4", `"behind it"`)
	eventually(t, "the activation behind the damaged one", func() string {
		var n int
		if err := m.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM activations WHERE id = 'a4'").Scan(&n); err != nil {
			return err.Error()
		}
		if n == 1 {
			return ""
		}
		m.Rebuild()
		return "it has no row"
	})
}
