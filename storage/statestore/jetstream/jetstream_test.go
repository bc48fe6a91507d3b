package jetstream_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/jetstream"
	"github.com/codesous/sous/storage/statestore/statestoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer starts a server whose data are in dir, on port or, for -1, on a free one.
func startServer(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true, MaxPayload: 256 << 10,
	})
	if err != nil {
		t.Fatalf("server.NewServer: %v", err)
	}
	s.Start()
	t.Cleanup(func() { stopServer(s) })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not come up")
	}
	return s
}

func stopServer(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func connect(t *testing.T, s *server.Server) natsjs.JetStream {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL(), nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatalf("nats.Connect: %v", err)
	}
	t.Cleanup(conn.Close)
	js, err := natsjs.New(conn)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return js
}

func open(t *testing.T, js natsjs.JetStream, cfg jetstream.Config) *jetstream.Store {
	t.Helper()
	s, err := jetstream.New(t.Context(), js, cfg)
	if err != nil {
		t.Fatalf("jetstream.New: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// clock is the time, and what a test let pass besides.
type clock struct {
	mu     sync.Mutex
	passed time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.passed)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

func TestConformance(t *testing.T) {
	t.Parallel()
	js, c := connect(t, startServer(t, t.TempDir(), -1)), &clock{}
	t.Run("suite", func(t *testing.T) { // ends before the server does
		statestoretest.Run(t, statestoretest.Config{
			Open: func(t *testing.T) statestore.Store {
				return open(t, js, jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage, Clock: c.now})
			},
			Pass:     c.pass,
			TooLarge: 256 << 10,
		})
	})
}

func fields(pairs ...string) statestore.Fields {
	made := statestore.Fields{}
	for i := 0; i < len(pairs); i += 2 {
		made[pairs[i]] = []byte(pairs[i+1])
	}
	return made
}

func put(t *testing.T, s statestore.Store, key string, ttl time.Duration) {
	t.Helper()
	if err := s.Put(t.Context(), key, statestore.Record{Fields: fields("n", "1"), TTL: ttl}); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

func scan(t *testing.T, s statestore.Store, prefix string) (keys []string) {
	t.Helper()
	for e, err := range s.Scan(t.Context(), prefix, nil) {
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

// messages counts what the bucket's stream holds, marks of deleted records included.
func messages(t *testing.T, js natsjs.JetStream, bucket string) (records, marks int) {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), bucket)
	if err != nil {
		t.Fatalf("KeyValue: %v", err)
	}
	watcher, err := kv.WatchAll(t.Context())
	if err != nil {
		t.Fatalf("WatchAll: %v", err)
	}
	defer func() { _ = watcher.Stop() }()
	for entry := range watcher.Updates() {
		if entry == nil {
			break
		}
		if entry.Operation() == natsjs.KeyValuePut {
			records++
		} else {
			marks++
		}
	}
	return records, marks
}

// TestWhatExpiredIsRemoved tests that a read, a scan and a write remove the
// expired records that they meet.
func TestWhatExpiredIsRemoved(t *testing.T) {
	t.Parallel()
	js, c := connect(t, startServer(t, t.TempDir(), -1)), &clock{}
	s := open(t, js, jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage, Clock: c.now})
	for name, meet := range map[string]func(key string) error{
		"Get":       func(key string) error { _, err := s.Get(t.Context(), key); return err },
		"GetField":  func(key string) error { _, _, err := s.GetField(t.Context(), key, "n"); return err },
		"SetFields": func(key string) error { return s.SetFields(t.Context(), key, statestore.Fields{"n": nil}) },
		"Expire":    func(key string) error { return s.Expire(t.Context(), key, time.Hour) },
		"Scan":      func(string) error { scan(t, s, "a:"); return nil },
	} {
		put(t, s, "a:b", time.Hour)
		c.pass(2 * time.Hour)
		if records, _ := messages(t, js, "states"); records != 1 {
			t.Fatalf("%s: got %d records before, want 1", name, records)
		}
		if err := meet("a:b"); err != nil {
			t.Errorf("%s: got error %v, want success", name, err)
		}
		if records, _ := messages(t, js, "states"); records != 0 {
			t.Errorf("%s: got %d records after, want 0", name, records)
		}
	}
}

// TestMarksOfDeletedRecordsGo tests that the marks of deleted records expire, and that the
// deletion of a missing record leaves no mark.
func TestMarksOfDeletedRecordsGo(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t, t.TempDir(), -1))
	kv, err := js.CreateKeyValue(t.Context(), natsjs.KeyValueConfig{Bucket: "states", LimitMarkerTTL: time.Second, Storage: natsjs.MemoryStorage})
	if err != nil {
		t.Fatalf("CreateKeyValue: %v", err)
	}
	s := open(t, js, jetstream.Config{Bucket: "states"})
	put(t, s, "a:b", 0)
	for _, key := range []string{"a:b", "a:b", "never"} {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	records, marks := messages(t, js, "states")
	if records != 0 || marks != 1 {
		t.Errorf("got %d records and %d marks, want 0 and 1", records, marks)
	}
	stream, err := js.Stream(t.Context(), "KV_"+kv.Bucket())
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "$KV.states.a.b")
	if err != nil || m.Header.Get(natsjs.MsgTTLHeader) != "1m0s" {
		t.Errorf("mark: got the time to live %q and error %v, want 1m0s", m.Header.Get(natsjs.MsgTTLHeader), err)
	}
}

// TestBucketsThatDoNotFitAreRefused, and one that does is used as it is.
func TestBucketsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t, t.TempDir(), -1))
	for bucket, cfg := range map[string]natsjs.KeyValueConfig{
		"expires": {TTL: time.Hour, LimitMarkerTTL: time.Minute}, "marks": {},
	} {
		cfg.Bucket = bucket
		if _, err := js.CreateKeyValue(t.Context(), cfg); err != nil {
			t.Fatalf("CreateKeyValue: %v", err)
		}
	}
	for _, bucket := range []string{"expires", "marks", "", "no bucket", "a.b"} {
		if _, err := jetstream.New(t.Context(), js, jetstream.Config{Bucket: bucket}); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("New on bucket %s: got error %v, want code %s", bucket, err, api.CodeInvalid)
		}
	}
	_, err := js.CreateKeyValue(t.Context(), natsjs.KeyValueConfig{Bucket: "own", LimitMarkerTTL: time.Hour, MaxValueSize: 1000})
	if err != nil {
		t.Fatalf("CreateKeyValue: %v", err)
	}
	s := open(t, js, jetstream.Config{Bucket: "own"})
	put(t, s, "a", 0)
	err = s.SetFields(t.Context(), "a", statestore.Fields{"large": make([]byte, 1000)})
	if api.ErrorCode(err) != api.CodeBodyLimit {
		t.Errorf("SetFields larger than the bucket allows: got error %v, want code %s", err, api.CodeBodyLimit)
	}
}

// TestForeignEntriesArePassedOver by scans, and are an error to who reads them.
func TestForeignEntriesArePassedOver(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t, t.TempDir(), -1))
	s := open(t, js, jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage})
	put(t, s, "a:b", 0)
	kv, err := js.KeyValue(t.Context(), "states")
	if err != nil {
		t.Fatalf("KeyValue: %v", err)
	}
	if _, err := kv.Put(t.Context(), "a.json", []byte(`{"n": 1}`)); err != nil {
		t.Fatalf("Put: %v", err)
	}
	own, err := kv.Get(t.Context(), "a.b")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	for _, key := range []string{"a.=zz", "a.=", "a.=4", "a.=41", "a.=2e", "a.=3A"} { // none an escape
		if _, err := kv.Put(t.Context(), key, own.Value()); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	if keys := scan(t, s, "a:"); len(keys) != 1 || keys[0] != "a:b" {
		t.Errorf("Scan: got keys %v, want only a:b", keys)
	}
	if _, err := s.Get(t.Context(), "a:json"); api.ErrorCode(err) != api.CodeInternal {
		t.Errorf("Get of a malformed entry: got error %v, want code %s", err, api.CodeInternal)
	}
}

// TestRecordsOutliveTheServer: it restarts, the client comes back by itself, and all
// that was stored is there.
func TestRecordsOutliveTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServer(t, dir, -1)
	js := connect(t, first)
	s := open(t, js, jetstream.Config{Bucket: "states", Timeout: time.Second})
	put(t, s, "a:b", time.Hour)
	addr, ok := first.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("address of the server: got %v, want a TCP address", first.Addr())
	}
	stopServer(first)
	for call, err := range map[string]error{
		"Ping":   s.Ping(t.Context()),
		"Delete": s.Delete(t.Context(), "a:b"),
		"Put":    s.Put(t.Context(), "a:b", statestore.Record{Fields: fields("n", "2")}),
		"Scan":   scanError(t.Context(), s),
	} {
		if api.ErrorCode(err) != api.CodeStoreUnavailable {
			t.Errorf("%s without a server: got error %v, want code %s", call, err, api.CodeStoreUnavailable)
		}
	}
	startServer(t, dir, addr.Port)
	deadline := time.Now().Add(20 * time.Second)
	for err := s.Ping(t.Context()); err != nil; err = s.Ping(t.Context()) {
		if api.ErrorCode(err) != api.CodeStoreUnavailable || time.Now().After(deadline) {
			t.Fatalf("Ping while the client reconnects: got error %v, want code %s, and success within 20 s", err, api.CodeStoreUnavailable)
		}
		time.Sleep(2 * time.Millisecond)
	}
	r, err := s.Get(t.Context(), "a:b")
	if err != nil || r == nil || string(r.Fields["n"]) != "1" || r.TTL <= 59*time.Minute {
		t.Errorf("Get after the restart = %+v, %v, want n 1 for an hour", r, err)
	}
	if won, err := statestore.CompareAndSwap(t.Context(), s, "a:b", "n", []byte("1"), []byte("2")); err != nil || !won {
		t.Errorf("CompareAndSwap after the restart = %v, %v, want true", won, err)
	}
}

func scanError(ctx context.Context, s statestore.Store) (failed error) {
	for _, err := range s.Scan(ctx, "a:", nil) {
		failed = errors.Join(failed, err)
	}
	return failed
}

// TestClosedConnection, which is the caller's to close.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t, t.TempDir(), -1))
	s := open(t, js, jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage})
	for _, key := range []string{"a:b", "a:c"} {
		put(t, s, key, 0)
	}
	answers := 0
	for _, err := range s.Scan(t.Context(), "a:", nil) {
		js.Conn().Close() // in the midst of a scan
		answers++
		if err != nil && api.ErrorCode(err) != api.CodeStoreUnavailable {
			t.Errorf("got error %v, want none or code %s", err, api.CodeStoreUnavailable)
		}
	}
	if answers == 0 {
		t.Error("the scan gave nothing")
	}
	if err := s.SetFields(t.Context(), "a:b", fields("n", "2")); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("SetFields over a closed connection: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
	if _, err := jetstream.New(t.Context(), js, jetstream.Config{Bucket: "states"}); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("New over a closed connection: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
}

// TestScanLeftEarlyLeavesNothing behind, even where the client has taken in more than
// its watch holds (see TestMain).
func TestScanLeftEarlyLeavesNothing(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t, t.TempDir(), -1))
	s := open(t, js, jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage})
	const n = 1000
	for i := range n {
		put(t, s, "a:"+strconv.Itoa(i), 0)
	}
	before := js.Conn().Stats().InMsgs
	for range s.Scan(t.Context(), "a:", nil) {
		for deadline := time.Now().Add(20 * time.Second); js.Conn().Stats().InMsgs < before+n; {
			if time.Now().After(deadline) {
				t.Fatal("the server does not send all")
			}
			time.Sleep(time.Millisecond)
		}
		break
	}
}
