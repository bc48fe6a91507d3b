package sweeper_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/scheduler/sweeper"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// fill creates functions with some activations each, all of which began an hour
// ago and are recorded as running.
func fill(t *testing.T, s *storage.Store, tenant string, functions, runs int, now time.Time) (ids []string) {
	t.Helper()
	began := now.Add(-time.Hour).UnixMilli()
	for f := range functions {
		name := fmt.Sprintf("fn-%03d", f)
		_, err := storage.NewFunctions(s).Create(t.Context(), api.Function{
			Tenant: tenant, Namespace: "default", Name: name, Runtime: api.RuntimeJS, CreatedAtMS: began,
		})
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
		for n := range runs {
			id := uuid.NewString()
			_, _, err := activations.New(s).Start(t.Context(), &activations.Record{Activation: api.Activation{
				ActivationID: id, Tenant: tenant, Namespace: "default", Function: name, Status: api.StatusRunning,
				StartMS: began + int64(n), DeadlineMS: began + 3000, Attempt: 1,
			}})
			if err != nil {
				t.Fatalf("Start: %v", err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// backends are stores of the test's own: a sweep counts what it finds anywhere.
func backends(t *testing.T, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())}))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}))
	})
}

func brokerOn(t *testing.T, s *storage.Store) *queue.Broker {
	t.Helper()
	b, err := queue.New(t.Context(), s, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(b.Close)
	return b
}

func sweeperOn(t *testing.T, s *storage.Store, cfg sweeper.Config) *sweeper.Sweeper {
	t.Helper()
	sw, err := sweeper.New(s, brokerOn(t, s), cfg, zap.NewNop())
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return sw
}

func TestSweeperEndsLostActivations(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, s *storage.Store) {
		now, tenant := time.Now(), storagetest.Tenant(t)
		ids := fill(t, s, tenant, 5, 20, now)
		sw := sweeperOn(t, s, sweeper.Config{Reads: 30, PassInterval: time.Second})
		lost, steps := 0, 0
		for ; lost < len(ids) && steps < 50; steps++ {
			counts, err := sw.RunOnce(t.Context(), now)
			if err != nil {
				t.Fatalf("RunOnce: %v", err)
			}
			if counts.Read > 30 {
				t.Errorf("RunOnce: got %d records read, want at most 30", counts.Read)
			}
			lost += counts.Lost
			if counts.Functions == 0 {
				now = now.Add(time.Second) // between passes
			}
		}
		if lost != len(ids) {
			t.Errorf("got %d lost activations ended in %d steps, want %d", lost, steps, len(ids))
		}
		for _, id := range ids {
			a, err := activations.New(s).Get(t.Context(), tenant, id)
			if err != nil || a.Status != api.StatusError || a.Error.Type != api.ErrLost {
				t.Fatalf("Get(%s) = %+v, %v, want it ended as %s", id, a, err, api.ErrLost)
			}
		}
	})
}

// A record that cannot be read keeps the sweeper from no other, and is logged once.
func TestSweeperPassesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	now, tenant := time.Now(), storagetest.Tenant(t)
	ids := fill(t, s, tenant, 3, 2, now)
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "redis://"))
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "SET cs:act:%s:%s:meta {\r\n", tenant, ids[0]); err != nil {
		t.Fatalf("Fprintf: %v", err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "+OK\r\n" {
		t.Fatalf("reply of the store = %q, %v, want +OK", answer, err)
	}
	core, logs := observer.New(zap.ErrorLevel)
	sw, err := sweeper.New(s, brokerOn(t, s), sweeper.Config{}, zap.New(core))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	counts, err := sw.RunOnce(t.Context(), now)
	if err != nil || counts.Lost != 5 || counts.Functions != 3 {
		t.Errorf("%+v %v, want all that was lost but one", counts, err)
	}
	if got := logs.FilterField(zap.String("record", "activation "+tenant+"/"+ids[0])).Len(); got != 1 || logs.Len() != 1 {
		t.Errorf("log: got %+v, want one line that names activation %s", logs.All(), ids[0])
	}
	for day := range time.Duration(3) { // the whole index is swept again each day
		if _, err := sw.RunOnce(t.Context(), now.Add(day*25*time.Hour)); err != nil {
			t.Fatalf("RunOnce: %v", err)
		}
	}
	if logs.Len() != 1 {
		t.Errorf("log after further steps: got %+v, want no line more", logs.All())
	}
}

// A pass does not begin before its time, and is slow where the
// one before found nothing: a small store stays quiet. When the store fails, it hurries
// again.
func TestSweeperRestsBetweenLaps(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t, "--appendonly", "yes")
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	now := time.Now()
	fill(t, s, storagetest.Tenant(t), 3, 0, now)
	sw := sweeperOn(t, s, sweeper.Config{PassInterval: 5 * time.Second, IdleInterval: 2 * time.Second * 3 / 7})
	visited := func(after time.Duration) (int, error) {
		counts, err := sw.RunOnce(t.Context(), now.Add(after))
		return counts.Functions, err
	}
	// A read takes 2 s of the time of this route, which has 3 of 7 shares, and a function three of them, one to come
	// to it, and one for each of the tenant, its queues and schedules, and the namespace
	// and its schedules.
	at := map[time.Duration]int{
		0: 3, time.Second: 0, 4999 * time.Millisecond: 0, 5 * time.Second: 0,
		7 * time.Second: 0, 9 * time.Second: 0, 11 * time.Second: 0, 13 * time.Second: 0, 15 * time.Second: 1, 16 * time.Second: 0, 17 * time.Second: 0,
		22 * time.Second: 0, 23 * time.Second: 1, 25 * time.Second: 0, 31 * time.Second: 1, 32 * time.Second: 0,
	}
	for _, after := range slices.Sorted(maps.Keys(at)) {
		if got, err := visited(after); err != nil || got != at[after] {
			t.Errorf("after %s: %d functions visited, want %d %v", after, got, at[after], err)
		}
	}
	server.Kill()
	if _, err := visited(time.Minute); err == nil {
		t.Error("RunOnce without the store: got no error, want one")
	}
	server.Start(t)
	fill(t, s, storagetest.Tenant(t), 3, 0, now)
	if got, err := visited(2 * time.Minute); err != nil || got != 6 {
		t.Errorf("after an outage: %d functions visited, want 6 %v", got, err)
	}
}

func TestSweeperRefusesBadSettings(t *testing.T) {
	t.Parallel()
	for _, cfg := range []sweeper.Config{{Interval: -1}, {Reads: -1}, {IdleInterval: -1}, {PassInterval: -1}} {
		if _, err := sweeper.New(nil, nil, cfg, zap.NewNop()); err == nil {
			t.Errorf("New with %+v: got no error, want one", cfg)
		}
	}
}

// Sweepers that start and stop at once, and an outage, leave nothing behind.
func TestSweeperStartsAndStops(t *testing.T) {
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	fill(t, s, storagetest.Tenant(t), 5, 5, time.Now())
	quiet := goleak.IgnoreCurrent()
	broker := brokerOn(t, s)
	for round := range 20 {
		if round == 10 {
			server.Kill()
		}
		ctx, stop := context.WithCancel(t.Context())
		sw, err := sweeper.New(s, broker, sweeper.Config{Interval: time.Millisecond, Reads: 3, PassInterval: time.Millisecond}, zap.NewNop())
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		done := make(chan struct{})
		go func() {
			sw.Run(ctx)
			close(done)
		}()
		time.AfterFunc(time.Duration(round)*time.Millisecond, stop)
		<-done
	}
	broker.Close()
	goleak.VerifyNone(t, quiet)
}
