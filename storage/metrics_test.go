package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// measured is a store of its own server, with what it exports.
func measured(t *testing.T) (*fixture, *prometheus.Registry, *storagetest.Server) {
	t.Helper()
	reg := prometheus.NewRegistry()
	server := storagetest.Redis(t)
	return newFixture(t, storagetest.Open(t, storage.Config{URL: server.URL, Metrics: reg})), reg, server
}

func TestCallsAreCountedByCommandAndOutcome(t *testing.T) {
	t.Parallel()
	f, reg, server := measured(t)
	calls := func(command, outcome string) float64 {
		return metricstest.Value(t, reg, "sous_store_calls_total", "command="+command, "outcome="+outcome)
	}
	// A server that does not know the script yet; then one whose function exists.
	if got := calls("function_create.lua", "refused"); got != 1 {
		t.Errorf("got %g refused calls of a script that the server did not know, want 1", got)
	}
	if got := calls("function_create.lua", "ok"); got != 1 {
		t.Errorf("got %g calls of function_create.lua, want 1", got)
	}
	another := f.fn
	another.CreatedAtMS++
	if _, err := f.functions.Create(t.Context(), another); api.ErrorCode(err) != api.CodeFunctionExists {
		t.Fatalf("functions.Create: got %v; want CodeFunctionExists", err)
	}
	if got := calls("function_create.lua", "refused"); got != 2 {
		t.Errorf("%g refused creations, want one more", got)
	}
	if got := calls("evalsha", "ok") + calls("eval", "ok"); got != 0 {
		t.Errorf("got %g scripts counted without a name, want 0", got)
	}
	pings := calls("ping", "ok")
	if err := f.Ping(t.Context()); err != nil {
		t.Fatalf("Ping: %v", err)
	}
	if got := calls("ping", "ok"); got != pings+1 {
		t.Errorf("got %g pings, want %g", got, pings+1)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if f.Ping(ended) == nil || calls("ping", "cancelled") != 1 {
		t.Errorf("a call whose caller has gone is not counted as such")
	}
	timed := metricstest.Value(t, reg, "sous_store_call_duration_seconds", "command=ping")
	if timed != pings+2 {
		t.Errorf("%g pings were timed, want %g", timed, pings+2)
	}
	server.Kill()
	if f.Ping(t.Context()) == nil || calls("ping", "unavailable") != 1 {
		t.Error("a call of a dead server is not counted as such")
	}
}

func TestGroupCommitsAreMeasured(t *testing.T) {
	t.Parallel()
	f, reg, _ := measured(t)
	pipelines := func(outcome string) float64 {
		return metricstest.Value(t, reg, "sous_store_calls_total", "command=pipeline", "outcome="+outcome)
	}
	before := pipelines("ok")
	a := f.running()
	if _, _, err := f.activations.Start(t.Context(), a); err != nil {
		t.Fatalf("activations.Start: %v", err)
	}
	if got := metricstest.Value(t, reg, "sous_store_commit_batch_size"); got != 1 {
		t.Errorf("got %g batches, want 1", got)
	}
	if got := pipelines("ok"); got != before+1 {
		t.Errorf("got %g pipelines, want %g", got, before+1)
	}
	if got := metricstest.Value(t, reg, "sous_store_commit_queued"); got != 0 {
		t.Errorf("sous_store_commit_queued = %g after the last write, want 0", got)
	}
}

func TestConnectionsAreMeasured(t *testing.T) {
	t.Parallel()
	_, reg, _ := measured(t)
	if got := metricstest.Value(t, reg, "sous_store_connections"); got < 1 {
		t.Errorf("got %g connections, want at least 1", got)
	}
	if got := metricstest.Value(t, reg, "sous_store_connection_gets_total", "result=miss"); got < 1 {
		t.Errorf("got %g connections dialled, want at least 1", got)
	}
}

func TestChangesReceivedAreCounted(t *testing.T) {
	t.Parallel()
	f, reg, server := measured(t)
	heard := make(chan storage.Change, 10)
	if err := f.Subscribe(t.Context(), func(c storage.Change) { heard <- c }); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.URL[len("redis://"):]})
	defer client.Close()
	for _, message := range []string{`{"kind":"cancel"}`, `{"kind":"of a newer release"}`, `no JSON`, `{"kind":"key"}`} {
		if err := client.Publish(t.Context(), "cs:changes", message).Err(); err != nil {
			t.Fatalf("client.Publish: %v", err)
		}
	}
	storagetest.AwaitChange(t, heard, storage.Change{Kind: storage.ChangeKey})
	for kind, want := range map[string]float64{"cancel": 1, "key": 1, "_other": 2, "of a newer release": 0} {
		if got := metricstest.Value(t, reg, "sous_store_changes_received_total", "kind="+kind); got != want {
			t.Errorf("%g notices of kind %s, want %g", got, kind, want)
		}
	}
}

// The embedded store's loops are seen to run.
func TestEmbeddedLoopsAreMeasured(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir()), Metrics: reg})
	for _, loop := range []string{"store_snapshot", "store_expiry"} {
		storagetest.Eventually(t, func() bool {
			return metricstest.Value(t, reg, "sous_loop_rounds_total", "loop="+loop, "outcome=ok") > 0
		})
		if lag := metricstest.Value(t, reg, "sous_loop_lag_seconds", "loop="+loop); lag > 10 {
			t.Errorf("loop %s: got a lag of %g s, want at most 10", loop, lag)
		}
	}
}

// A registry that has a Store's metrics takes no other's.
func TestOpenRefusesAUsedRegistry(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	server := storagetest.Redis(t)
	storagetest.Open(t, storage.Config{URL: server.URL, Metrics: reg})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if s, err := storage.Open(ctx, storage.Config{URL: server.URL, Metrics: reg}); err == nil {
		t.Errorf("Open with a registry that has the metrics: got success (Close: %v), want an error", s.Close())
	}
}
