package invoker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// socketServer is a server of sockets, one behaviour for each path.
type socketServer struct {
	*httptest.Server

	ends chan string  // how each socket ended, as the server sees it
	sent atomic.Int64 // bytes of /flood
}

func newSocketServer(t *testing.T) *socketServer {
	t.Helper()
	s := &socketServer{ends: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/none" {
			http.Redirect(w, r, "/echo", http.StatusFound)
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"second"}})
		if err != nil {
			return // the request is no handshake, and was answered
		}
		defer func() { _ = c.CloseNow() }()
		c.SetReadLimit(10 << 20)
		s.serve(r.Context(), c, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *socketServer) serve(ctx context.Context, c *websocket.Conn, path string) {
	switch path {
	case "/bye":
		_ = c.Close(4001, "that is all")
		return
	case "/dies":
		return
	case "/latin1":
		_ = c.Write(ctx, websocket.MessageText, []byte("caf\xe9"))
	case "/big":
		_ = c.Write(ctx, websocket.MessageBinary, make([]byte, 6<<20+1))
	case "/flood":
		part := make([]byte, 64<<10)
		for c.Write(ctx, websocket.MessageBinary, part) == nil {
			s.sent.Add(int64(len(part)))
		}
		s.ends <- "lost"
		return
	}
	for {
		kind, message, err := c.Read(ctx)
		if err != nil {
			end := "lost"
			if code := websocket.CloseStatus(err); code >= 0 {
				end = fmt.Sprint(int(code))
			}
			s.ends <- end
			return
		}
		if err := c.Write(ctx, kind, message); err != nil {
			return
		}
	}
}

// prelude is what the functions of the test share: next waits for an event.
const prelude = `
const next = (s, type) => new Promise((resolve) => s.addEventListener(type, resolve, { once: true }));
const events = (s) => new Promise((resolve) => {
  const all = [];
  for (const type of ["open", "message", "error", "close"]) s.addEventListener(type, (e) => {
    all.push(type === "close" ? [type, e.code, e.reason, e.wasClean] : type === "error" ? [type, e.message] : type);
    if (type === "close") resolve(all);
  });
});
export default async (base) => {
  const open = async (path, ...args) => { const s = new WebSocket(base + path, ...args); s.binaryType = "arraybuffer"; await next(s, "open"); return s; };
`

// TestWebSocket: a function is a client of a server that this project did not make.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.TimeoutMS = 8000
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	for name, c := range map[string]struct {
		source string
		want   string // the result, or part of the error
		end    string // of the socket, as the server sees it
	}{
		"echo": {`const s = await open("/echo"), got = [];
			for (const m of ["text ü", new Uint8Array([1, 2]), new Uint8Array([3]).buffer, new Blob(["blob"])]) {
				s.send(m);
				const { data, origin } = await next(s, "message");
				got.push(typeof data === "string" ? data : [...new Uint8Array(data)], origin === base.replace("http", "ws"));
			}
			s.binaryType = "blob";
			s.send(new Uint8Array([4]));
			got.push((await next(s, "message")).data instanceof Blob);
			while (s.bufferedAmount > 0) await new Promise((f) => setTimeout(f, 1)); // the echo may come before the reply to send
			got.push(s.bufferedAmount, s.url === base.replace("http", "ws") + "/echo");
			s.close(1000, "done");
			const { code, reason, wasClean } = await next(s, "close");
			return [...got, code, reason, wasClean, s.readyState];`,
			`["text ü",true,[1,2],true,[3],true,[98,108,111,98],true,true,0,true,1000,"done",true,3]`, "1000"},
		"order": {`const s = await open("/echo"), got = [];
			for (let i = 0; i < 100; i++) s.send(String(i));
			const all = new Promise((f) => { s.onmessage = (e) => { if (got.push(Number(e.data)) === 100) f(); }; });
			const waits = s.bufferedAmount > 0;
			await all;
			return [waits, got.every((n, i) => n === i)];`, `[true,true]`, "lost"},
		"large":         {`const s = await open("/echo"); s.send(new Uint8Array(6 << 20)); return (await next(s, "message")).data.byteLength;`, `6291456`, "lost"},
		"protocol":      {`const s = await open("/echo", ["first", "second"]); return [s.protocol, s.extensions];`, `["second",""]`, "lost"},
		"server closes": {`return events(new WebSocket(base + "/bye"));`, `["open",["close",4001,"that is all",true]]`, ""},
		"server dies":   {`return events(new WebSocket(base + "/dies"));`, `["open",["error","WebSocket: the connection was lost"],["close",1006,"",false]]`, ""},
		"too large":     {`return events(new WebSocket(base + "/big"));`, `["open",["error","WebSocket: a message is larger than 6 MiB"],["close",1006,"",false]]`, "1009"},
		"no handshake":  {`return events(new WebSocket(base + "/none"));`, `[["error","the server answered the WebSocket handshake with status 302"],["close",1006,"",false]]`, ""},
		"closed at once": {`const s = new WebSocket(base + "/echo"), all = events(s); s.close();
			return [s.readyState, await all];`, `[2,[["error","WebSocket was closed before it was open"],["close",1006,"",false]]]`, ""},
		"messages before the close": {`const s = await open("/echo"), all = events(s);
			s.send("a"); s.send("b"); s.close(); s.send("c");
			return [await all, s.bufferedAmount];`, `[[["close",1005,"",true]],1]`, "1005"},
		"the activation ends": {`await open("/echo"); return 1;`, `1`, "lost"},
		"thrown":              {`await open("/echo"); throw new Error("oops");`, `oops`, "lost"},
		"killed":              {`await open("/echo"); for (;;);`, `did not finish before its deadline`, "lost"},
		"a slow reader": {`const s = await open("/flood"); await next(s, "message");
			const end = Date.now() + 300; while (Date.now() < end); return 1;`, `1`, "lost"},
		"too many": {`const all = []; for (let i = 0; i < 32; i++) all.push(await open("/echo"));
			return [(await events(new WebSocket(base + "/echo")))[0][0], all.length];`, `["error",32]`, "lost"},
		"closed before open, often": {`for (let i = 0; i < 33; i++) { const s = new WebSocket(base + "/echo"), all = events(s); s.close(); await all; }
			return (await events(new WebSocket(base + "/bye")))[0];`, `"open"`, ""},
		"a message that is too large to send": {`for (let i = 0; i < 33; i++) { const s = await open("/echo"), all = events(s); s.send(new Uint8Array((6 << 20) + 1)); await all; }
			return (await events(new WebSocket(base + "/bye")))[0];`, `"open"`, ""},
		"a text that is not UTF-8": {`return events(new WebSocket(base + "/latin1"));`, `["open",["error","WebSocket: a text message is not UTF-8"],["close",1006,"",false]]`, "1007"},
		"no common protocol":       {`return events(new WebSocket(base + "/echo", "first"));`, `[["error","the server chose none of the requested WebSocket protocols"],["close",1006,"",false]]`, "lost"},
		"errors": {`const of = (f) => { try { f(); return "no error"; } catch (e) { return e.name; } };
			const s = await open("/echo");
			return [of(() => new WebSocket("ftp://a")), of(() => new WebSocket(base + "/#x")), of(() => new WebSocket(base, "a b")), of(() => new WebSocket(base, ["a", "a"])),
				of(() => WebSocket(base)), of(() => s.close(1001)), of(() => s.close(3000, "x".repeat(124))), of(() => new WebSocket(base).send("x")), WebSocket.CLOSED];`,
			`["SyntaxError","SyntaxError","SyntaxError","SyntaxError","TypeError","InvalidAccessError","SyntaxError","InvalidStateError",3]`, "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSocketServer(t)
			function := "sockets" + strings.ReplaceAll(name, " ", "")
			b.publish(function, prelude+c.source+"};", config)
			out := b.invoke(function, `"`+s.URL+`"`).Activation
			got := string(out.Result)
			if out.Error != nil {
				got = out.Error.Message
			}
			if got != c.want && (out.Error == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %s, %+v, want %s", got, out.Error, c.want)
			}
			if c.end == "" {
				return
			}
			select {
			case end := <-s.ends:
				if end != c.end {
					t.Errorf("the server saw the end %s, want %s", end, c.end)
				}
			case <-time.After(20 * time.Second):
				t.Error("the socket did not end at the server")
			}
			// The buffers of the sockets on both sides take some.
			if sent := s.sent.Load(); sent > 32<<20 {
				t.Errorf("got %d bytes, want a server that waits for its reader", sent)
			}
		})
	}
}

// TestKeptSocket: what an instance keeps of an earlier activation's socket reaches nothing.
func TestKeptSocket(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.Isolation = api.IsolationInstance
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	s := newSocketServer(t)
	b.publish("keeps", "let kept;"+prelude+`
		if (!kept) { kept = await open("/echo"); return "open"; }
		const ended = next(kept, "close");
		kept.send("x");
		return [(await ended).code, kept.readyState];
	};`, config)
	for _, want := range []string{`"open"`, `[1006,3]`} {
		if out := b.invoke("keeps", `"`+s.URL+`"`).Activation; string(out.Result) != want {
			t.Errorf("got %s, %+v, want %s", out.Result, out.Error, want)
		}
	}
}
