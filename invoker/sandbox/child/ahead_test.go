package child

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestTopLevelBelongsToItsActivation: what modules do when they are evaluated
// happens in the activation that they are evaluated for, every time.
func TestTopLevelBelongsToItsActivation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source string
		check  func(t *testing.T, o outcome)
	}{
		"log": {"console.log('top'); export default () => 1", func(t *testing.T, o outcome) {
			if len(o.Logs) != 1 || string(o.Logs[0].Text) != "top" {
				t.Errorf("got logs %v, want only top", o.Logs)
			}
		}},
		"clock": {"const at = Date.now(); export default () => Date.now() - at", func(t *testing.T, o outcome) {
			if string(o.Body) != "0" && len(o.Body) > 1 {
				t.Errorf("got %s ms from the clock of the top level, want at most 9", o.Body)
			}
		}},
		"host call": {"const p = cs.kv.get('there'); export default async () => (await p).n", func(t *testing.T, o outcome) {
			if string(o.Body) != "[1]" {
				t.Errorf("got outcome %d with %s, want [1]", o.Outcome, o.Body)
			}
		}},
		"timer": {"const p = new Promise((r) => setTimeout(() => r(5), 1)); export default () => p", func(t *testing.T, o outcome) {
			if string(o.Body) != "5" {
				t.Errorf("got outcome %d with %s, want 5", o.Outcome, o.Body)
			}
		}},
		"rejection": {"Promise.reject(new Error('early')); export default () => new Promise((r) => setTimeout(r, 1000))", func(t *testing.T, o outcome) {
			if e := o.failure(t); e.Message != "Unhandled promise rejection: early" {
				t.Errorf("got message %q, want that of the unhandled rejection early", e.Message)
			}
		}},
		"caught effect": {"let n = 0; try { performance.now(); n = 1 } catch {} export default () => n", func(t *testing.T, o outcome) {
			if string(o.Body) != "1" {
				t.Errorf("got outcome %d with %s, want 1", o.Outcome, o.Body)
			}
		}},
		"randomness": {"const id = crypto.randomUUID(); export default () => id.length", func(t *testing.T, o outcome) {
			if string(o.Body) != "36" {
				t.Errorf("got outcome %d with %s, want 36", o.Outcome, o.Body)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.host = answer
			p.source(tt.source)
			for range 3 {
				idle(p)
				tt.check(t, p.invoke("null"))
			}
		})
	}
}

// idle lets the child build its next realm: it answers nothing, but reads on
// only when it has.
func idle(p *parent) {
	p.t.Helper()
	for range 3 {
		p.write(wire.AppendHostReply(nil, wire.HostReply{ID: 1 << 30, OK: true}))
	}
}

// TestSlowModules: modules that take long to evaluate do not keep the next
// activation waiting for a realm that is given up.
func TestSlowModules(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source("for (;;); export default () => 1")
	for range 2 {
		began := time.Now()
		p.begin("null", 50*time.Millisecond)
		if o := p.finish(); o.Outcome != wire.OutcomeTimeout {
			t.Errorf("got outcome %d with %s, want %d", o.Outcome, o.Body, wire.OutcomeTimeout)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("got an end after %v, want it within 5 s", took)
		}
	}
}

// TestLateReply: the answer to a call that its activation left behind settles
// nothing in the next one.
func TestLateReply(t *testing.T) {
	t.Parallel()
	p := inProcess(t)
	var left uint32
	p.host = func(c wire.HostCall) *wire.HostReply {
		if left == 0 {
			left = c.ID
			return nil
		}
		if c.ID == left {
			t.Errorf("got call id %d again, want a new one", c.ID)
		}
		p.write(wire.AppendHostReply(nil, wire.HostReply{ID: left, OK: true, Head: []byte(`{"found":true}`), Blob: []byte(`"late"`)}))
		return &wire.HostReply{OK: true, Head: []byte(`{"found":true}`), Blob: []byte(`"mine"`)}
	}
	p.source("export default (wait) => { const p = cs.kv.get('k'); return wait ? p : 0 }")
	if got := p.value("false"); got != "0" {
		t.Fatalf(`p.value = %v, want "0"`, got)
	}
	if got := p.value("true"); got != `"mine"` {
		t.Errorf(`got %s, want "mine"`, got)
	}
}

// TestCallsRunConcurrently: all calls reach the host before any is answered.
func TestCallsRunConcurrently(t *testing.T) {
	t.Parallel()
	p := inProcess(t)
	var waiting []uint32
	p.host = func(c wire.HostCall) *wire.HostReply {
		waiting = append(waiting, c.ID)
		if len(waiting) == 10 {
			for i := len(waiting) - 1; i >= 0; i-- { // answers need not keep the order
				p.write(wire.AppendHostReply(nil, wire.HostReply{ID: waiting[i], OK: true, Head: []byte(`{"deleted":true}`)}))
			}
		}
		return nil
	}
	p.source("export default () => Promise.all(Array.from({ length: 10 }, (_, i) => cs.kv.del('k' + i)))")
	if got := p.value("null"); strings.Count(got, "true") != 10 {
		t.Errorf("got %s, want true ten times", got)
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	p := inProcess(t)
	calls := 0
	p.host = func(wire.HostCall) *wire.HostReply { calls++; return nil }
	p.source("export default async () => { for (let i = 0; i < 1000; i++) cs.kv.get('k'); try { await cs.kv.get('k') } catch (e) { return e.code } }")
	if got := p.value("null"); got != `"CS_RUNTIME_INVALID_ARGUMENT"` || calls != wire.MaxCallsInFlight {
		t.Errorf(`got %s after %d calls, want "CS_RUNTIME_INVALID_ARGUMENT" after %d`, got, calls, wire.MaxCallsInFlight)
	}
}

// TestContext shows every member of the handler's second argument.
func TestContext(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`export default (most, ctx) => {
		const left = ctx.remainingMs(), due = ctx.deadline_ms - Date.now();
		ctx.mine = 1; delete ctx.attempt;
		const { id, ...instance } = ctx.instance; ctx.instance = { ...instance, id: id.length, ageMs: 0 };
		return [left > 0 && left <= most && Math.abs(left - due) < 1000, { ...ctx, deadline_ms: 0 }] }`)
	got := p.value(strconv.FormatInt(runTimeout.Milliseconds(), 10))
	want := `[true,{"activation_id":"0b1c","deadline_ms":0,"tenant":"t_abcdef","namespace":"shop","function":"hello","version":7,` +
		`"ref":{"alias":"prod","version":7},"trigger":{"type":"api"},"principal":{"sub":"me","roles":["admin"]},"request_id":"req_1","instance":{"ageMs":0,"activations":0,"id":36},"mine":1}]`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestCheckOnly compiles and ends.
func TestCheckOnly(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), theirs, Options{Layers: []string{"a"}}) }()
	p := newParent(t, ours)
	p.checkOnly = true
	kind, payload := p.offer(map[string]string{"function.js": "export default () => 1"})
	var ready wire.Ready
	script, err := wire.ParseMessage(payload, &ready)
	if kind != wire.KindReady || err != nil || !strings.Contains(string(script), bindName) {
		t.Errorf("got answer %d with %s and error %v, want the compiled script", kind, payload, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestCompiledScript hands one child's script to another.
func TestCompiledScript(t *testing.T) {
	t.Parallel()
	kind, payload := inProcess(t).offer(map[string]string{"function.ts": "export default (n: number) => {\n  throw new Error('at ' + n) }"})
	var ready wire.Ready
	script, err := wire.ParseMessage(payload, &ready)
	if kind != wire.KindReady || err != nil || ready.LiveBytes == 0 {
		t.Fatalf("got answer %d with %s and error %v, want %d with the live bytes", kind, payload, err, wire.KindReady)
	}
	second := inProcess(t)
	second.write(wire.AppendMessage(nil, wire.KindAssign, wire.Assign{Handler: "default", MemoryMB: 64, Compiled: true}, script))
	if kind, payload := second.next(); kind != wire.KindReady || len(payload) > 100 {
		t.Fatalf("got answer %d with %s, want %d without the script", kind, payload, wire.KindReady)
	}
	if e := second.invoke("5").failure(t); e.Message != "at 5" || !strings.Contains(e.Stack, "function.ts:2:") {
		t.Errorf(`got error %+v, want "at 5" in line 2 of function.ts`, e)
	}
}

// TestProtocolErrors: a peer that breaks the protocol ends Serve with an error.
func TestProtocolErrors(t *testing.T) {
	t.Parallel()
	invoke, err := wire.AppendInvoke(nil, &wire.InvokeHead{}, []byte("1"))
	if err != nil {
		t.Fatalf("wire.AppendInvoke: %v", err)
	}
	assign, err := json.Marshal("x")
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	for name, bytes := range map[string][]byte{
		"Invoke before Assign": invoke,
		"no frame":             append([]byte{0xff, 0xff, 0xff, 0xff, 2}, assign...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- Serve(t.Context(), theirs, Options{}) }()
			p := newParent(t, ours)
			p.write(bytes, nil)
			if err := <-ended; err == nil {
				t.Error("no error")
			}
		})
	}
}
