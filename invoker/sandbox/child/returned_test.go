package child

import (
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

func TestReturnedResponse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source string
		want   string
	}{
		"text": {
			source: `new Response("<p>", { status: 201, headers: { "content-type": "text/html", "x-a": "1" } })`,
			want:   `{"statusCode":201,"headers":{"content-type":"text/html","x-a":"1"},"body":"<p>"}`,
		},
		"json": {
			source: `Response.json({ a: 1 })`,
			want:   `{"statusCode":200,"headers":{"content-type":"application/json"},"body":"{\"a\":1}"}`,
		},
		"bytes": {
			source: `new Response(new Uint8Array([255, 0]))`,
			want:   `{"statusCode":200,"headers":{},"body":"/wA=","isBase64Encoded":true}`,
		},
		"invalid text": {
			source: `new Response(new Uint8Array([255]), { headers: { "content-type": "text/plain" } })`,
			want:   `{"statusCode":200,"headers":{"content-type":"text/plain"},"body":"/w==","isBase64Encoded":true}`,
		},
		"another charset": {
			source: `new Response("a", { headers: { "content-type": "text/plain; charset=latin1" } })`,
			want:   `{"statusCode":200,"headers":{"content-type":"text/plain; charset=latin1"},"body":"YQ==","isBase64Encoded":true}`,
		},
		"stream": {
			source: `new Response(ReadableStream.from([new TextEncoder().encode("a"), new TextEncoder().encode("b")]), { headers: [["content-type", "text/event-stream"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x", "1"], ["x", "2"]] })`,
			want:   `{"statusCode":200,"headers":{"content-type":"text/event-stream","x":"1, 2"},"cookies":["a=1","b=2"],"body":"ab"}`,
		},
		"no body":          {source: `new Response(null, { status: 204 })`, want: `{"statusCode":204,"headers":{}}`},
		"redirect":         {source: `Response.redirect("https://a.example/", 303)`, want: `{"statusCode":303,"headers":{"location":"https://a.example/"}}`},
		"promise":          {source: `Promise.resolve(new Response(null))`, want: `{"statusCode":200,"headers":{}}`},
		"not the result":   {source: `({ response: new Response("a") })`, want: `{"response":{}}`},
		"fetched response": {source: `fetch("https://a.example/json")`, want: `{"statusCode":201,"headers":{"x-two":"1, 2"},"cookies":["a=1","b=2"],"body":"eyJhIjpbMV19","isBase64Encoded":true}`},
	} {
		for isolation, instance := range isolations() {
			t.Run(name+"/"+isolation, func(t *testing.T) {
				t.Parallel()
				p := inProcess(t)
				p.host, p.instance = answer, instance
				p.source("export default () => " + tt.source)
				for range 2 {
					if got := p.value("null"); got != tt.want {
						t.Errorf("got %s, want %s", got, tt.want)
					}
				}
			})
		}
	}
}

func TestReturnedResponseFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source string
		want   api.ActivationError // Message: a part of it
	}{
		"error":         {`Response.error()`, api.ActivationError{Type: api.ErrResultInvalid, Message: "Response.error()"}},
		"used":          {`(async () => { const r = new Response("a"); await r.text(); return r })()`, api.ActivationError{Type: api.ErrException, Message: "already been read"}},
		"locked":        {`(() => { const r = new Response("a"); r.body.getReader(); return r })()`, api.ActivationError{Type: api.ErrException, Message: "its stream has a reader"}},
		"failed stream": {`new Response(new ReadableStream({ pull() { throw new Error("broken") } }))`, api.ActivationError{Type: api.ErrException, Message: "broken"}},
		"too long":      {`new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1 << 20)) } }))`, api.ActivationError{Type: api.ErrResultTooLarge, Message: "6 MiB"}},
		"never settled": {`new Response(new ReadableStream({}))`, api.ActivationError{Type: api.ErrUnsettled, Message: "never settle"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := inProcess(t).source("export default () => " + tt.source).invoke("null").failure(t)
			if got.Type != tt.want.Type || !strings.Contains(got.Message, tt.want.Message) {
				t.Errorf("got %s: %s, want %s: %s", got.Type, got.Message, tt.want.Type, tt.want.Message)
			}
		})
	}
}

// TestEndlessStreams: a stream that never ends is read until the deadline, whether it waits
// or not.
func TestEndlessStreams(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"text":     `new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(0)) } })).text()`,
		"returned": `new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(0)) } }))`,
		"fetch":    `fetch("https://a.example/", { method: "POST", duplex: "half", body: new ReadableStream({ pull(c) { return new Promise((r) => setTimeout(() => { c.enqueue(new Uint8Array(1)); r() }, 1)) } }) })`,
		"waiting":  `new Response(new ReadableStream({ start() { setInterval(() => {}, 10) } })).text()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := inProcess(t).source("export default () => " + source)
			p.begin("null", 200*time.Millisecond)
			if o := p.finish(); o.Outcome != wire.OutcomeTimeout {
				t.Errorf("got outcome %d: %s, want a timeout", o.Outcome, o.Body)
			}
		})
	}
}
