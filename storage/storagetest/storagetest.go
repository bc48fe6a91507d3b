package storagetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/embedded"
)

// Backend is one kind of store to test on.
type Backend struct {
	Name string // the name of the subtest
	// Config starts the backend if necessary, and returns the settings for storage.Open. The
	// embedded one lives as long as the test, the others as long as this process.
	Config func(t testing.TB) storage.Config
}

// Backends returns the stores that every test runs on: the embedded one, and a store server
// that the tests of this process share, which is redis-server unless StoreServerEnv names
// another one.
func Backends() []Backend {
	return []Backend{
		{"embedded", func(t testing.TB) storage.Config { return storage.Config{Embedded: Embedded(t, t.TempDir())} }},
		{"redis", func(t testing.TB) storage.Config {
			t.Helper()
			s, err := shared()
			if err != nil {
				t.Fatalf("shared: %v", err)
			}
			return storage.Config{URL: s.URL}
		}},
	}
}

// AllBackends returns Backends and a cluster.
func AllBackends() []Backend {
	return append(Backends(), Backend{"cluster", func(t testing.TB) storage.Config {
		return storage.Config{URL: Cluster(t)}
	}})
}

// Each runs test on every one of Backends, in parallel. The Store is closed when its subtest
// ends; keys of other tests may be in it.
func Each(t *testing.T, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	each(t, Backends(), test)
}

// EachWithCluster runs test on every one of AllBackends, in parallel.
func EachWithCluster(t *testing.T, test func(t *testing.T, s *storage.Store)) {
	t.Helper()
	each(t, AllBackends(), test)
}

// each runs test in a parallel subtest for each backend.
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
// not KVRocks answers as KVRocks does; a Hook in cfg replaces that. A failure ends the test.
func Open(t testing.TB, cfg storage.Config) *storage.Store {
	t.Helper()
	if cfg.ScriptPrelude == "" {
		cfg.ScriptPrelude = StrictKeys()
	}
	if _, bench := t.(*testing.B); cfg.Hook == nil && !bench && !OnKVRocks() {
		cfg.Hook = LikeKVRocks
	}
	s, err := storage.Open(context.Background(), cfg)
	if err != nil {
		t.Fatalf("storage.Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// AwaitReachable waits until the client of s has connected to its server again, for 20 s at
// most. After many failed dials a client tries once a second only, so the first command after
// a restart can still fail.
func AwaitReachable(t testing.TB, s *storage.Store) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) { // between two pings
		err := s.Client().Ping(t.Context()).Err()
		if err == nil {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("Ping: got error %v after 20 s, want an answer", err)
		}
	}
}

// Embedded opens an embedded server in dir and closes it when the test ends. Its log is the
// test's.
func Embedded(t testing.TB, dir string) *embedded.Server {
	t.Helper()
	e, err := embedded.Open(dir, zaptest.NewLogger(t))
	if err != nil {
		t.Fatalf("embedded.Open: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// CopyEmbedded copies the files of an embedded store from one directory to another, as a
// kill at this moment would leave them. whole is false if the store replaced its snapshot
// or deleted a journal during the copy.
func CopyEmbedded(t testing.TB, from, to string) (whole bool) {
	t.Helper()
	snapshot := filepath.Join(from, "store.snapshot")
	before, err := os.Stat(snapshot)
	if err != nil {
		t.Fatalf("os.Stat: %v", err)
	}
	journals, err := filepath.Glob(filepath.Join(from, "store.journal.*"))
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	for _, path := range append(journals, snapshot) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), raw, 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	after, err := os.Stat(snapshot)
	return err == nil && os.SameFile(before, after)
}

// Tenant returns a random tenant name that no other test uses, such as t_0123456789abcdef.
// Tests share servers, so a test must not depend on keys without a tenant.
func Tenant(t testing.TB) string {
	t.Helper()
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatalf("rand.Read: %v", err)
	}
	return "t_" + hex.EncodeToString(b[:])
}

// Concurrently calls call n times at once, with 0 to n-1, waits for all of them, and returns
// the errors in that order. call runs in other goroutines, so it must not end the test.
func Concurrently(n int, call func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	return errs
}

// Eventually calls ok every 5 ms until it returns true, and ends the test after 10 s.
func Eventually(t testing.TB, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not become true within 10 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// AwaitChange receives notices from heard until it receives want, and ends the test after
// 20 s. It drops the notices before want.
func AwaitChange(t testing.TB, heard <-chan storage.Change, want storage.Change) {
	t.Helper()
	limit := time.After(20 * time.Second)
	var got []storage.Change
	for {
		select {
		case change := <-heard:
			if change == want {
				return
			}
			got = append(got, change)
		case <-limit:
			t.Fatalf("AwaitChange: got the notices %+v within 20 s, want also %+v", got, want)
		}
	}
}
