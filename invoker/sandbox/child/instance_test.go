package child

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// longLived bounds an instance so far that no test reaches a bound.
func longLived() *wire.Instance {
	return &wire.Instance{Activations: 1000, AgeMS: time.Hour.Milliseconds()}
}

// inInstance starts a child in this process whose program is served by instances.
func inInstance(t *testing.T, source string) *parent {
	t.Helper()
	p := inProcess(t)
	p.instance = longLived()
	p.host = answer
	return p.source(source)
}

// TestInstanceKeepsModuleState: module state persists from one activation to the next, and
// without an instance it does not.
func TestInstanceKeepsModuleState(t *testing.T) {
	t.Parallel()
	const source = "let n = 0; globalThis.seen ??= 0; export default () => [++n, ++globalThis.seen]"
	for _, tt := range []struct {
		name     string
		instance *wire.Instance
		want     []string
	}{
		{"instance", longLived(), []string{"[1,1]", "[2,2]", "[3,3]"}},
		{"activation", nil, []string{"[1,1]", "[1,1]", "[1,1]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.instance = tt.instance
			p.source(source)
			for i, want := range tt.want {
				if got := p.value("null"); got != want {
					t.Errorf("activation %d: got %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

// TestInstanceSharesNothingElse runs an activation that leaves something behind, and a
// second one that must not meet it.
func TestInstanceSharesNothingElse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source string
		want   string // of the second activation; n counts what ran on
	}{
		"timer": {
			`let n = 0; export default (first) => first ? void setTimeout(() => n++, 1)
				: new Promise((r) => setTimeout(() => r(n), 20))`, "0",
		},
		"interval": {
			`let n = 0; export default (first) => first ? void setInterval(() => n++, 1)
				: new Promise((r) => setTimeout(() => r(n), 20))`, "0",
		},
		"clearing a timer of the same number": {
			`let id; export default (first) => { if (first) { id = setTimeout(() => {}, 1e6); return }
				return new Promise((r) => { setTimeout(() => r("fired"), 5); clearTimeout(id) }) }`, `"fired"`,
		},
		"host call": {
			`let n = 0; export default (first) => first ? void cs.kv.get("there").then(() => n++)
				: cs.kv.get("there").then(() => n)`, "0",
		},
		"abort signal": {
			`let s; export default (first) => { if (first) { s = AbortSignal.timeout(1); return }
				return new Promise((r) => setTimeout(() => r(s.aborted), 20)) }`, "false",
		},
		"context": {
			`let kept; export default (first, ctx) => { kept ??= ctx; return first ? 1 : [kept === ctx, kept.instance.activations, ctx.instance.activations] }`,
			"[false,0,1]",
		},
		"marks": {
			`export default (first) => { performance.mark("a"); return performance.getEntries().length }`, "1",
		},
		"time origin": {
			`let at; export default (first) => { if (first) { at = performance.timeOrigin; return }
				return performance.timeOrigin > at }`, "true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, tt.source)
			if o := p.invoke("true"); o.Outcome == wire.OutcomeError {
				t.Fatalf("first activation: got error %s, want none", o.Body)
			}
			if got := p.value("false"); got != tt.want {
				t.Errorf("second activation: got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestInstanceContinuationsHaveNoEffect: a later activation settles a promise for which an
// ended one still waits. What follows in the ended one writes no log line, makes no host
// call and starts no timer, and the instance is given up.
func TestInstanceContinuationsHaveNoEffect(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]string{
		"log":       `console.log("mine")`,
		"host call": `cs.kv.set("k", 1)`,
		"timer":     `setTimeout(() => console.log("mine"), 1)`,
		"rejection": `Promise.reject(new Error("mine"))`,
		"job":       `cs.job.progress(50)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, `let n = 0, go; const gate = new Promise((r) => { go = r });
				async function late() { await gate; `+effect+`; n++ }
				export default (step) => {
					if (step === 1) { late(); return ++n }
					if (step === 2) { go(); return new Promise((r) => setTimeout(() => r(++n), 10)) }
					return ++n
				}`)
			called := false
			p.host = func(c wire.HostCall) *wire.HostReply { called = true; return answer(c) }
			for step, want := range []string{"1", "3", "1"} {
				o := p.invoke(fmt.Sprint(step + 1))
				if string(o.Body) != want || len(o.Logs) > 0 || called {
					t.Errorf("activation %d: got %s, logs %v and a host call: %v; want %s, none and none", step+1, o.Body, o.Logs, called, want)
				}
			}
		})
	}
}

// TestInstanceIsGivenUp: an instance ends where its state cannot be relied upon.
func TestInstanceIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first string // what the first activation does
		kept  bool
	}{
		"success":                      {"", true},
		"exception":                    {"throw new Error('mine')", true},
		"rejection":                    {"return Promise.reject(new Error('mine'))", true},
		"rejection without a handler":  {"Promise.reject(new Error('mine')); return new Promise((r) => setTimeout(r, 1))", false},
		"rejection left at the end":    {"Promise.reject(new Error('mine'))", false},
		"handled rejection":            {"Promise.reject(new Error('mine')).catch(() => 1)", true},
		"stack overflow":               {"const f = (g) => g(g) + 1; return f(f)", false},
		"a promise that never settles": {"return new Promise(() => {})", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, "let n = 0; export default (first) => { n++; if (first) { "+tt.first+" } else return n }")
			p.invoke("true")
			want := "1"
			if tt.kept {
				want = "2"
			}
			if got := p.value("false"); got != want {
				t.Errorf("second activation: got n = %s, want %s", got, want)
			}
		})
	}
}

func TestInstanceEndsAtItsBounds(t *testing.T) {
	t.Parallel()
	const source = "let n = 0; export default () => ++n"
	t.Run("activations", func(t *testing.T) {
		t.Parallel()
		p := inProcess(t)
		p.instance = &wire.Instance{Activations: 2, AgeMS: time.Hour.Milliseconds()}
		p.source(source)
		for i, want := range []string{"1", "2", "1", "2", "1"} {
			if got := p.value("null"); got != want {
				t.Errorf("activation %d: got %s, want %s", i+1, got, want)
			}
		}
	})
	t.Run("age", func(t *testing.T) {
		t.Parallel()
		p := inProcess(t)
		p.instance = &wire.Instance{Activations: 1000, AgeMS: 1}
		p.source("let n = 0; export default () => new Promise((r) => setTimeout(() => r(++n), 2))")
		for range 3 {
			if got := p.value("null"); got != "1" {
				t.Errorf("got %s, want 1: the instance is older than a millisecond", got)
			}
		}
	})
}

// TestInstanceIdentity: ctx.instance names the global scope, not the activation.
func TestInstanceIdentity(t *testing.T) {
	t.Parallel()
	p := inProcess(t)
	p.instance = &wire.Instance{Activations: 2, AgeMS: time.Hour.Milliseconds()}
	p.source("export default (_, ctx) => ctx.instance")
	var got [3]struct {
		ID          string `json:"id"`
		AgeMS       int64  `json:"ageMs"`
		Activations int    `json:"activations"`
	}
	for i := range got {
		if err := json.Unmarshal([]byte(p.value("null")), &got[i]); err != nil {
			t.Fatalf("json.Unmarshal: %v", err)
		}
	}
	if got[0].ID != got[1].ID || got[1].ID == got[2].ID || len(got[0].ID) != 36 {
		t.Errorf("ids: got %q, %q, %q; want two of one instance and one of another", got[0].ID, got[1].ID, got[2].ID)
	}
	for i, want := range []int{0, 1, 0} {
		if got[i].Activations != want || got[i].AgeMS < 0 || got[i].AgeMS > time.Minute.Milliseconds() {
			t.Errorf("activation %d: got %d activations before and an age of %d ms, want %d and less than a minute", i+1, got[i].Activations, got[i].AgeMS, want)
		}
	}
}

// TestInstanceAwaitsModules: the calls that modules make when they are evaluated are
// answered also where the first handler does not wait for them.
func TestInstanceAwaitsModules(t *testing.T) {
	t.Parallel()
	p := inInstance(t, "const conf = cs.kv.get('there'); export default async (first) => first ? 1 : (await conf).n")
	for i, want := range []string{"1", "[1]", "[1]"} {
		if got := p.value(fmt.Sprint(i == 0)); got != want {
			t.Errorf("activation %d: got %s, want %s", i+1, got, want)
		}
	}
}

// TestInstanceAfterTimeout: a child whose activation timed out retires, so that no other
// activation meets the interrupted instance.
func TestInstanceAfterTimeout(t *testing.T) {
	t.Parallel()
	p := inInstance(t, "export default () => { for (;;); }")
	p.begin("null", 50*time.Millisecond)
	if o := p.finish(); o.Outcome != wire.OutcomeTimeout || o.Flags&wire.FlagRetire == 0 {
		t.Errorf("got outcome %d, flags %b; want a timeout that retires the child", o.Outcome, o.Flags)
	}
}

// TestInstanceDeadlineOfTheOneBefore: a deadline that passes after its activation ended
// interrupts no later one.
func TestInstanceDeadlineOfTheOneBefore(t *testing.T) {
	t.Parallel()
	p := inInstance(t, "export default (ms) => new Promise((r) => setTimeout(() => r(ms), ms))")
	for range 50 {
		p.begin("2", 4*time.Millisecond)
		if o := p.finish(); o.Outcome == wire.OutcomeTimeout {
			return // the machine was too slow; the child would be ended
		}
		if got := p.value("5"); got != "5" {
			t.Fatalf("got %s, want 5", got)
		}
	}
}

// TestInstanceJobIsOfTheActivation: members of cs.job are read from the activation that
// runs.
func TestInstanceJobIsOfTheActivation(t *testing.T) {
	t.Parallel()
	p := inInstance(t, "const job = cs.job; export default () => [job.id, cs.job.attempt]")
	for i := range 2 {
		head := wire.InvokeHead{
			ActivationID: "0b1c", DeadlineMS: time.Now().Add(10 * time.Second).UnixMilli(), Attempt: 1,
			Ref: json.RawMessage(`{}`), Trigger: json.RawMessage(`{}`), Principal: json.RawMessage(`{}`),
			Job: json.RawMessage(fmt.Sprintf(`{"id":"j%d","queue":"fn.f","attempt":%d,"max_attempts":4}`, i, i+1)),
		}
		p.write(wire.AppendInvoke(nil, &head, []byte("null")))
		if got, want := string(p.finish().Body), fmt.Sprintf(`["j%d",%d]`, i, i+1); got != want {
			t.Errorf("activation %d: got %s, want %s", i+1, got, want)
		}
	}
}

// TestInstanceMemory: memory that module state holds counts in every activation, and an
// instance that holds half of the limit ends.
func TestInstanceMemory(t *testing.T) {
	t.Parallel()
	child := spawn(t)
	child.instance, child.memory = longLived(), 32
	child.source(`const kept = []; export default (mb) => { for (let i = 0; i < mb; i++) kept.push(new Uint8Array(1 << 20)); return kept.length }`)
	var lengths []string
	for range 40 {
		o := child.invoke("2")
		if o.Outcome != wire.OutcomeValue {
			t.Fatalf("got outcome %d (%s) after %s, want values", o.Outcome, o.Body, strings.Join(lengths, " "))
		}
		lengths = append(lengths, string(o.Body))
	}
	if !strings.Contains(strings.Join(lengths[1:], " ")+" ", " 2 ") {
		t.Errorf("lengths of the kept list: got %s, want them to begin again at 2", strings.Join(lengths, " "))
	}
}

// TestInstanceWithHeavyModules: an instance whose modules hold more than half of the limit
// serves many activations; only what they add to that counts.
func TestInstanceWithHeavyModules(t *testing.T) {
	t.Parallel()
	child := spawn(t)
	child.instance, child.memory = longLived(), 64
	child.source(`const big = Array.from({ length: 40 }, () => new Uint8Array(1 << 20)); let n = 0;
		export default () => { const garbage = []; for (let i = 0; i < 8; i++) garbage.push(new Uint8Array(1 << 20)); return ++n + big.length + garbage.length }`)
	for want := 49; want < 59; want++ {
		if got := child.value("null"); got != fmt.Sprint(want) {
			t.Fatalf("got %s, want %d: the instance was given up", got, want)
		}
	}
}

// TestInstanceWithHeavyActivations: memory that only the activations of an instance hold does
// not count against it.
func TestInstanceWithHeavyActivations(t *testing.T) {
	t.Parallel()
	child := spawn(t)
	child.instance, child.memory = longLived(), 64
	child.source(`let n = 0;
		export default () => {
			const big = Array.from({ length: 40 }, () => new Uint8Array(1 << 20)); let sum = 0;
			for (let i = 0; i < 100; i++) sum += new Uint8Array(1 << 20).length; // is collected while big is there
			return sum && big.length && ++n }`)
	for want := 1; want < 6; want++ {
		if got := child.value("null"); got != fmt.Sprint(want) {
			t.Fatalf("got %s, want %d: the instance was given up", got, want)
		}
	}
}
