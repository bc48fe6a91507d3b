package jetstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
)

// contended is a bucket in which another writer changes a record before each Update, as
// many times as its field says.
type contended struct {
	natsjs.KeyValue
	times, updates int
}

func (c *contended) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	c.updates++
	if c.updates <= c.times {
		d := document{fields: statestore.Fields{"theirs": []byte{byte(c.updates)}}}
		if _, err := c.Put(ctx, key, d.encode()); err != nil {
			return 0, err
		}
	}
	return c.KeyValue.Update(ctx, key, value, revision)
}

// TestChangesAreTriedAgain a bounded number of times, and keep what others wrote.
func TestChangesAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	for times, want := range map[int]api.Code{0: "", 3: "", maxTries - 1: "", maxTries: api.CodeStoreConflict} {
		kv := &contended{KeyValue: s.kv, times: times}
		on := &Store{js: s.js, kv: kv, timeout: s.timeout, clock: s.clock}
		if err := s.Put(t.Context(), "a", statestore.Record{Fields: statestore.Fields{"n": []byte("1")}}); err != nil {
			t.Fatalf("Put: %v", err)
		}
		err := on.SetFields(t.Context(), "a", statestore.Fields{"mine": {}})
		if api.ErrorCode(err) != want || kv.updates != min(times+1, maxTries) {
			t.Errorf("%d conflicts: got %d updates and error %v, want %d and code %q", times, kv.updates, err, min(times+1, maxTries), want)
		}
		r, err := s.Get(t.Context(), "a")
		if err != nil || r == nil {
			t.Fatalf("Get: got %v and error %v, want a record", r, err)
		}
		if _, mine := r.Fields["mine"]; mine != (want == "") {
			t.Errorf("%d conflicts: got fields %v, want mine in them: %v", times, r.Fields, want == "")
		}
		if theirs := r.Fields["theirs"]; times > 0 && (len(theirs) != 1 || theirs[0] != byte(times)) {
			t.Errorf("%d conflicts: got fields %v, want theirs with %d", times, r.Fields, times)
		}
	}
}

func (c *contended) Purge(ctx context.Context, key string, opts ...natsjs.KVDeleteOpt) error {
	c.updates++
	if c.updates <= c.times {
		d := document{fields: statestore.Fields{"theirs": {}}}
		if _, err := c.Put(ctx, key, d.encode()); err != nil {
			return err
		}
	}
	return c.KeyValue.Purge(ctx, key, opts...)
}

// TestRemovalsSpareWhatOthersWrote: neither the last field's removal nor that of an
// expired record takes a newer one away.
func TestRemovalsSpareWhatOthersWrote(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	removed := statestore.Record{Fields: statestore.Fields{"n": []byte("1")}}
	for name, tt := range map[string]struct {
		later time.Duration
		call  func(s *Store, key string) error
	}{
		"last field": {0, func(s *Store, key string) error { return s.SetFields(t.Context(), key, statestore.Fields{"n": nil}) }},
		"read":       {time.Hour, func(s *Store, key string) error { _, err := s.Get(t.Context(), key); return err }},
		"scan": {time.Hour, func(s *Store, key string) error {
			for _, err := range s.Scan(t.Context(), key, nil) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		removed.TTL = tt.later
		if err := s.Put(t.Context(), "a", removed); err != nil {
			t.Fatalf("Put: %v", err)
		}
		kv := &contended{KeyValue: s.kv, times: 1}
		on := &Store{js: s.js, kv: kv, timeout: s.timeout, clock: func() time.Time { return time.Now().Add(2 * tt.later) }}
		if err := tt.call(on, "a"); err != nil {
			t.Errorf("%s: got error %v, want success", name, err)
		}
		r, err := s.Get(t.Context(), "a")
		if err != nil || r == nil || len(r.Fields) != 1 || r.Fields["theirs"] == nil || kv.updates == 0 {
			t.Errorf("%s: got %+v and error %v after %d purges, want only theirs after at least 1", name, r, err, kv.updates)
		}
	}
}

// TestConflictsEndWithTheCaller rather than be tried on.
func TestConflictsEndWithTheCaller(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	if err := s.Put(t.Context(), "a", statestore.Record{Fields: statestore.Fields{"n": []byte("1")}}); err != nil {
		t.Fatalf("Put: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	on := &Store{js: s.js, kv: &cancelling{contended{KeyValue: s.kv, times: maxTries}, cancel}, timeout: s.timeout, clock: s.clock}
	if err := on.SetFields(ctx, "a", statestore.Fields{"mine": {}}); !errors.Is(err, context.Canceled) {
		t.Errorf("SetFields with a cancelled context: got error %v, want %v", err, context.Canceled)
	}
}

// cancelling ends its caller's context with the first conflict.
type cancelling struct {
	contended
	cancel context.CancelFunc
}

func (c *cancelling) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	n, err := c.contended.Update(ctx, key, value, revision)
	c.cancel()
	return n, err
}

func newTestStore(t *testing.T) *Store {
	t.Helper()
	srv, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatalf("NewServer: %v", err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	conn, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		t.Fatalf("nats.Connect: %v", err)
	}
	t.Cleanup(conn.Close)
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	s, err := New(t.Context(), js, Config{Bucket: "states", Storage: natsjs.MemoryStorage})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

// TestDecodeRefuses what encode never wrote, without a panic.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	d := document{fields: statestore.Fields{"n": []byte("1"), "": {}}, expiresAtMS: 1 << 40}
	whole := d.encode()
	if got, err := decode(whole); err != nil || !got.holds(d.fields) || len(got.fields) != 2 || got.expiresAtMS != d.expiresAtMS {
		t.Fatalf("decode: got %+v and error %v, want 2 fields as encoded and expiry %d", got, err, d.expiresAtMS)
	}
	for cut := range whole {
		if got, err := decode(whole[:cut]); err == nil {
			t.Errorf("decode of %d bytes = %+v, want an error", cut, got)
		}
	}
	for _, in := range [][]byte{append(whole, 0), append([]byte{2}, whole[1:]...), {1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		if got, err := decode(in); err == nil {
			t.Errorf("decode of %v: got %+v, want an error", in, got)
		}
	}
}
