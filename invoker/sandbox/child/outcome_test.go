package child

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source string
		want   api.ActivationError // Stack: a part of it
	}{
		"error": {
			source: "export default function handle(e) {\n  throw new Error('boom')\n}",
			want:   api.ActivationError{Type: "Exception", Message: "boom", Stack: "    at handle (function.js:2:9)"},
		},
		"TypeError of the engine": {
			source: "function inner(e) { return e.a.b }\nexport default async (e) => inner({})",
			want:   api.ActivationError{Type: "Exception", Message: "TypeError: Cannot read property 'b' of undefined", Stack: "at inner (function.js:1:"},
		},
		"rejection": {
			source: "export default async () => {\n  await null;\n  throw Object.assign(new RangeError('far'), { code: 'E_FAR' })\n}",
			want:   api.ActivationError{Type: "Exception", Message: "RangeError: far", Code: "E_FAR", Stack: "function.js:3:"},
		},
		"null":       {source: "export default () => { throw null }", want: api.ActivationError{Type: "Exception", Message: "the function threw null"}},
		"undefined":  {source: "export default async () => { throw undefined }", want: api.ActivationError{Type: "Exception", Message: "the function threw undefined"}},
		"string":     {source: "export default () => { throw 'why' }", want: api.ActivationError{Type: "Exception", Message: "why"}},
		"symbol":     {source: "export default () => { throw Symbol('s') }", want: api.ActivationError{Type: "Exception", Message: "the function threw Symbol(s)"}},
		"object":     {source: "export default () => { throw { a: 1 } }", want: api.ActivationError{Type: "Exception", Message: `the function threw {"a":1}`}},
		"error-like": {source: "export default () => { throw { message: 'm', code: 'C' } }", want: api.ActivationError{Type: "Exception", Message: "m", Code: "C"}},
		"numeric code": {
			source: "export default () => { throw { message: 'm', code: 7 } }",
			want:   api.ActivationError{Type: "Exception", Message: "m"},
		},
		"unreadable": {
			source: "export default () => { throw { get message() { throw 1 } } }",
			want:   api.ActivationError{Type: "Exception", Message: "the thrown value cannot be shown: reading it throws"},
		},
		"overflow": {
			source: "const f = (g, n) => g(g, n + 1) + 1;\nexport default () => { try { return f(f, 0) } catch { return 'caught' } }",
			want:   api.ActivationError{Type: "Exception", Message: "RangeError: Maximum call stack size exceeded", Stack: "at f (function.js:1:"},
		},
		"overflow in a reaction": {
			source: "const f = (n) => f(n + 1) + 1;\nexport default async () => { await null; return f(0) }",
			want:   api.ActivationError{Type: "Exception", Message: "RangeError: Maximum call stack size exceeded", Stack: "at f (function.js:1:"},
		},
		"top level": {
			source: "throw new Error('early');\nexport default () => 1",
			want:   api.ActivationError{Type: "Exception", Message: "early", Stack: "function.js:1:"},
		},
		"no function": {
			source: "export default globalThis.nothing",
			want:   api.ActivationError{Type: "Exception", Message: `the handler "default" is neither a function nor an object with a method fetch, scheduled or queue`},
		},
		"unsettled": {
			source: "export default () => new Promise(() => {})",
			want:   api.ActivationError{Type: "Unsettled", Message: "the handler's promise can never settle: no timer and no host call is left"},
		},
		"unsettled after a timer": {
			source: "export default () => new Promise(() => { setTimeout(() => {}, 1) })",
			want:   api.ActivationError{Type: "Unsettled", Message: "the handler's promise can never settle: no timer and no host call is left"},
		},
		"unhandled rejection": {
			source: "export default async () => { Promise.reject(new Error('lost')); await new Promise((r) => setTimeout(r, 1000)) }",
			want:   api.ActivationError{Type: "Exception", Message: "Unhandled promise rejection: lost"},
		},
		"throw in a timer": {
			source: "export default () => new Promise((r) => { setTimeout(() => { throw new Error('late') }, 1); setTimeout(r, 1000) })",
			want:   api.ActivationError{Type: "Exception", Message: "late"},
		},
		"throw in a microtask": {
			source: "export default () => new Promise((r) => { queueMicrotask(() => { throw new Error('micro') }); setTimeout(r, 1000) })",
			want:   api.ActivationError{Type: "Exception", Message: "Unhandled promise rejection: micro"},
		},
		"cycle":  {source: "export default () => { const a = {}; a.a = a; return a }", want: api.ActivationError{Type: "ResultInvalid", Message: "the result is not JSON: it contains itself"}},
		"BigInt": {source: "export default () => ({ n: 1n })", want: api.ActivationError{Type: "ResultInvalid", Message: "the result is not JSON: a BigInt has no JSON form"}},
		"too deep": {
			source: "export default () => { let a = 1; for (let i = 0; i < 1e5; i++) a = [a]; return a }",
			want:   api.ActivationError{Type: "ResultInvalid", Message: "the result is not JSON: it is nested deeper than 1000 levels"},
		},
		"too large":            {source: "export default () => 'a'.repeat(7 * 2 ** 20)", want: api.ActivationError{Type: "ResultTooLarge", Message: "the result is more than 6 MiB as JSON"}},
		"too large by sharing": {source: "export default () => new Array(1e5).fill('a'.repeat(1e3))", want: api.ActivationError{Type: "ResultTooLarge", Message: "the result is more than 6 MiB as JSON"}},
		"toJSON throws":        {source: "export default () => ({ toJSON() { throw new Error('no') } })", want: api.ActivationError{Type: "Exception", Message: "no"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(tt.source)
			for range 2 { // with a realm of its own and one built ahead
				got := p.invoke("null").failure(t)
				if !strings.Contains(got.Stack, tt.want.Stack) {
					t.Errorf("got a stack without %q, want it in\n%s", tt.want.Stack, got.Stack)
				}
				got.Stack, tt.want.Stack = "", ""
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestErrorIsCut(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`export default () => {
		const e = new Error("é".repeat(1e5)); e.stack = "s".repeat(1e5); e.code = "c".repeat(1e5); throw e }`)
	got := p.invoke("null").failure(t)
	if len(got.Message) != api.MaxErrorMessageBytes || len(got.Stack) != api.MaxErrorStackBytes || len(got.Code) != api.MaxErrorCodeBytes {
		t.Errorf("got %d bytes of message, %d of stack and %d of code, want %d, %d and %d", len(got.Message), len(got.Stack), len(got.Code), api.MaxErrorMessageBytes, api.MaxErrorStackBytes, api.MaxErrorCodeBytes)
	}
	if strings.Trim(got.Message, "é") != "" {
		t.Error("a character was cut in two")
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ source, event, want string }{
		"undefined":           {"() => {}", "null", ""},
		"a function":          {"() => () => 1", "null", ""},
		"a symbol":            {"() => Symbol()", "null", ""},
		"null":                {"() => null", "null", "null"},
		"promise of thenable": {"() => ({ then(r) { r(5) } })", "null", "5"},
		"late timer dropped":  {"() => { setTimeout(() => { throw 1 }, 0); return 1 }", "null", "1"},
		"settled before lost": {"async () => { Promise.reject(1); return 2 }", "null", "2"},
		"handled later":       {"async () => { const p = Promise.reject(3); return p.catch((x) => x) }", "null", "3"},
		"members":             {"() => ({ a: undefined, b() {}, c: [undefined, () => 1, NaN, -0, Infinity], d: new Date(0), [Symbol()]: 1 })", "null", `{"c":[null,null,null,0,null],"d":"1970-01-01T00:00:00.000Z"}`},
		"boxed":               {"() => [new Number(1), new String('s'), new Boolean(false), Object(Symbol()), /x/, new Map([[1, 2]]), new Uint8Array(2)]", "null", `[1,"s",false,{},{},{},{"0":0,"1":0}]`},
		"toJSON with key":     {"() => ({ a: { toJSON(k) { return k } }, b: [{ toJSON(k) { return k } }] })", "null", `{"a":"a","b":["0"]}`},
		"BigInt.toJSON":       {"() => { BigInt.prototype.toJSON = function () { return this.toString() }; return 12n }", "null", `"12"`},
		"raw JSON":            {"() => [JSON.rawJSON('1e1000')]", "null", "[1e1000]"},
		"own members only":    {"() => Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } })", "null", `{"own":2}`},
		"escapes":             {`() => "\"\\\b\f\n\r\t\u0001/é\u{1f600}\u2028"`, "null", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001/é\U0001f600\u2028\""},
		"lone surrogate out":  {`() => ["\ud800", "a\udc00b", "\ufffd\ud83d\ude00"]`, "null", "[\"\\ud800\",\"a\\udc00b\",\"\ufffd\U0001f600\"]"},
		"lone surrogate in":   {"(e) => [e.length, e.charCodeAt(0)]", `"\ud800"`, "[1,55296]"},
		"pair in":             {"(e) => e.codePointAt(0)", `"\ud83d\ude00"`, "128512"},
		"numbers in":          {"(e) => e.map(String)", `[9007199254740993,-0,1e400,-1E-2,0.1,123456789012345678901,999999999999999,1e21]`, `["9007199254740992","0","Infinity","-0.01","0.1","123456789012345680000","999999999999999","1e+21"]`},
		"negative zero in":    {"(e) => Object.is(e, -0)", "-0", "true"},
		"__proto__ in":        {"(e) => [Object.keys(e), e.polluted, ({}).polluted, Object.getPrototypeOf(e) === Object.prototype]", `{"__proto__":{"polluted":1}}`, `[["__proto__"],null,null,true]`},
		"__proto__ back":      {"(e) => e", `{"__proto__":{"a":1},"constructor":2}`, `{"__proto__":{"a":1},"constructor":2}`},
		"duplicate members":   {"(e) => e", `{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`},
		"index members":       {"(e) => e", `{"b":1,"2":2,"1":3}`, `{"1":3,"2":2,"b":1}`},
		"plain objects in":    {"(e) => [e.a instanceof Array, e.constructor === Object, e.a.push(1), delete e.a]", `{"a":[]}`, "[true,true,1,true]"},
		"unicode":             {"(e) => [e, e.ключ.length]", `{"ключ":"日本"}`, `[{"ключ":"日本"},2]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := inProcess(t).source("export default " + tt.source).invoke(tt.event)
			want := wire.OutcomeValue
			if tt.want == "" {
				want = wire.OutcomeUndefined
			}
			if o.Outcome != want || string(o.Body) != tt.want {
				t.Errorf("outcome %d\n got %s\nwant %s", o.Outcome, o.Body, tt.want)
			}
		})
	}
}

func TestStateDoesNotLast(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`
		let n = 0;
		export default (e) => {
			const before = [n++, globalThis.left, ({}).polluted, [].includes === undefined, typeof fetch, console.log.mark];
			globalThis.left = 1; Object.prototype.polluted = 1; delete Array.prototype.includes; globalThis.fetch = 1; console.log.mark = 1;
			return before }`)
	for range 3 {
		if got, want := p.value("null"), `[0,null,null,false,"function",null]`; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"endless loop":         "() => { for (;;); }",
		"masked by finally":    "() => { for (;;) { try { for (;;); } catch {} finally { continue } } }",
		"masked by a promise":  "async () => { for (;;) { try { await (async () => { for (;;); })() } catch {} } }",
		"masked by generators": "() => { function* g() { try { for (;;) yield 1 } finally { for (;;); } } for (const x of g()) { for (;;); } }",
		"endless microtasks":   "async () => { for (;;) await null }",
		"waiting":              "() => new Promise((r) => setTimeout(r, 60000))",
		"endless interval":     "() => new Promise(() => setInterval(() => {}, 1))",
		"in toJSON":            "() => ({ toJSON() { for (;;); } })",
		"in a thrown value":    "() => { throw { get message() { for (;;); } } }",
		"in a thrown toJSON":   "() => { throw { toJSON() { for (;;); }, toString() { for (;;); } } }",
		"in a logged value":    "() => { console.log({ toJSON() { for (;;); } }) }",
		"in a getter":          "() => ({ get then() { for (;;); } })",
		"in a sort":            "() => [2, 1].sort(() => { for (;;); })",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source("export default " + source)
			began := time.Now()
			p.begin("null", 50*time.Millisecond)
			o := p.finish()
			if o.Outcome != wire.OutcomeTimeout || o.Flags&wire.FlagRetire == 0 {
				t.Errorf("got outcome %d with flags %b, want %d with %b", o.Outcome, o.Flags, wire.OutcomeTimeout, wire.FlagRetire)
			}
			if took := time.Since(began); took < 45*time.Millisecond || took > 5*time.Second {
				t.Errorf("got an end after %v, want it after 45 ms to 5 s", took)
			}
		})
	}
}

// TestHangup: the parent's end stops a script, and Serve (see inProcess) returns.
func TestHangup(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"busy":    "() => { for (;;); }",
		"waiting": "() => new Promise((r) => setTimeout(r, 60000))",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source("export default " + source)
			p.begin("null", time.Minute)
			_ = p.conn.Close()
		})
	}
}

func TestLogBudget(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`export default (n) => { for (let i = 0; i < n; i++) console.log("x".repeat(1000)); return 1 }`)
	o := p.invoke("10000")
	size := 0
	for _, l := range o.Logs {
		size += len(l.Text)
	}
	if size > api.MaxLogBytes || size < api.MaxLogBytes*9/10 || o.Flags != wire.FlagLogsTruncated {
		t.Errorf("got %d bytes in %d lines with flags %b, want 90 to 100%% of %d bytes with %b", size, len(o.Logs), o.Flags, api.MaxLogBytes, wire.FlagLogsTruncated)
	}
	o = p.invoke("1")
	if len(o.Logs) != 1 || o.Flags != 0 {
		t.Errorf("next run: got %d lines with flags %b, want 1 line and no flags", len(o.Logs), o.Flags)
	}
}

func TestCausesAreInTheStack(t *testing.T) {
	t.Parallel()
	o := inProcess(t).source("function inner() { throw new TypeError('inner') }\nexport default function handle() {\n  try { inner() } catch (cause) { throw new Error('outer', { cause }) }\n}").invoke("null")
	want := "Error: outer\n    at handle (function.js:3:"
	cause := "\nCaused by: TypeError: inner\n    at inner (function.js:1:"
	if got := o.failure(t).Stack; !strings.HasPrefix(got, want) || !strings.Contains(got, cause) {
		t.Errorf("got %q, want %q and %q", got, want, cause)
	}
}

// The stack of an AggregateError, which Promise.any rejects with, has those of its errors.
func TestErrorsOfAnAggregateErrorAreInTheStack(t *testing.T) {
	t.Parallel()
	o := inProcess(t).source("const fail = async (Kind) => { throw new Kind('no') };\nexport default () => Promise.any([fail(TypeError), fail(RangeError)]);").invoke("null")
	got := o.failure(t).Stack
	for _, want := range []string{"AggregateError", "\nError 1 of 2: TypeError: no\n    at fail (function.js:1:", "\nError 2 of 2: RangeError: no\n    at fail (function.js:1:"} {
		if !strings.Contains(got, want) {
			t.Errorf("got the stack %q, want %q in it", got, want)
		}
	}
}

// A stack shows the innermost frames and the outermost ones, not hundreds of the same.
func TestLongStacksAreShortened(t *testing.T) {
	t.Parallel()
	o := inProcess(t).source("function f() { return f() + 1 }\nexport default function handle() { return f() }").invoke("null")
	lines := strings.Split(o.failure(t).Stack, "\n")
	omitted := func(line string) bool {
		return strings.HasPrefix(line, "    … ") && strings.HasSuffix(line, " more frames")
	}
	if len(lines) != 1+maxFrames+1 || !strings.HasPrefix(lines[1], "    at f (function.js:1:") || !omitted(lines[1+maxFrames-lastFrames]) {
		t.Errorf("got the stack\n%s\nwant the message, %d frames and a line that counts the others", strings.Join(lines, "\n"), maxFrames)
	}
}

func TestRecursion(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"arrow":       "const f = (n) => n ? 1 + f(n - 1) : 0; const end = () => end() + 1;",
		"function":    "function f(n) { return n ? 1 + f(n - 1) : 0 } function end() { return end() + 1 }",
		"method":      "const o = { f(n) { return n ? 1 + o.f(n - 1) : 0 }, end() { return o.end() + 1 } }; const f = (n) => o.f(n), end = () => o.end();",
		"class":       "class C { f(n) { return n ? 1 + this.f(n - 1) : 0 } static end() { return C.end() + 1 } }; const f = (n) => new C().f(n), end = () => C.end();",
		"private":     "class C { #f(n) { return n ? 1 + this.#f(n - 1) : 0 } f(n) { return this.#f(n) } }; const f = (n) => new C().f(n); const end = () => end() + 1;",
		"toString":    "const f = (n) => n ? 1 + f(n - 1) : 0; const o = { toString() { return '' + o } }; const end = () => o + '';",
		"constructor": "const f = (n) => n ? 1 + f(n - 1) : 0; class A { constructor() { new A() } }; const end = () => new A();",
		"getter":      "const f = (n) => n ? 1 + f(n - 1) : 0; const o = { get x() { return o.x } }; const end = () => o.x;",
		"native":      "const f = (n) => n ? 1 + f(n - 1) : 0; const end = () => [1].map(end);",
		"each other":  "const even = (n) => n === 0 || odd(n - 1), odd = (n) => n !== 0 && even(n - 1); const f = (n) => even(n) ? n : 0; function a() { return b() + 1 } function b() { return c() } function c() { return a() } const end = () => a();",
		"visitor":     "class Num { accept(v) { return v.num(this) } } class Neg { accept(v) { return v.neg(this) } } const v = { num: (x) => x.n, neg: (x) => x.of.accept(v) }; const f = (n) => n; const end = () => { const x = new Neg(); x.of = x; return x.accept(v) };",
		"dispatch":    "const visitors = { list(x) { return visit(x) }, leaf: () => 1 }; function visit(x) { return visitors[x.type](x) } const f = (n) => n, end = () => visit({ type: 'list' });",
		"callbacks":   "const walk = (n) => n.list.map((x) => enter(x)), enter = (n) => { let out = 0; n.list.forEach((x) => { out += walk(x) }); return out }; const f = (n) => n, loop = {}; loop.list = [loop]; const end = () => walk(loop);",
		"classes":     "class A { go(b) { return b?.back(this) } } class B { back(a) { return a?.['go'](this) } }; const f = (n) => n, end = () => new A().go(new B());",
		"new":         "class A { constructor() { this.b = new B() } } class B { constructor() { this.a = new A() } }; const f = (n) => n, end = () => new A();",
		"generator":   "const f = (n) => n ? 1 + f(n - 1) : 0; function* g() { yield* g() } const end = () => [...g()];",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(source + `
export default () => {
  const out = [f(10000)];
  for (let i = 0; i < 2; i++) try { end() } catch (e) { out.push(e instanceof RangeError && e.message) }
  return out
}`)
			want := `[10000,"Maximum call stack size exceeded","Maximum call stack size exceeded"]`
			p.begin("null", time.Minute) // the race detector makes deep generators slow
			if got := string(p.finish().Body); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
