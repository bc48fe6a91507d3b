package child

import (
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestInstanceWithPollutedPrototypes: what an activation changes of the language persists,
// but the platform reads neither events nor results nor log lines through it.
func TestInstanceWithPollutedPrototypes(t *testing.T) {
	t.Parallel()
	for name, pollute := range map[string]string{
		"setters of the names that the platform sets": `for (const name of ["activationId", "event", "instance", "value", "id", "0"])
			Object.defineProperty(Object.prototype, name, { set() { throw new Error("mine") }, get() { return "mine" }, configurable: true })`,
		"toJSON":             `Object.prototype.toJSON = () => "mine"; Array.prototype.toJSON = () => "mine"`,
		"methods":            `Array.prototype.push = Array.prototype.map = Map.prototype.get = () => { throw new Error("mine") }`,
		"promises":           `Promise.prototype.then = () => { throw new Error("mine") }; Promise.resolve = () => "mine"`,
		"globals":            `globalThis.JSON = globalThis.Promise = globalThis.Object = globalThis.Error = undefined`,
		"iterators":          `Array.prototype[Symbol.iterator] = () => { throw new Error("mine") }`,
		"the species":        `Object.defineProperty(Array, Symbol.species, { get() { throw new Error("mine") } })`,
		"a frozen prototype": `Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Function.prototype)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, `let n = 0; export default async (event, ctx) => {
				if (n++ === 0) { `+pollute+`; return }
				console.log("line", ctx.activationId);
				return { n, list: [event.a, await cs.kv.get("there")], served: ctx.instance.activations };
			}`)
			p.invoke("null")
			o := p.invoke(`{"a":[1,{"b":null}]}`)
			got := string(o.Body)
			if name == "toJSON" {
				// JSON.stringify of the script would call it too.
				if got != `"mine"` {
					t.Errorf("got %s, want the result of toJSON", got)
				}
				return
			}
			if want := `{"n":2,"list":[[1,{"b":null}],`; o.Outcome != wire.OutcomeValue || !strings.HasPrefix(got, want) {
				t.Errorf("got outcome %d and %s, want %s…", o.Outcome, got, want)
			}
			if len(o.Logs) != 1 || !strings.HasPrefix(string(o.Logs[0].Text), "line ") {
				t.Errorf("got log lines %v, want one", o.Logs)
			}
		})
	}
}

// TestInstanceFloodedByItsModules: the top level of a module fills the event loop without
// an end. Each activation ends by its own deadline or serves, and none inherits the work.
func TestInstanceFloodedByItsModules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flood   string
		outcome wire.Outcome
	}{
		"microtasks": {`const f = () => Promise.resolve().then(f); f();`, wire.OutcomeTimeout},
		"loop":       {`for (;;) {}`, wire.OutcomeTimeout},
		"ticks":      {`import process from "node:process"; const f = () => process.nextTick(f); f();`, wire.OutcomeTimeout},
		"timers":     {`const f = () => setTimeout(f, 0); f(); setInterval(() => {}, 0);`, wire.OutcomeValue},
		"host calls": {`const f = () => cs.kv.get("there").then(f); setTimeout(f, 0);`, wire.OutcomeValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, tt.flood+" export default () => 1")
			began := time.Now()
			p.begin("null", 300*time.Millisecond)
			if o := p.finish(); o.Outcome != tt.outcome {
				t.Errorf("got outcome %d and %s, want %d", o.Outcome, o.Body, tt.outcome)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the activation took %v, want about its deadline of 300ms", took)
			}
		})
	}
}

// TestInstanceWorkAfterTheAnswer: what an activation leaves in the queues of the loop when
// it answers runs neither after it nor in the next one.
func TestInstanceWorkAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]string{
		"next ticks":  `process.nextTick(mark); process.nextTick(() => process.nextTick(mark))`,
		"immediates":  `setImmediate(mark)`,
		"a chain":     `(async () => { for (;;) { await cs.kv.get("there"); mark() } })()`,
		"a stream":    `new ReadableStream({ async pull(c) { await cs.kv.get("there"); mark(); c.enqueue("x") } }).getReader().read()`,
		"a generator": `(async () => { for await (const x of (async function* () { for (;;) { await cs.kv.get("there"); yield 1 } })()) mark() })()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, `import process from "node:process"; let answered = false, late = 0;
				const mark = () => { if (answered) late++ };
				export default (first) => {
					if (first) { `+leave+`; return Promise.resolve(1).then(() => { answered = true }) }
					return new Promise((r) => setTimeout(() => r(late), 20));
				}`)
			if o := p.invoke("true"); o.Outcome == wire.OutcomeError {
				t.Fatalf("first activation: got error %s, want none", o.Body)
			}
			if got := p.value("false"); got != "0" {
				t.Errorf("got %s effects after the answer, want none", got)
			}
		})
	}
}

// TestInstanceAfterABrokenStream: a stream that throws, or never ends, while it is read
// leaves the next activation alone.
func TestInstanceAfterABrokenStream(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"throws":     `pull(c) { c.enqueue("x"); throw new Error("mine") }`,
		"errors":     `pull(c) { c.error(new Error("mine")) }`,
		"never ends": `pull() { return new Promise(() => {}) }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inInstance(t, `let n = 0; export default (first) => { n++; if (!first) return n;
				return new Response(new ReadableStream({ `+source+` })).text() }`)
			p.begin("true", 300*time.Millisecond)
			o := p.finish()
			if o.Outcome == wire.OutcomeValue {
				t.Errorf("got the value %s of a broken stream, want an error or a timeout", o.Body)
			}
			if o.Flags&wire.FlagRetire != 0 {
				return // the child would be ended
			}
			if got := p.value("false"); got != "2" && got != "1" {
				t.Errorf("next activation: got %s, want it to run", got)
			}
		})
	}
}
