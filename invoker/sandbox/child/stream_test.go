package child

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// received is a streamed answer as the parent gets it.
type received struct {
	head  wire.StreamHead
	body  []byte
	ended bool
	done  wire.Done
	logs  []string
	most  int // bytes that were sent beyond the credit
}

// receive reads the frames of an activation. grant decides on the credit after each chunk, as
// the bytes that it returns; aborting sends an Abort when it returns a negative number.
func (p *parent) receive(grant func(r *received) int) *received {
	p.t.Helper()
	r := &received{}
	open := wire.StreamWindow
	for {
		kind, payload := p.next()
		switch kind {
		case wire.KindStream:
			if _, err := wire.ParseMessage(payload, &r.head); err != nil {
				p.t.Fatalf("wire.ParseMessage: %v", err)
			}
		case wire.KindChunk:
			r.body = append(r.body, payload...)
			open -= len(payload)
			r.most = max(r.most, -open)
			switch n := grant(r); {
			case n > 0:
				open += n
				p.write(wire.AppendCredit(nil, uint32(n)))
			case n < 0:
				p.write(wire.AppendSignal(nil, wire.KindAbort))
			}
		case wire.KindStreamEnd:
			r.ended = true
		case wire.KindAbort:
		case wire.KindLog:
			_ = wire.ParseLog(payload, func(l wire.LogRecord) { r.logs = append(r.logs, string(l.Text)) })
		case wire.KindDone:
			done, err := wire.ParseDone(payload)
			if err != nil {
				p.t.Fatalf("wire.ParseDone: %v", err)
			}
			r.done = done
			return r
		default:
			p.t.Fatalf("got frame %d, want one that a child sends during a run", kind)
		}
	}
}

const streams = wire.FlagEarly | wire.FlagStream

func TestStreamedAnswers(t *testing.T) {
	t.Parallel()
	const head = `{"statusCode":201,"headers":{"x-a":"1"}}`
	for name, tt := range map[string]struct{ source, body, result string }{
		"Response": {
			`new Response(new ReadableStream({ async pull(c) { for (const s of ["a", "b"]) { await 0; c.enqueue(new TextEncoder().encode(s)) } c.close() } }), { status: 201, headers: { "x-a": "1" } })`,
			"ab", head,
		},
		"cs.respond":  {`(async () => { const w = cs.respond(201, { "x-a": "1" }); await w.write("a"); await w.write(new Uint8Array([98])) })()`, "ab", head},
		"not awaited": {`(() => { const w = cs.respond(201, { "x-a": "1" }); w.write("a"); w.write("b"); w.close() })()`, "ab", head},
		"empty":       {`(() => { cs.respond(201, { "x-a": "1" }) })()`, "", head},
		"larger than the window": {
			`(async () => { const w = cs.respond(201, { "x-a": "1" }); const part = "x".repeat(100000); for (let i = 0; i < 20; i++) await w.write(part) })()`,
			strings.Repeat("x", 2_000_000), head,
		},
		"one large write": {`(async () => { await cs.respond(201, { "x-a": "1" }).write("y".repeat(1000000)) })()`, strings.Repeat("y", 1_000_000), head},
		"at the end":      {`(() => { cs.respond(201, { "x-a": "1" }).write("y".repeat(1000000)) })()`, strings.Repeat("y", 1_000_000), head},
	} {
		for isolation, instance := range isolations() {
			t.Run(name+"/"+isolation, func(t *testing.T) {
				t.Parallel()
				p := inProcess(t)
				p.instance = instance
				p.source("export default () => " + tt.source)
				for range 2 {
					p.start(byHTTP, "", "null", streams)
					unread := 0
					r := p.receive(func(r *received) int { // as the parent does, in steps
						n := len(r.body) - unread
						if n < wire.StreamWindow/4 {
							return 0
						}
						unread = len(r.body)
						return n
					})
					if !bytes.Equal(r.body, []byte(tt.body)) || !r.ended || string(r.done.Body) != tt.result || r.head.Status != 201 {
						t.Errorf("got %d bytes, ended %v, outcome %d %.300s, head %+v; want %d bytes and %s", len(r.body), r.ended, r.done.Outcome, r.done.Body, r.head, len(tt.body), tt.result)
					}
					if r.most > 0 {
						t.Errorf("got %d bytes beyond the credit, want 0", r.most)
					}
				}
			})
		}
	}
}

// TestLimitOfStreams: a body of api.MaxStreamBytes is complete. The write that would exceed
// it throws, sends nothing, and leaves the answer open for a smaller one.
func TestLimitOfStreams(t *testing.T) {
	t.Parallel()
	p := inProcess(t).source(`export default async () => {
		const w = cs.respond(200), part = new Uint8Array(1 << 20);
		for (let i = 0; i < 255; i++) await w.write(part);
		await w.write(part.subarray(1));
		try { await w.write("ab") } catch (e) { console.log(e.name + ": " + e.message) }
		await w.write("c");
	}`)
	p.start(byHTTP, "", "null", streams)
	total, unread := 0, 0
	r := p.receive(func(r *received) int {
		total += len(r.body)
		unread += len(r.body)
		r.body = r.body[:0]
		if unread < wire.StreamWindow/4 {
			return 0
		}
		n := unread
		unread = 0
		return n
	})
	want := []string{"RangeError: the answer is more than 256 MiB"}
	if total != api.MaxStreamBytes || !r.ended || !slices.Equal(r.logs, want) {
		t.Errorf("got %d bytes, ended %v, logs %q, outcome %d %.300s; want %d bytes, complete, and the log %q",
			total, r.ended, r.logs, r.done.Outcome, r.done.Body, api.MaxStreamBytes, want)
	}
}

// TestCollectedAnswers: a caller that takes no stream gets the whole answer as a result.
func TestCollectedAnswers(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`(async () => { const w = cs.respond(201, { "content-type": "text/plain" }); await w.write("a"); await w.write("b") })()`: `{"statusCode":201,"headers":{"content-type":"text/plain"},"body":"ab"}`,
		`new Response(ReadableStream.from([new Uint8Array([97])]), { headers: { "content-type": "text/plain" } })`:                `{"statusCode":200,"headers":{"content-type":"text/plain"},"body":"a"}`,
	} {
		if got := inProcess(t).source("export default () => " + source).value("null"); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
	p := inProcess(t).source(`export default async () => { const w = cs.respond(200); const part = new Uint8Array(1 << 20); for (;;) await w.write(part) }`)
	if got := p.invoke("null").failure(t); !strings.Contains(got.Message, "more than 6 MiB") {
		t.Errorf("an endless answer: got %s, want a RangeError", got.Message)
	}
}

// soon is a deadline that a test can wait for, in Unix milliseconds.
func soon() int64 { return time.Now().Add(500 * time.Millisecond).UnixMilli() }

// TestStreamsFail: no answer that fails is completed, unless it was before.
func TestStreamsFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ source, want string }{
		"throws in the middle":     {`async () => { await cs.respond(200).write("a"); throw new Error("broken") }`, "broken"},
		"stream fails":             {`() => new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1)); c.error(new Error("broken")) } }))`, "broken"},
		"never settles":            {`() => new Response(new ReadableStream({}))`, "never settle"},
		"no bytes":                 {`() => new Response(new ReadableStream({ pull(c) { c.enqueue("text") } }))`, "Uint8Array"},
		"write after close":        {`async () => { const w = cs.respond(200); w.close(); await w.write("a") }`, "has ended"},
		"twice":                    {`() => { cs.respond(200); cs.respond(200) }`, "begun already"},
		"a result beside":          {`() => { cs.respond(200); return 1 }`, "must return nothing"},
		"bad status":               {`() => { cs.respond(99) }`, "status"},
		"too many headers":         {`() => { cs.respond(200, Array.from({ length: 300 }, (_, i) => ["x-" + i, "1"])) }`, "256 headers"},
		"writes without an await":  {`() => { const w = cs.respond(200); const part = new Uint8Array(1 << 20); for (;;) w.write(part).catch(() => {}) }`, "timeout"},
		"awaits without an answer": {`async () => { const w = cs.respond(200); await w.write(new Uint8Array(300000)); }`, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source("export default " + tt.source)
			head := wire.InvokeHead{ActivationID: "0b1c", DeadlineMS: soon(), Attempt: 1, Flags: streams, Trigger: []byte(byHTTP)}
			p.write(wire.AppendInvoke(nil, &head, []byte("null")))
			r := p.receive(func(*received) int { return 0 }) // a client that reads nothing
			got := string(r.done.Body)
			if r.done.Outcome == wire.OutcomeTimeout {
				got = "timeout"
			}
			closed := strings.Contains(tt.source, ".close()") // the answer was complete before the failure
			if r.ended != closed || !strings.Contains(got, tt.want) || r.most > 0 {
				t.Errorf("got outcome %d %s, ended %v, %d bytes beyond the credit; want %s", r.done.Outcome, got, r.ended, r.most, tt.want)
			}
		})
	}
}

// TestCallerLeaves: the signals abort, and writes reject.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ source, log string }{
		"request.signal":  {`{ async fetch(q) { const s = q.signal; cs.respond(200).write("a"); await new Promise((r) => { s.onabort = r; setTimeout(r, 60000) }); console.log(s.aborted, s.reason.name) } }`, "true AbortError"},
		"ctx.signal":      {`async (e, c) => { const s = c.signal; cs.respond(200).write("a"); await new Promise((r) => { s.onabort = r; setTimeout(r, 60000) }); console.log(s === c.signal, s.aborted) }`, "true true"},
		"write":           {`async () => { const w = cs.respond(200); try { for (;;) await w.write(new Uint8Array(100000)) } catch (e) { console.log(e.name) } }`, "AbortError"},
		"only the signal": {`{ async fetch(q) { const s = q.signal; cs.respond(200).write("a"); await new Promise((r) => { s.onabort = r; }); console.log("gone") } }`, "gone"},
		"stream":          {`() => new Response(new ReadableStream({ async pull(c) { await new Promise((r) => setTimeout(r, 1)); c.enqueue(new Uint8Array(1)) }, cancel(e) { console.log("cancelled", e.name) } }))`, "cancelled AbortError"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source("export default " + tt.source)
			p.start(byHTTP, "", httpGreeting, streams)
			sent := false
			r := p.receive(func(*received) int {
				if sent {
					return 0
				}
				sent = true
				return -1
			})
			if r.ended || len(r.logs) != 1 || r.logs[0] != tt.log {
				t.Errorf("got ended %v, logs %q, outcome %d %s; want the line %s", r.ended, r.logs, r.done.Outcome, r.done.Body, tt.log)
			}
		})
	}
}
