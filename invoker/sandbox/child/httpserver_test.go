package child

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// serving is a module that exports a server with the body of its listener.
func serving(listener string) string {
	return `import http from "node:http"; import { Readable, finished, pipeline } from "node:stream";
		export default http.createServer((req, res) => { ` + listener + ` })`
}

// TestServers: a function that exports an http.Server answers with it, in both isolations.
func TestServers(t *testing.T) {
	t.Parallel()
	const typed = `res.setHeader("content-type", "application/json");`
	for name, tt := range map[string]struct{ source, trigger, event, want string }{
		"request": {
			serving(typed + `let body = ""; req.setEncoding("utf8"); req.on("data", (c) => { body += c }); req.on("end", () => res.end(JSON.stringify([req.method, req.url, req.httpVersion, req.headers, req.rawHeaders.length, req.complete, req.socket.remoteAddress, req.socket.encrypted, body])))`),
			byHTTP, strings.Replace(httpGreeting, `"method":"POST"`, `"method":"POST","sourceIp":"192.0.2.7"`, 1),
			`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"[\"POST\",\"/hi?x=1\",\"1.1\",{\"cookie\":\"c=1; d=2\",\"host\":\"a.example\",\"x-a\":\"b\",\"content-length\":\"7\"},8,true,\"192.0.2.7\",false,\"{\\\"n\\\":1}\"]"}`,
		},
		"an event of the API": {
			serving(typed + `let body = ""; req.on("data", (c) => { body += c }).on("end", () => res.end(JSON.stringify([req.method, req.url, req.headers, body])))`),
			byAPI, `{"a":1}`,
			`{"statusCode":200,"headers":{"content-type":"application/json"},"body":"[\"POST\",\"/\",{\"content-type\":\"application/json\",\"host\":\"localhost\",\"content-length\":\"7\"},\"{\\\"a\\\":1}\"]"}`,
		},
		"head":          {serving(`res.writeHead(201, "Fine", { "X-A": ["1", "2"], "Set-Cookie": ["a=1", "b=2"] }); res.end("text")`), byHTTP, httpGreeting, `{"statusCode":201,"headers":{"x-a":"1, 2","content-type":"text/plain; charset=utf-8"},"cookies":["a=1","b=2"],"body":"text"}`},
		"bytes":         {serving(`res.end(Buffer.from([0, 255]))`), byHTTP, httpGreeting, `{"statusCode":200,"headers":{},"body":"AP8=","isBase64Encoded":true}`},
		"nothing":       {serving(`res.statusCode = 204; res.end("dropped")`), byHTTP, httpGreeting, `{"statusCode":204,"headers":{}}`},
		"HEAD":          {serving(`res.setHeader("content-length", 4); res.end("text")`), byHTTP, strings.Replace(httpGreeting, "POST", "HEAD", 1), `{"statusCode":200,"headers":{"content-length":"4"}}`},
		"later":         {serving(`setTimeout(() => res.end("later"), 1)`), byHTTP, httpGreeting, textAnswer("later")},
		"parts":         {serving(`res.write("a"); res.write("b"); res.end("c")`), byHTTP, httpGreeting, textAnswer("abc")},
		"collected":     {serving(`Readable.from(["a", "b"]).pipe(res)`), byHTTP, httpGreeting, `{"statusCode":200,"headers":{},"body":"YWI=","isBase64Encoded":true}`},
		"echo":          {serving(`res.setHeader("content-type", "text/plain"); req.pipe(res)`), byHTTP, httpGreeting, `{"statusCode":200,"headers":{"content-type":"text/plain"},"body":"{\"n\":1}"}`},
		"no body":       {serving(`req.on("data", () => {}).on("end", () => res.end("read"))`), byHTTP, `{"version":"2.0","path":"/","headers":{},"requestContext":{"http":{"method":"GET"}},"body":""}`, textAnswer("read")},
		"double end":    {serving(`res.end("one"); res.end(); res.end("two"); res.on("error", () => {})`), byHTTP, httpGreeting, textAnswer("one")},
		"write after":   {serving(`res.on("error", (e) => console.log(e.code)); res.end("one"); res.write("two")`), byHTTP, httpGreeting, textAnswer("one")},
		"https":         {`import https from "node:https"; export default https.createServer({}, (q, s) => s.end("s"))`, byHTTP, httpGreeting, textAnswer("s")},
		"listening":     {`import { createServer } from "node:http"; const s = createServer(); s.on("request", (q, r) => r.end(String(s.listening))); s.listen(3000); export default s`, byHTTP, httpGreeting, textAnswer("true")},
		"top-level":     {`import { createServer } from "node:http"; await new Promise((r) => setTimeout(r, 1)); export default createServer((q, r) => r.end("awaited"))`, byHTTP, httpGreeting, textAnswer("awaited")},
		"own classes":   {`import http from "node:http"; class Q extends http.IncomingMessage { get who() { return "q" } } class S extends http.ServerResponse { say(x) { this.end(x) } } export default http.createServer({ IncomingMessage: Q, ServerResponse: S }, (q, s) => s.say(q.who))`, byHTTP, httpGreeting, textAnswer("q")},
		"require":       {`const s = require("http").createServer((q, r) => r.end("required")); export default s`, byHTTP, httpGreeting, textAnswer("required")},
		"own fetch":     {`import http from "node:http"; export default Object.assign(http.createServer((q, r) => r.end("no")), { fetch: () => new Response("mine") })`, byHTTP, httpGreeting, `{"statusCode":200,"headers":{"content-type":"text/plain;charset=UTF-8"},"body":"mine"}`},
		"events":        {serving(`const seen = []; for (const e of ["finish", "close"]) res.on(e, () => seen.push(e)); req.on("close", () => console.log([...seen, "request"].join())); res.end("x")`), byHTTP, httpGreeting, textAnswer("x")},
		"scheduled too": {`import http from "node:http"; export default Object.assign(http.createServer(), { scheduled() { return 1 } })`, bySchedule, `{}`, ``},
	} {
		for isolation, instance := range isolations() {
			t.Run(name+"/"+isolation, func(t *testing.T) {
				t.Parallel()
				p := inProcess(t)
				p.instance = instance
				p.source(tt.source)
				for range 2 {
					p.start(tt.trigger, "", tt.event, 0)
					o := p.finish()
					if string(o.Body) != tt.want {
						t.Errorf("outcome %d: got %s, want %s", o.Outcome, o.Body, tt.want)
					}
					for _, l := range o.Logs {
						if got := string(l.Text); got != "ERR_STREAM_WRITE_AFTER_END" && got != "finish,close,request" {
							t.Errorf("got the log line %q, want the events in order or none", got)
						}
					}
				}
			})
		}
	}
}

// textAnswer is the result of a server that ends with a text and sets no type.
func textAnswer(body string) string {
	return `{"statusCode":200,"headers":{"content-type":"text/plain; charset=utf-8"},"body":"` + body + `"}`
}

// TestServersFail: what a listener does wrong is an error of the activation, and no hang.
func TestServersFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ source, trigger, want string }{
		"thrown":           {serving(`throw new Error("boom")`), byHTTP, "boom"},
		"rejected":         {`import http from "node:http"; export default http.createServer(async () => { await 0; throw new Error("boom") })`, byHTTP, "Unhandled promise rejection: boom"},
		"thrown later":     {serving(`setTimeout(() => { throw new Error("boom") }, 1)`), byHTTP, "boom"},
		"thrown at finish": {serving(`res.on("finish", () => { throw new Error("boom") }); res.end("x")`), byHTTP, "boom"},
		"thrown by data":   {serving(`req.on("data", () => { throw new Error("boom") })`), byHTTP, "boom"},
		"never ended":      {serving(`res.write("x")`), byHTTP, "can never settle"},
		"no answer":        {serving(``), byHTTP, "can never settle"},
		"no listener":      {`import http from "node:http"; export default http.createServer()`, byHTTP, "no listener of the event request"},
		"destroyed":        {serving(`res.destroy()`), byHTTP, "destroyed before the answer ended"},
		"destroyed why":    {serving(`req.socket.destroy(new Error("mine"))`), byHTTP, "mine"},
		"error unheard":    {serving(`res.end("x"); res.write("y")`), byHTTP, "write after end"},
		"status":           {serving(`res.statusCode = 700; res.end("x")`), byHTTP, "from 200 to 599"},
		"status 100":       {serving(`res.writeHead(100); res.end()`), byHTTP, "from 200 to 599"},
		"injection":        {serving(`res.setHeader("a", "b\r\nc: d"); res.end()`), byHTTP, "Invalid character in header content"},
		"hidden injection": {serving(`let n = 0; res.setHeader("a", { toString() { return n++ ? "b\r\nc: d" : "b" } }); res.end()`), byHTTP, "is not a header value"},
		"scheduled":        {serving(`res.end()`), bySchedule, "no method scheduled"},
		"queue":            {serving(`res.end()`), byQueue, "no method queue"},
		"broken server":    {`import http from "node:http"; const s = http.createServer(() => {}); s.emit = () => { throw new Error("mine") }; export default s`, byHTTP, "mine"},
		"6 MiB":            {serving(`res.end("x".repeat(` + "7 << 20" + `))`), byHTTP, "more than 6 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(tt.source)
			job := ""
			if tt.trigger != byHTTP {
				job = aJob
			}
			p.start(tt.trigger, job, httpGreeting, 0)
			if got := p.finish().failure(t); !strings.Contains(got.Message, tt.want) {
				t.Errorf("got %s: %s, want %s", got.Type, got.Message, tt.want)
			}
		})
	}
}

// TestServerVerifies: the handlers of a version that exports a server are those of an object.
func TestServerVerifies(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		serving(``): `["fetch"]`,
		`import http from "node:http"; export default Object.assign(http.createServer(), { queue() {} })`:                                `["fetch","queue"]`,
		`import http from "node:http"; export default (req, res) => res.end(http.STATUS_CODES[200])`:                                     `["function"]`,
		`import { createServer } from "node:https"; const s = createServer(); export default { fetch: () => new Response(), server: s }`: `["fetch"]`,
	} {
		p := inProcess(t).source(source)
		p.start(byHTTP, "", "null", wire.FlagVerify)
		if got := string(p.finish().Body); got != want {
			t.Errorf("%s: got the handlers %s, want %s", source, got, want)
		}
	}
}

// TestServersStream: an answer that does not end in the turn in which it begins goes out as it
// is written, and no faster than the client takes it.
func TestServersStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		listener string
		bytes    int
		begins   string
		streamed bool
	}{
		"whole":           {`res.end("ab")`, 0, "", false},
		"parts in time":   {`res.write("a"); res.end("b")`, 0, "", false},
		"parts":           {`res.writeHead(201, { "X-A": "1" }); res.write("a"); setTimeout(() => res.end("b"), 1)`, 2, "ab", true},
		"head first":      {`res.writeHead(201, { "X-A": "1" }); res.flushHeaders(); setTimeout(() => res.end("b"), 1)`, 1, "b", true},
		"pipe":            {`res.statusCode = 201; res.setHeader("x-a", "1"); Readable.from(Array.from({ length: 40 }, () => "x".repeat(50000))).pipe(res)`, 2_000_000, "xx", true},
		"drain":           {`res.writeHead(201, { "X-A": "1" }); let n = 0; const go = () => { while (n++ < 40) if (!res.write("y".repeat(50000))) return res.once("drain", go); res.end() }; res.write("y"); setTimeout(go, 1)`, 2_000_001, "yy", true},
		"more than 6 MiB": {`res.writeHead(201, { "X-A": "1" }); res.end("z".repeat(7 << 20))`, 7 << 20, "zz", true},
	} {
		for isolation, instance := range isolations() {
			t.Run(name+"/"+isolation, func(t *testing.T) {
				t.Parallel()
				p := inProcess(t)
				p.instance = instance
				p.source(serving(tt.listener))
				for range 2 {
					p.start(byHTTP, "", httpGreeting, streams)
					unread := 0
					r := p.receive(func(r *received) int {
						n := len(r.body) - unread
						if n < wire.StreamWindow/4 {
							return 0
						}
						unread = len(r.body)
						return n
					})
					if len(r.body) != tt.bytes || !strings.HasPrefix(string(r.body), tt.begins) || r.ended != tt.streamed {
						t.Errorf("got %d bytes, ended %v, outcome %d %.300s; want %d bytes that begin with %s, ended %v", len(r.body), r.ended, r.done.Outcome, r.done.Body, tt.bytes, tt.begins, tt.streamed)
					}
					if tt.streamed && (r.head.Status != 201 || len(r.head.Headers) != 1 || r.head.Headers[0] != [2]string{"x-a", "1"}) {
						t.Errorf("got the head %+v, want 201 and x-a", r.head)
					}
					if r.most > 0 {
						t.Errorf("got %d bytes beyond the credit, want 0", r.most)
					}
				}
			})
		}
	}
}

// TestServersNoticeThatTheCallerLeft: the listeners of close run, and the activation ends.
func TestServersNoticeThatTheCallerLeft(t *testing.T) {
	t.Parallel()
	for name, listener := range map[string]string{
		"before the answer": `req.on("aborted", () => console.log("aborted")); res.on("close", () => console.log("close", res.writableFinished)); req.on("error", (e) => console.log(e.code))`,
		"while it streams":  `res.on("close", () => console.log("close", res.writableFinished)); req.on("aborted", () => console.log("aborted")).on("error", (e) => console.log(e.code)); res.write("x")`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source(serving(listener))
			p.start(byHTTP, "", httpGreeting, streams)
			go func() {
				time.Sleep(20 * time.Millisecond) // the listener has run, or runs later: both are fine
				p.write(wire.AppendSignal(nil, wire.KindAbort))
			}()
			r := p.receive(func(*received) int { return 0 })
			var e api.ActivationError
			_ = json.Unmarshal(r.done.Body, &e)
			if got := strings.Join(r.logs, ", "); !strings.Contains(got, "close false") || !strings.Contains(got, "aborted") || !strings.Contains(got, "ECONNRESET") || !strings.Contains(e.Message, "The client left") {
				t.Errorf("got the log %q and the error %q, want the events and that the client left", got, e.Message)
			}
		})
	}
}

// TestServersAreNotFree: a program without node:http does not evaluate it.
func TestServersAreNotFree(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"export default { fetch: () => new Response() }":                                           false,
		"import stream from 'node:stream'; export default { fetch: () => new Response(), stream }": false,
		"import http from 'node:http'; export default http.createServer()":                         true,
	} {
		r := newRealm(loaded(t, source), newControl(), nil)
		if err := r.evaluate(); err != nil {
			t.Fatalf("evaluate: %v", err)
		}
		if got := r.node[serverModule] != nil; got != want {
			t.Errorf("%s: got the module of servers %v, want %v", source, got, want)
		}
	}
}
