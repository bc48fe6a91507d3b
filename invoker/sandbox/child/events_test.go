package child

import (
	"strings"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestGlobalErrorEvents: the events error, unhandledrejection and rejectionhandled of the
// global object, and what the platform does with what no listener prevents.
func TestGlobalErrorEvents(t *testing.T) {
	t.Parallel()
	const wait = `const wait = () => new Promise((r) => setTimeout(r, 1)); `
	for name, tt := range map[string]struct {
		source  string
		outcome wire.Outcome
		want    string // in the body
		logged  string
	}{
		"a rejection": {
			source:  `await new Promise((r) => { Promise.reject(new Error("lost")); setTimeout(r, 1) })`,
			outcome: wire.OutcomeError, want: "Unhandled promise rejection: lost",
		},
		"a rejection with a listener": {
			source:  `self.addEventListener("unhandledrejection", () => {}); Promise.reject(new Error("lost")); await wait()`,
			outcome: wire.OutcomeError, want: "Unhandled promise rejection: lost",
		},
		"a rejection that is prevented": {
			source: `const seen = [], p = Promise.reject(5); addEventListener("unhandledrejection", (e) => { seen.push(e.type, e.reason, e.promise === p, e instanceof PromiseRejectionEvent, e.isTrusted); e.preventDefault() });
				await wait(); return seen`,
			want: `["unhandledrejection",5,true,true,true]`,
		},
		"onunhandledrejection": {
			source: `let seen; onunhandledrejection = (e) => { seen = e.reason; return false }; Promise.reject("x"); await wait(); return seen`,
			want:   `"x"`,
		},
		"handled by the listener": {
			source: `addEventListener("unhandledrejection", (e) => { e.promise.catch(() => {}) }); Promise.reject(1); await wait(); return "alive"`,
			want:   `"alive"`,
		},
		"handled late": {
			source: `const seen = []; onrejectionhandled = (e) => seen.push(e.type, e.reason, e.promise === p); addEventListener("unhandledrejection", (e) => e.preventDefault());
				const p = Promise.reject(7); await wait(); p.catch(() => {}); await wait(); return seen`,
			want: `["rejectionhandled",7,true]`,
		},
		"a listener that throws": {
			source:  `addEventListener("unhandledrejection", () => { throw new Error("in it") }); Promise.reject(new Error("lost")); await wait()`,
			outcome: wire.OutcomeError, want: "lost", logged: "Uncaught Error: in it",
		},
		"an exception of a timer": {
			source:  `setTimeout(() => { throw new Error("late") }, 0); await wait(); await wait()`,
			outcome: wire.OutcomeError, want: "late",
		},
		"an exception of a timer that is prevented": {
			source: `const seen = []; onerror = (message, file, line, column, error) => { seen.push(message, file, line > 0, column > 0, error.name); return true };
				setTimeout(() => { throw new RangeError("late") }, 0); await wait(); await wait(); return seen`,
			want: `["Uncaught RangeError: late","function.js",true,true,"RangeError"]`,
		},
		"an exception of a microtask that is prevented": {
			source: `let seen; addEventListener("error", (e) => { seen = e.error; e.preventDefault() }); queueMicrotask(() => { throw 5 }); await wait(); return seen`,
			want:   `5`,
		},
		"reportError": {source: `reportError(new Error("told")); return "on"`, want: `"on"`, logged: "Uncaught Error: told"},
		"reportError that is prevented": {
			source: `let seen = 0; addEventListener("error", (e) => { seen++; e.preventDefault(); }); reportError(1); reportError({}); return seen`,
			want:   `2`,
		},
		"an error listener that throws": {
			source: `addEventListener("error", () => { throw new Error("second") }); reportError(new Error("first")); return "on"`,
			want:   `"on"`, logged: "Uncaught Error: second",
		},
		"a getter for the handler":       {source: `Object.defineProperty(self, "onerror", { get() { throw 1 } }); reportError(1); return "on"`, want: `"on"`, logged: "Uncaught"},
		"a handler that reports":         {source: `onerror = () => { reportError("again") }; reportError("once"); return "on"`, want: `"on"`, logged: "again"},
		"an error of reportError itself": {source: `try { reportError() } catch (e) { return e.name }`, want: `"TypeError"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(wait + "export default async () => { " + tt.source + " }")
			o := p.invoke("null")
			logs := ""
			for _, l := range o.Logs {
				logs += string(l.Text) + "\n"
			}
			if o.Outcome != tt.outcome && (tt.outcome != 0 || o.Outcome != wire.OutcomeValue) || !strings.Contains(string(o.Body), tt.want) {
				t.Errorf("got outcome %d, body %s, want outcome %d, body with %s", o.Outcome, o.Body, tt.outcome, tt.want)
			}
			if !strings.Contains(logs, tt.logged) || tt.logged == "" && logs != "" {
				t.Errorf("got the log %q, want one with %q", logs, tt.logged)
			}
		})
	}
}

// TestMessagesEndWithTheirActivation: a message that an ended activation sent is not
// delivered in the next one, and does not keep the activation alive.
func TestMessagesEndWithTheirActivation(t *testing.T) {
	t.Parallel()
	p := inInstance(t, `const { port1, port2 } = new MessageChannel(), heard = [];
		export default async (n) => {
			if (n === 1) { port1.postMessage("one"); port1.postMessage("two"); return "sent" }
			port2.onmessage = (e) => heard.push(e.data);
			port1.postMessage("of " + n);
			await new Promise((r) => setTimeout(r, 1));
			port1.postMessage("late");
			return heard.splice(0);
		}`)
	for n, want := range []string{`"sent"`, `["of 2"]`, `["of 3"]`} {
		if o := p.invoke([]string{"1", "2", "3"}[n]); string(o.Body) != want {
			t.Errorf("activation %d: got %s, want %s", n+1, o.Body, want)
		}
	}
	p = inInstance(t, `export default async () => { const c = new MessageChannel(); c.port1.onmessage = () => {}; await new Promise((r) => { c.port2.onmessage = r }) }`)
	if o := p.invoke("null"); !strings.Contains(string(o.Body), "Unsettled") {
		t.Errorf("a port that never hears: got %s, want the type Unsettled", o.Body)
	}
}
