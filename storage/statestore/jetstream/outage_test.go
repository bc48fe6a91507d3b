package jetstream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/jetstream"
)

// clientPatience is less than the client waits by itself.
const clientPatience = 4 * time.Second

// line is a connection to a server that a test can make silent, and cut.
type line struct {
	net.Listener
	server string
	silent atomic.Bool
	mu     sync.Mutex
	conns  []net.Conn
	all    sync.WaitGroup
}

func newLine(t *testing.T, server string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	l := &line{Listener: listener, server: server}
	l.all.Go(l.serve)
	t.Cleanup(func() {
		_ = l.Close()
		l.cut()
		l.all.Wait()
	})
	return l
}

func (l *line) serve() {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		l.all.Go(func() { l.pass(client, server) })
		l.all.Go(func() { l.pass(server, client) })
	}
}

// pass drops what comes while the line is silent.
func (l *line) pass(from, to net.Conn) {
	_, _ = io.Copy(writer(func(b []byte) (int, error) {
		if l.silent.Load() {
			return len(b), nil
		}
		return to.Write(b)
	}), from)
	_ = to.Close()
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// cut ends the connections; new ones can be made.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *line) connect(t *testing.T) natsjs.JetStream {
	t.Helper()
	conn, err := nats.Connect("nats://"+l.Addr().String(), nats.ReconnectWait(10*time.Millisecond), nats.MaxReconnects(-1))
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

// TestCutConnection: while the line is silent each call fails in its time, and after a
// cut all goes on by itself.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	l := newLine(t, startServer(t, t.TempDir(), -1).Addr().String())
	s := open(t, l.connect(t), jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage, Timeout: 200 * time.Millisecond})
	for _, key := range []string{"a:b", "a:c"} {
		put(t, s, key, 0)
	}
	l.silent.Store(true)
	began := time.Now()
	for call, err := range map[string]error{
		"Ping":      s.Ping(t.Context()),
		"SetFields": s.SetFields(t.Context(), "a:b", fields("n", "2")),
		"Scan":      scanError(t.Context(), s),
	} {
		if api.ErrorCode(err) != api.CodeStoreUnavailable {
			t.Errorf("%s on a silent line: got error %v, want code %s", call, err, api.CodeStoreUnavailable)
		}
	}
	if took := time.Since(began); took > clientPatience {
		t.Errorf("the calls took %s, want less than the client's time of %s", took, clientPatience)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ping with the caller's deadline: got error %v, want %v", err, context.DeadlineExceeded)
	}
	l.silent.Store(false)
	l.cut()
	deadline := time.Now().Add(20 * time.Second)
	for err := s.Ping(t.Context()); err != nil; err = s.Ping(t.Context()) {
		if api.ErrorCode(err) != api.CodeStoreUnavailable || time.Now().After(deadline) {
			t.Fatalf("Ping while the client reconnects: got error %v, want code %s, and success within 20 s", err, api.CodeStoreUnavailable)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if keys := scan(t, s, "a:"); len(keys) != 2 {
		t.Errorf("Scan: got keys %v, want 2", keys)
	}
	if err := s.SetFields(t.Context(), "a:b", fields("n", "3")); err != nil {
		t.Errorf("SetFields: %v", err)
	}
}

// TestLineFallsSilentWithinAScan, of more than the client has taken in already.
func TestLineFallsSilentWithinAScan(t *testing.T) {
	t.Parallel()
	l := newLine(t, startServer(t, t.TempDir(), -1).Addr().String())
	s := open(t, l.connect(t), jetstream.Config{Bucket: "states", Storage: natsjs.MemoryStorage, Timeout: 200 * time.Millisecond})
	const n = 200
	large := make([]byte, 200<<10)
	for i := range n {
		key := "a:" + strconv.Itoa(i)
		if err := s.Put(t.Context(), key, statestore.Record{Fields: statestore.Fields{"large": large}}); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	answers, failed := 0, error(nil)
	var began time.Time
	for _, err := range s.Scan(t.Context(), "a:", nil) {
		if answers == 0 {
			l.silent.Store(true)
			began = time.Now()
		}
		answers++
		failed = err
	}
	if took := time.Since(began); answers > n || api.ErrorCode(failed) != api.CodeStoreUnavailable || took > clientPatience {
		t.Errorf("Scan: got %d answers, the last %v after %s, want at most %d, then code %s within %s", answers, failed, took, n, api.CodeStoreUnavailable, clientPatience)
	}
}
