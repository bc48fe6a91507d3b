package storage_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// TestOutage kills the server under load and starts it again: meanwhile every
// call fails as unavailable, soon; afterwards all is well by itself.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	f := newFixture(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	for range 16 {
		load.Go(func() {
			for ctx.Err() == nil {
				a := f.running()
				if _, _, err := f.activations.Start(context.Background(), a); err != nil {
					wantUnavailable(t, "start", err)
					continue
				}
				// The server forgets what it had: the record may be gone by now.
				_, _, err := f.activations.Finish(context.Background(), succeeded(a, f.NowMS(), "1"))
				if err != nil && api.ErrorCode(err) != api.CodeActivationNotFound {
					wantUnavailable(t, "finish", err)
				}
			}
		})
	}
	storagetest.Eventually(t, func() bool { return len(f.firstPage(t)) > 10 })
	server.Kill()
	calls := map[string]func() error{
		"ping":    func() error { return f.Ping(ctx) },
		"get":     func() error { _, err := f.functions.Get(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name); return err },
		"create":  func() error { _, err := f.functions.Create(ctx, f.fn); return err },
		"publish": func() error { _, _, err := f.publish(api.NewDraftID(1), "aa", ""); return err },
		"list": func() error {
			_, _, err := f.versions.List(ctx, f.fn.Tenant, f.fn.Namespace, f.fn.Name, 0, 1)
			return err
		},
		"kv": func() error { return kvstore.New(f.Store).Set(ctx, f.fn.Tenant, "n", "k", nil, 0) },
	}
	for name, call := range calls {
		began := time.Now()
		wantUnavailable(t, name, call())
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("%s: got an error after %v, want it within 5 s", name, d)
		}
	}
	server.Start(t)
	for name, call := range calls {
		storagetest.Eventually(t, func() bool { return api.ErrorCode(call()) != api.CodeStoreUnavailable })
		t.Log(name, "works again")
	}
	stop()
	load.Wait()
}

func (f *fixture) firstPage(t *testing.T) []api.Activation {
	t.Helper()
	items, _, err := f.activations.List(t.Context(), activations.Filter{Tenant: f.fn.Tenant, Namespace: f.fn.Namespace, Function: f.fn.Name})
	if err != nil {
		t.Fatalf("activations.List: %v", err)
	}
	return items
}

func wantUnavailable(t *testing.T, name string, err error) {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeStoreUnavailable || e.RetryAfter <= 0 {
		t.Errorf("%s: got error %v, want code %s with a Retry-After", name, err, api.CodeStoreUnavailable)
	}
}

// TestSilentServer: one that takes connections and never answers is reported
// within the bounds of a command, and a caller's deadline is kept before that.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	var held sync.WaitGroup
	held.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			held.Go(func() { // read on, say nothing
				for b := make([]byte, 1024); err == nil; {
					_, err = c.Read(b)
				}
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); held.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := storage.Open(ctx, storage.Config{URL: "redis://" + l.Addr().String()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open with a deadline: got error %v, want %v", err, context.DeadlineExceeded)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("Open with a deadline of 300 ms: got an error after %v, want it within 2 s", d)
	}
	began = time.Now()
	_, err = storage.Open(t.Context(), storage.Config{URL: "redis://" + l.Addr().String()})
	wantUnavailable(t, "open", err)
	if d := time.Since(began); d > 15*time.Second {
		t.Errorf("Open without a deadline: got an error after %v, want it within 15 s", d)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]storage.Config{
		"nothing":    {},
		"both":       {URL: "redis://h:1", Embedded: storagetest.Embedded(t, t.TempDir())},
		"a bad URL":  {URL: "http://h:1"},
		"tiny pools": {URL: "redis://h:1", PoolSize: 2},
	} {
		if _, err := storage.Open(t.Context(), cfg); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("%s: storage.Open: got %v; want CodeInvalid", name, err)
		}
	}
}
