package child

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

const httpGreeting = `{"version":"2.0","rawPath":"/v1/web/t/n/f/prod/hi","path":"/hi","rawQueryString":"x=1","headers":{"host":"a.example","x-a":"b"},"cookies":["c=1","d=2"],"requestContext":{"http":{"method":"POST"}},"body":"{\"n\":1}","isBase64Encoded":false}`

// start begins an activation of a trigger, as an attempt of a job unless job is "".
func (p *parent) start(trigger, job, event string, flags uint8) {
	p.t.Helper()
	head := wire.InvokeHead{
		ActivationID: "0b1c", DeadlineMS: time.Now().Add(time.Minute).UnixMilli(), Attempt: 1, Flags: flags,
		Trigger: json.RawMessage(trigger), Principal: json.RawMessage(`{"sub":"me","roles":[]}`), Job: json.RawMessage(job),
	}
	p.write(wire.AppendInvoke(nil, &head, []byte(event)))
}

const (
	byHTTP     = `{"type":"http"}`
	byAPI      = `{"type":"api"}`
	byQueue    = `{"type":"queue"}`
	bySchedule = `{"type":"schedule","source":{"schedule":"nightly","cron":"0 3 * * *","tick_ms":1000,"tick_seq":1}}`
	byInterval = `{"type":"schedule","source":{"schedule":"often","tick_ms":2000,"tick_seq":1}}`
	aJob       = `{"id":"j1","queue":"fn.f","attempt":2,"max_attempts":4,"created_at_ms":5000}`
)

func TestHandlers(t *testing.T) {
	t.Parallel()
	const all = `export default {
		prefix: "I ",
		async fetch(q, env, ctx) { return Response.json([this.prefix, q.method, q.url, q.headers.get("cookie"), q.headers.get("x-a"), await q.text(), env.REGION, typeof ctx.waitUntil]) },
		scheduled(e, env) { console.log(e.type, e.schedule, String(e.cron), e.scheduledTime, JSON.stringify(e.event), env.REGION); return 1 },
		queue(b) { const m = b.messages[0]; console.log(b.queue, b.messages.length, m.id, m.attempts, m.timestamp.getTime(), JSON.stringify(m.body)) },
	}`
	for name, tt := range map[string]struct {
		source, trigger, job, event string
		want                        string // of the body, or of the log
	}{
		"fetch": {
			all, byHTTP, "", httpGreeting,
			`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"[\"I \",\"POST\",\"http://a.example/hi?x=1\",\"c=1; d=2\",\"b\",\"{\\\"n\\\":1}\",\"eu\",\"function\"]"}`,
		},
		"fetch by the API": {
			all, byAPI, "", `{"a":1}`,
			`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"[\"I \",\"POST\",\"http://localhost/\",null,null,\"{\\\"a\\\":1}\",\"eu\",\"function\"]"}`,
		},
		"scheduled":            {all, bySchedule, aJob, `{"a":1}`, `scheduled nightly 0 3 * * * 1000 {"a":1} eu`},
		"scheduled often":      {all, byInterval, aJob, `{"a":1}`, `scheduled often undefined 2000 {"a":1} eu`},
		"queue":                {all, byQueue, aJob, `{"a":1}`, `fn.f 1 j1 2 5000 {"a":1}`},
		"queue by the API":     {all, byAPI, aJob, `{"a":1}`, `fn.f 1 j1 2 5000 {"a":1}`},
		"class":                {`class A { fetch(q) { return new Response(q.method) } } export default new A()`, byHTTP, "", httpGreeting, `{"statusCode":200,"headers":{"content-type":"text/plain;charset=UTF-8"},"body":"POST"}`},
		"function with a name": {`const f = () => 1; f.fetch = () => new Response("no"); export default f`, byHTTP, "", httpGreeting, `1`},
		"hostile host":         {`export default { fetch: (q) => new Response(q.url) }`, byHTTP, "", `{"version":"2.0","path":"/hi","headers":{"host":"a b/@"},"requestContext":{"http":{"method":"GET"}},"body":"x"}`, `{"statusCode":200,"headers":{"content-type":"text/plain;charset=UTF-8"},"body":"http://localhost/hi"}`},
	} {
		for isolation, instance := range isolations() {
			t.Run(name+"/"+isolation, func(t *testing.T) {
				t.Parallel()
				p := inProcess(t)
				p.env, p.instance = map[string]string{"REGION": "eu"}, instance
				p.source(tt.source)
				for range 2 {
					p.start(tt.trigger, tt.job, tt.event, 0)
					o := p.finish()
					got := string(o.Body)
					if o.Outcome == wire.OutcomeUndefined && len(o.Logs) == 1 {
						got = string(o.Logs[0].Text)
					}
					if got != tt.want {
						t.Errorf("outcome %d: got %s, want %s", o.Outcome, got, tt.want)
					}
				}
			})
		}
	}
}

func TestHandlersFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source, trigger, job string
		want                 string
	}{
		"no response":     {`export default { fetch: () => ({ statusCode: 200 }) }`, byHTTP, "", "must return a Response"},
		"no scheduled":    {`export default { fetch: () => new Response() }`, bySchedule, aJob, "no method scheduled"},
		"no queue":        {`export default { scheduled() {} }`, byQueue, aJob, "no method queue"},
		"no fetch":        {`export default { queue() {} }`, byHTTP, "", "no method fetch"},
		"computed":        {`export default JSON.parse("{}")`, byHTTP, "", "nor an object with a method"},
		"throwing getter": {`export default { get fetch() { throw new Error("mine") } }`, byHTTP, "", "mine"},
		"revoked proxy":   {`const p = Proxy.revocable({}, {}); p.revoke(); export default p.proxy`, byHTTP, "", "revoked"},
		"thrown":          {`export default { queue() { throw new Error("boom") } }`, byQueue, aJob, "boom"},
		"delay":           {`export default { queue(b) { b.messages[0].retry({ delaySeconds: -1 }) } }`, byQueue, aJob, "delaySeconds must be"},
		"not a number":    {`export default { queue(b) { b.messages[0].retry({ delaySeconds: NaN }) } }`, byQueue, aJob, "delaySeconds must be"},
		"no text":         {`export default { queue(b) { b.messages[0].retry({ reason: 5 }) } }`, byQueue, aJob, "reason must be a string"},
		"long reason":     {`export default { queue(b) { b.messages[0].retry({ reason: "x".repeat(1025) }) } }`, byQueue, aJob, "reason must have at most 1,024 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(tt.source)
			p.start(tt.trigger, tt.job, httpGreeting, 0)
			if got := p.finish().failure(t); !strings.Contains(got.Message, tt.want) {
				t.Errorf("got %s: %s, want %s", got.Type, got.Message, tt.want)
			}
		})
	}
}

// TestUnusableHandlersAreRefused when the source shows that they are none.
func TestUnusableHandlersAreRefused(t *testing.T) {
	t.Parallel()
	for source, refused := range map[string]bool{
		`export default { a: 1 }`:                                                true,
		`export default 42`:                                                      true,
		`export default [() => 1]`:                                               true,
		`const worker = { handle() {} }; export default worker`:                  true,
		`export default { fetch() {} }`:                                          false,
		`const fetch = () => 1; export default { fetch }`:                        false,
		`const more = {}; export default { ...more }`:                            false,
		`export default { ["fet" + "ch"]() {} }`:                                 false,
		`export default () => 1`:                                                 false,
		`class A { fetch() {} } export default new A()`:                          false,
		`const a = { x: 1 }; a.fetch = () => 1; export default Object.create(a)`: false,
		`const app = {}; app.fetch = () => 1; export default app`:                false,
		`let h = null; h = () => 1; export { h as default }`:                     false,
	} {
		p := inProcess(t)
		p.checkOnly = true
		kind, payload := p.offer(map[string]string{"function.js": source})
		if got := kind == wire.KindRefused; got != refused || refused && !strings.Contains(string(payload), "fetch, scheduled or queue") {
			t.Errorf("%s: got refused %v (%.200s), want %v", source, got, payload, refused)
		}
	}
}

// TestNoRetry: the verdict goes with its own attempt only, and once.
func TestNoRetry(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]struct {
		outcome wire.Outcome
		noRetry bool
	}{
		`e.noRetry(); throw new Error("no")`:                               {wire.OutcomeError, true},
		`const { noRetry } = e; await null; noRetry(); noRetry(); throw 1`: {wire.OutcomeError, true},
		`c.waitUntil(Promise.resolve().then(() => e.noRetry())); throw 1`:  {wire.OutcomeError, true},
		`e.noRetry()`:              {wire.OutcomeUndefined, true},
		`throw new Error("again")`: {wire.OutcomeError, false},
		`globalThis.e ??= e; if (globalThis.e !== e) globalThis.e.noRetry(); throw 1`: {wire.OutcomeError, false},
	} {
		for isolation, instance := range isolations() {
			p := inProcess(t)
			p.instance = instance
			p.source(`export default { async scheduled(e, env, c) { ` + source + ` } }`)
			var verdicts []wire.Verdict
			if want.noRetry {
				verdicts = []wire.Verdict{{NoRetry: true}}
			}
			for i := range 2 {
				p.verdicts = nil
				p.start(bySchedule, aJob, "1", 0)
				if o := p.finish(); o.Outcome != want.outcome || !slices.Equal(p.verdicts, verdicts) {
					t.Errorf("%s (%s), call %d: got outcome %d, verdicts %v, want %d, %v", source, isolation, i, o.Outcome, p.verdicts, want.outcome, verdicts)
				}
			}
		}
	}
}

// TestMessages: the first call of ack and retry decides.
func TestMessages(t *testing.T) {
	t.Parallel()
	ack := wire.Verdict{Acked: true}
	retry, retryAfter := wire.Verdict{Retried: true, DelayMS: -1}, wire.Verdict{Retried: true, DelayMS: 1500}
	for source, want := range map[string]wire.Verdict{
		`m.retry({ delaySeconds: 1.5 })`:                                    retryAfter,
		`m.retry()`:                                                         retry,
		`m.retry({ reason: "no paper" })`:                                   {Retried: true, DelayMS: -1, Reason: "no paper"},
		`b.retryAll({ delaySeconds: 1.5, reason: "busy" })`:                 {Retried: true, DelayMS: 1500, Reason: "busy"},
		`m.retry(); m.ack()`:                                                retry,
		`m.ack(); m.retry()`:                                                ack,
		`b.retryAll({ delaySeconds: 1.5 })`:                                 retryAfter,
		`b.ackAll(); b.retryAll()`:                                          ack,
		`m.ack(); throw new Error("late")`:                                  ack,
		`c.waitUntil(Promise.resolve().then(() => m.retry()))`:              retry,
		`globalThis.m ??= m; globalThis.m.retry(); m.ack()`:                 ack, // at the second call
		`return { batchItemFailures: [{ itemIdentifier: "j1" }] }`:          retry,
		`m.ack(); return { batchItemFailures: [{ itemIdentifier: "j1" }] }`: ack,
	} {
		p := inProcess(t)
		p.instance = isolations()["instance"]
		p.source(`export default { queue(b, env, c) { const m = b.messages[0]; ` + source + ` } }`)
		for range 2 {
			p.verdicts = nil
			p.start(byQueue, aJob, "1", 0)
			p.finish()
		}
		if !slices.Equal(p.verdicts, []wire.Verdict{want}) {
			t.Errorf("%s: got verdicts %v, want %v", source, p.verdicts, want)
		}
	}
}

// aBatch is a batch of three jobs.
const aBatch = `{"queue":"mail","messages":[
	{"id":"j1","created_at_ms":1,"attempt":1,"body":{"n":1}},
	{"id":"j2","created_at_ms":2,"attempt":2,"body":"two"},
	{"id":"j3","created_at_ms":3,"attempt":3,"body":null}]}`

// TestBatches: each message of a batch has its own verdict, and failures that name no message
// are refused.
func TestBatches(t *testing.T) {
	t.Parallel()
	const ok, failed = `[]`, `ResultInvalid`
	for source, want := range map[string]struct{ verdicts, outcome string }{
		`b.messages[1].ack(); b.retryAll({ delaySeconds: 2 })`:                                                 {`1+ 0-2000 2-2000`, ok},
		`b.messages[2].retry(); b.ackAll()`:                                                                    {`2-1 0+ 1+`, ok},
		`throw new Error("all")`:                                                                               {``, "Exception"},
		`b.messages[0].ack(); throw new Error("rest")`:                                                         {`0+`, "Exception"},
		`return { batchItemFailures: [{ itemIdentifier: "j3" }] }`:                                             {`2-1`, ok},
		`b.messages[2].ack(); return { batchItemFailures: b.messages.map((m) => ({ itemIdentifier: m.id })) }`: {`2+ 0-1 1-1`, ok},
		`return { batchItemFailures: null }`:                                                                   {``, ok},
		`return { batchItemFailures: [] }`:                                                                     {``, ok},
		`return { batchItemFailures: 1 }`:                                                                      {``, failed},
		`return { batchItemFailures: [{ itemIdentifier: "j1" }, {}] }`:                                         {``, failed},
		`return { batchItemFailures: [{ itemIdentifier: "" }] }`:                                               {``, failed},
		`return { batchItemFailures: [{ itemIdentifier: new String("j1") }] }`:                                 {``, failed},
		`return { batchItemFailures: ["j1"] }`:                                                                 {``, failed},
		`return { batchItemFailures: "j1" }`:                                                                   {``, failed},
		`return { batchItemFailures: new Array(1e9) }`:                                                         {``, failed},
		`return { batchItemFailures: Array(5000).fill({ itemIdentifier: "j1" }) }`:                             {``, failed},
		`return { get batchItemFailures() { throw new Error("getter") } }`:                                     {``, "Exception"},
		`return { batchItemFailures: new Proxy([], { get() { throw new Error("p") } }) }`:                      {``, failed},
		`return "ignored"`: {``, ok},
		`if (JSON.stringify([b.queue, b.messages.map((m) => [m.id, m.attempts, m.timestamp.getTime(), m.body])]) !== '["mail",[["j1",1,1,{"n":1}],["j2",2,2,"two"],["j3",3,3,null]]]') throw new Error("shape")`: {``, ok},
	} {
		p := inProcess(t).source(`export default { fetch() {}, queue(b, env, c) { ` + source + ` } }`)
		p.start(byQueue, "", aBatch, wire.FlagBatch)
		o := p.finish()
		var verdicts []string
		for _, v := range p.verdicts {
			text := strconv.Itoa(v.Message) + "+"
			if v.Retried {
				text = strconv.Itoa(v.Message) + "-" + strconv.FormatInt(max(v.DelayMS, 1), 10)
			}
			verdicts = append(verdicts, text)
		}
		outcome := ok
		if o.Outcome == wire.OutcomeError {
			var e api.ActivationError
			if err := json.Unmarshal(o.Body, &e); err != nil {
				t.Errorf("%s: the error %s: %v", source, o.Body, err)
			}
			outcome = string(e.Type)
		}
		if got := strings.Join(verdicts, " "); got != want.verdicts || outcome != want.outcome {
			t.Errorf("%s: got verdicts %q and outcome %s (%s), want %+v", source, got, outcome, o.Body, want)
		}
	}
	for source, want := range map[string]string{
		`export default () => 1`:        "one job at a time",
		`export default { fetch() {} }`: "no method queue",
	} {
		p := inProcess(t).source(source)
		p.start(byQueue, "", aBatch, wire.FlagBatch)
		if o := p.finish(); o.Outcome != wire.OutcomeError || !strings.Contains(string(o.Body), want) {
			t.Errorf("a batch for %s: got outcome %d (%s), want an error with %q", source, o.Outcome, o.Body, want)
		}
	}
}

// TestVerificationNamesHandlers: the answer to a verification is the list of the handlers.
func TestVerificationNamesHandlers(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`export default () => 1`:                            `["function"]`,
		`export default { queue() {}, fetch() {} }`:         `["fetch","queue"]`,
		`class A { scheduled() {} } export default new A()`: `["scheduled"]`,
	} {
		p := inProcess(t).source(source)
		p.start(byAPI, "", "null", wire.FlagVerify)
		if o := p.finish(); string(o.Body) != want {
			t.Errorf("%s: got %s, want %s", source, o.Body, want)
		}
	}
}

// TestWaitUntil: the answer comes first, and the end when the promises have settled.
func TestWaitUntil(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		logs []string // parts of the lines, in order
	}{
		"settles":         {`c.waitUntil(new Promise((r) => setTimeout(() => { console.log("after"); r() }, 5)))`, []string{"after"}},
		"nested":          {`c.waitUntil(new Promise((r) => setTimeout(() => { c.waitUntil(Promise.resolve().then(() => console.log("inner"))); r() }, 5)))`, []string{"inner"}},
		"rejects":         {`c.waitUntil(Promise.reject(new Error("lost"))); c.waitUntil((async () => { console.log("other") })())`, []string{"other", "waitUntil: Error: lost"}},
		"thenable":        {`c.waitUntil({ then(f) { setTimeout(f, 1) } })`, nil},
		"never settles":   {`c.waitUntil(new Promise(() => {}))`, []string{"can never settle"}},
		"unhandled":       {`c.waitUntil(new Promise((r) => setTimeout(() => { Promise.reject(new Error("loose")); setTimeout(r, 1) }, 1)))`, []string{"loose"}},
		"no promise":      {`c.waitUntil(1)`, nil},
		"late host calls": {`c.waitUntil((async () => { await 0; console.log(String(await cs.kv.get("x"))) })())`, []string{"undefined"}},
		"hostile promise": {`const p = Promise.resolve(); p.then = () => { throw 1 }; c.waitUntil(p)`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t)
			p.host = answer
			p.source("export default (e, c) => { " + tt.body + "; return { ok: true } }")
			for _, flags := range []uint8{wire.FlagEarly, 0} {
				p.answers = nil
				p.start(byAPI, "", "null", flags)
				o := p.finish()
				if string(o.Body) != `{"ok":true}` {
					t.Errorf("got outcome %d: %s, want the result", o.Outcome, o.Body)
				}
				early := len(p.answers) == 1 && p.answers[0] == `{"ok":true}`
				if want := flags != 0 && name != "no promise"; early != want || !want && len(p.answers) > 0 {
					t.Errorf("flags %d: got answers %q, want one: %v", flags, p.answers, want)
				}
				if len(o.Logs) != len(tt.logs) {
					t.Fatalf("got %d lines, want %d: %+v", len(o.Logs), len(tt.logs), o.Logs)
				}
				for i, want := range tt.logs {
					if !strings.Contains(string(o.Logs[i].Text), want) {
						t.Errorf("line %d is %s, want %s", i, o.Logs[i].Text, want)
					}
				}
			}
		})
	}
}

// TestWaitUntilEnds with the time limit, and refuses what comes too late or too often.
func TestWaitUntilEnds(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`export default (e, c) => { c.waitUntil(new Promise((r) => setTimeout(r, 60000))); return 1 }`)
	p.begin("null", 200*time.Millisecond)
	if o := p.finish(); o.Outcome != wire.OutcomeTimeout {
		t.Errorf("endless promise: got outcome %d: %s, want a timeout", o.Outcome, o.Body)
	}
	p = inProcess(t).source(`export default (e, c) => { for (let i = 0; i < 1001; i++) c.waitUntil(Promise.resolve()) }`)
	if got := p.invoke("null").failure(t); !strings.Contains(got.Message, "more than 1000 promises") {
		t.Errorf("many promises: got %s, want a RangeError", got.Message)
	}
	p = inProcess(t)
	p.instance = isolations()["instance"]
	p.source(`let old; export default (e, c) => { if (old) { old.waitUntil(Promise.resolve()) } old = c }`)
	p.invoke("null")
	if got := p.invoke("null").failure(t); !strings.Contains(got.Message, "has ended") {
		t.Errorf("old ctx: got %s, want that the activation has ended", got.Message)
	}
	p = inProcess(t).source(`export default (e, c) => { c.waitUntil(Promise.resolve().then(() => console.log("done"))); throw new Error("mine") }`)
	o := p.invoke("null")
	if got := o.failure(t); got.Type != api.ErrException || got.Message != "mine" || len(o.Logs) != 1 {
		t.Errorf("a handler that throws: got %+v and %d lines, want mine and 1", got, len(o.Logs))
	}
}

// TestEventBody: the methods of an HTTP event read its body.
func TestEventBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ code, body, headers, want string }{
		{`await e.json()`, `"body":"{\"a\":1}","isBase64Encoded":false`, `{}`, `{"a":1}`},
		{`[await e.text(), await e.text()]`, `"body":"aGk=","isBase64Encoded":true`, `{}`, `["hi","hi"]`},
		{`[...(await e.formData())]`, `"body":"a=1&b=%20","isBase64Encoded":false`, `{"content-type":"application/x-www-form-urlencoded"}`, `[["a","1"],["b"," "]]`},
		{`[Object.keys(e).includes("json"), JSON.stringify(e).includes("text"), e.text.name, await e.text().then((s) => s.length)]`, `"isBase64Encoded":false`, `{}`, `[false,false,"text",0]`},
		{`await e.json().catch((x) => x.name)`, `"body":"{","isBase64Encoded":false`, `{}`, `"SyntaxError"`},
		{`await e.text().catch((x) => x.message)`, `"body":"%","isBase64Encoded":true`, `{}`, `"the body of the event is not base64"`},
		{`await e.text.call(1).catch((x) => x.name)`, `"body":"","isBase64Encoded":true`, `{}`, `"TypeError"`},
	} {
		p := inProcess(t).source(`export default async (e) => (` + tt.code + `)`)
		p.start(byHTTP, "", `{"version":"2.0","headers":`+tt.headers+`,`+tt.body+`}`, 0)
		if o := p.finish(); string(o.Body) != tt.want {
			t.Errorf("%s: got outcome %d %s, want %s", tt.code, o.Outcome, o.Body, tt.want)
		}
	}
}
