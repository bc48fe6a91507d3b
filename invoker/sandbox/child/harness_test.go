package child

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestMain lets the test binary be a sandbox child, for the tests of limits that
// only a process of its own can show.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		Main()
	}
	os.Exit(m.Run())
}

// host answers the calls of a script; a nil answer leaves a call unanswered.
type host func(c wire.HostCall) *wire.HostReply

// parent is the other side of a child under test.
type parent struct {
	t         testing.TB
	conn      net.Conn
	frames    *wire.Reader
	mu        sync.Mutex // of writes
	host      host
	env       map[string]string
	handler   string
	memory    int
	checkOnly bool
	instance  *wire.Instance
	answers   []string // bodies of Answer frames
	abandoned func(id uint32)
	verdicts  []wire.Verdict
}

// outcome is a Done with the logs that came before it.
type outcome struct {
	wire.Done
	Logs []wire.LogRecord
}

func (o outcome) failure(t testing.TB) api.ActivationError {
	t.Helper()
	if o.Outcome != wire.OutcomeError {
		t.Fatalf("outcome %d (%s), want an error", o.Outcome, o.Body)
	}
	var e api.ActivationError
	if err := json.Unmarshal(o.Body, &e); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	return e
}

// socketPair returns two connected sockets.
func socketPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("syscall.Socketpair: %v", err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		ends[i], err = inherited(uintptr(fd))
		if err != nil {
			t.Fatalf("inherited: %v", err)
		}
	}
	return ends[0], ends[1]
}

// inProcess starts a child in this process.
func inProcess(t testing.TB) *parent {
	t.Helper()
	ours, theirs := socketPair(t)
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.Background(), theirs, Options{}) }()
	p := newParent(t, ours)
	t.Cleanup(func() {
		_ = ours.Close()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return p
}

func newParent(t testing.TB, conn net.Conn) *parent {
	t.Helper()
	p := &parent{t: t, conn: conn, frames: wire.NewReader(conn), memory: 64}
	if kind, _ := p.next(); kind != wire.KindHello {
		t.Fatalf("first frame is %d, want Hello", kind)
	}
	return p
}

func (p *parent) next() (wire.Kind, []byte) {
	p.t.Helper()
	kind, payload, err := p.frames.Next()
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	return kind, payload
}

func (p *parent) write(frame []byte, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("error: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.conn.Write(frame); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

// offer assigns files and returns the child's answer.
func (p *parent) offer(files map[string]string) (wire.Kind, []byte) {
	p.t.Helper()
	raw := make(map[string][]byte, len(files))
	for name, text := range files {
		raw[name] = []byte(text)
	}
	tar, err := bundle.Pack(raw)
	if err != nil {
		p.t.Fatalf("bundle.Pack: %v", err)
	}
	handler := p.handler
	if handler == "" {
		handler = "default"
	}
	p.write(wire.AppendMessage(nil, wire.KindAssign, wire.Assign{
		Handler: handler, MemoryMB: p.memory, Env: p.env, CheckOnly: p.checkOnly, Instance: p.instance,
		Tenant: "t_abcdef", Namespace: "shop", Function: "hello", Version: 7,
	}, tar))
	return p.next()
}

// load assigns files that must be accepted.
func (p *parent) load(files map[string]string) *parent {
	p.t.Helper()
	if kind, payload := p.offer(files); kind != wire.KindReady {
		p.t.Fatalf("got answer %d with %s, want %d", kind, payload, wire.KindReady)
	}
	return p
}

// source assigns one module.
func (p *parent) source(text string) *parent {
	p.t.Helper()
	return p.load(map[string]string{"function.js": text})
}

func (p *parent) begin(event string, timeout time.Duration) {
	p.t.Helper()
	head := wire.InvokeHead{
		ActivationID: "0b1c", DeadlineMS: time.Now().Add(timeout).UnixMilli(),
		Ref: json.RawMessage(`{"alias":"prod","version":7}`), Trigger: json.RawMessage(`{"type":"api"}`),
		Principal: json.RawMessage(`{"sub":"me","roles":["admin"]}`), Attempt: 1, RequestID: "req_1",
		LastHeartbeat: json.RawMessage(`{"page":3}`),
		Job:           json.RawMessage(`{"id":"j1","queue":"fn.f","attempt":2,"max_attempts":4}`), Checkpoint: json.RawMessage(`{"page":2}`),
	}
	p.write(wire.AppendInvoke(nil, &head, []byte(event)))
}

// finish answers calls until the activation is done.
func (p *parent) finish() outcome {
	p.t.Helper()
	var o outcome
	for {
		kind, payload := p.next()
		switch kind {
		case wire.KindLog:
			if err := wire.ParseLog(payload, func(r wire.LogRecord) { o.Logs = append(o.Logs, r) }); err != nil {
				p.t.Fatalf("wire.ParseLog: %v", err)
			}
		case wire.KindHostCall:
			call, err := wire.ParseHostCall(payload)
			if err != nil {
				p.t.Fatalf("wire.ParseHostCall: %v", err)
			}
			if p.host == nil {
				p.t.Fatalf("got host call %s, want none", call.Name)
			}
			if reply := p.host(call); reply != nil {
				reply.ID = call.ID
				p.write(wire.AppendHostReply(nil, *reply))
			}
		case wire.KindVerdict:
			var v wire.Verdict
			if _, err := wire.ParseMessage(payload, &v); err != nil {
				p.t.Fatalf("wire.ParseMessage: %v", err)
			}
			p.verdicts = append(p.verdicts, v)
		case wire.KindAbandon:
			id, err := wire.ParseAbandon(payload)
			if err != nil {
				p.t.Fatalf("wire.ParseAbandon: %v", err)
			}
			if p.abandoned != nil {
				p.abandoned(id)
			}
		case wire.KindAnswer:
			d, err := wire.ParseDone(payload)
			if err != nil {
				p.t.Fatalf("wire.ParseDone: %v", err)
			}
			p.answers = append(p.answers, string(d.Body))
		case wire.KindDone:
			d, err := wire.ParseDone(payload)
			if err != nil {
				p.t.Fatalf("wire.ParseDone: %v", err)
			}
			o.Done = d
			return o
		default:
			p.t.Fatalf("got frame %d, want one that a child sends during a run", kind)
		}
	}
}

// runTimeout is time enough for the scripts of these tests, also with the race detector on a machine
// that does other work. It only ends a script that hangs.
const runTimeout = 2 * time.Minute

// invoke runs one activation with time enough.
func (p *parent) invoke(event string) outcome {
	p.t.Helper()
	p.begin(event, runTimeout)
	return p.finish()
}

// value runs one activation that must return a value.
func (p *parent) value(event string) string {
	p.t.Helper()
	o := p.invoke(event)
	if o.Outcome != wire.OutcomeValue {
		p.t.Fatalf("got outcome %d with %s, want a value", o.Outcome, o.Body)
	}
	return string(o.Body)
}
