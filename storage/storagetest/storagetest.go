package storagetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/storage"
)

// Backend is one kind of store to test on.
type Backend struct {
	Name string
	// Config opens the backend, which lives as long as the test.
	Config func(t testing.TB) storage.Config
}

// Backends are the stores that every test runs on: the embedded one and a
// redis-server that the tests of this process share.
func Backends() []Backend {
	return []Backend{
		{"embedded", func(t testing.TB) storage.Config { return storage.Config{Embedded: Embedded(t, t.TempDir())} }},
		{"redis", func(t testing.TB) storage.Config {
			t.Helper()
			s, err := shared()
			if err != nil {
				t.Fatal(err)
			}
			return storage.Config{URL: s.URL}
		}},
	}
}

// AllBackends are Backends and a cluster.
func AllBackends() []Backend {
	return append(Backends(), Backend{"cluster", func(t testing.TB) storage.Config {
		return storage.Config{URL: Cluster(t)}
	}})
}

// Each runs test on every one of Backends, in parallel.
func Each(t *testing.T, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	each(t, Backends(), test)
}

// All runs test on every one of AllBackends, in parallel.
func All(t *testing.T, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	each(t, AllBackends(), test)
}

func each(t *testing.T, backends []Backend, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	for _, b := range backends {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			test(t, Open(t, b.Config(t)))
		})
	}
}

// Open opens a store, under the strict-key prelude unless cfg has another, and
// closes it when the test ends. In a test, but not in a benchmark, a server that is
// not KVRocks answers as KVRocks does.
func Open(t testing.TB, cfg storage.Config) *storage.Store {
	t.Helper()
	if cfg.ScriptPrelude == "" {
		cfg.ScriptPrelude = StrictKeys()
	}
	if _, bench := t.(*testing.B); cfg.Hook == nil && !bench && !onKVRocks() {
		cfg.Hook = LikeKVRocks
	}
	s, err := storage.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// AwaitReachable waits until the client of s has found its server again. After many
// failed dials a client looks for it once a second only.
func AwaitReachable(t testing.TB, s *storage.Store) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // between two questions
		err := s.Client().Ping(t.Context()).Err()
		if err == nil {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("the store does not answer: %v", err)
		}
	}
}

// Embedded opens an embedded store in dir and closes it when the test ends.
func Embedded(t testing.TB, dir string) *storage.Embedded {
	t.Helper()
	e, err := storage.OpenEmbedded(dir, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Tenant is a name that no other test has.
func Tenant(t testing.TB) string {
	t.Helper()
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return "t_" + hex.EncodeToString(b[:])
}
