package storage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// TestHelloCostsFourCommands counts what the server processes for one
// activation without logs: SET, ZADD and EVALSHA, each also within the script.
func TestHelloCostsFourCommands(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s, err := storage.Open(t.Context(), storage.Config{URL: server.URL})
	if err != nil {
		t.Fatalf("storage.Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := newFixture(t, s)
	hello := func() {
		a := f.running()
		f.start(t, a)
		if won, _, err := f.activations.Finish(t.Context(), succeeded(a, s.NowMS(), `"hello"`)); err != nil || !won {
			t.Fatalf("Finish: got won %v and error %v, want true", won, err)
		}
	}
	hello() // loads the script
	before := storagetest.Calls(t, s.Client())
	const n = 50
	for range n {
		hello()
	}
	after, sent := storagetest.Calls(t, s.Client()), int64(0)
	for _, command := range []string{"set", "zadd", "evalsha", "eval", "get", "mget"} {
		sent += after[command] - before[command]
	}
	inScript := 2 * n // the script's own GET and SET
	if sent-int64(inScript) != 3*n {
		t.Errorf("got %d commands for %d activations, from %v to %v, want %d", sent-int64(inScript), n, before, after, 3*n)
	}
}

// TestACancelledCallerLeavesTheOthers: callers that give up get their context's
// error, and neither their write nor any other in the batch is lost.
func TestACancelledCallerLeavesTheOthers(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		const n = 64
		errs := storagetest.Concurrently(n, func(i int) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%2 == 0 {
				go cancel() // at some moment before, while or after it is written
			}
			_, _, err := f.activations.Start(ctx, f.running())
			if i%2 == 0 && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		})
		if err := errors.Join(errs...); err != nil {
			t.Errorf("errors.Join: %v", err)
		}
		if got := f.pages(t, activations.Filter{Limit: 500}); len(got) < n/2 {
			t.Errorf("got %d of %d records, want at least %d", len(got), n, n/2)
		}
	})
}

func TestWritesFailWhenTheStoreIsClosed(t *testing.T) {
	t.Parallel()
	e := storagetest.Embedded(t, t.TempDir())
	s, err := storage.Open(t.Context(), storage.Config{Embedded: e})
	if err != nil {
		t.Fatalf("storage.Open: %v", err)
	}
	f := newFixture(t, s)
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	_, _, err = f.activations.Start(t.Context(), f.running())
	wantUnavailable(t, "start", err)
	wantUnavailable(t, "ping", s.Ping(t.Context()))
}

// TestGroupCommitsAreTransactionsOnKVRocks, where a transaction is one write of RocksDB,
// and on no other server.
func TestGroupCommitsAreTransactionsOnKVRocks(t *testing.T) {
	t.Parallel()
	s, err := storage.Open(t.Context(), storage.Config{URL: storagetest.Redis(t).URL})
	if err != nil {
		t.Fatalf("storage.Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := newFixture(t, s)
	want := int64(0)
	if storagetest.OnKVRocks() {
		want = 1
	}
	before := storagetest.Calls(t, s.Client())["exec"]
	a := f.running()
	f.start(t, a)
	if got := storagetest.Calls(t, s.Client())["exec"] - before; got != want {
		t.Errorf("got %d transactions for one record, want %d", got, want)
	}
	// The reply of each command is its own, also within a transaction.
	other := *a
	other.RequestID = "req_other"
	created, existing, err := f.activations.Start(t.Context(), &other)
	if err != nil || created || existing.RequestID != a.RequestID {
		t.Errorf("got created %v, existing %+v, error %v; want the record that is there", created, existing, err)
	}
}
