package invoker_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// streamer is a server whose answers arrive in parts.
type streamer struct {
	*httptest.Server

	came chan struct{} // each request to /silent that arrived
	gone chan string   // the path of each exchange that its client ended
	sent atomic.Int64  // bytes of /flood
}

func newStreamer(t *testing.T) *streamer {
	t.Helper()
	s := &streamer{came: make(chan struct{}, 1000), gone: make(chan string, 1000)}
	part := make([]byte, 64<<10)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := http.NewResponseController(w).Flush
		switch path := r.URL.Path; path {
		case "/large":
			for range 320 { // 20 MiB
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		case "/cut":
			_, _ = fmt.Fprint(w, "a part")
			_ = flush()
			panic(http.ErrAbortHandler)
		case "/flood":
			for {
				n, err := w.Write(part)
				s.sent.Add(int64(n))
				if err != nil {
					s.gone <- path
					return
				}
			}
		case "/silent":
			s.came <- struct{}{}
			<-r.Context().Done()
			s.gone <- path
		case "/arrival":
			select {
			case <-s.came:
			case <-r.Context().Done():
			}
		case "/wait":
			select {
			case path := <-s.gone:
				_, _ = fmt.Fprint(w, path)
			case <-r.Context().Done():
			}
		default:
			_, _ = fmt.Fprint(w, "data: 1\n\n")
			_ = flush()
			<-r.Context().Done()
			s.gone <- path
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// left requires that the client of an exchange goes.
func (s *streamer) left(t *testing.T, want string) {
	t.Helper()
	select {
	case path := <-s.gone:
		if path != want {
			t.Errorf("got the end of %s, want that of %s", path, want)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("got no end of the exchange of %s after 20 s, want one", want)
	}
}

// TestFetchStreams: the body of a response is read as it arrives, and its exchange ends with
// its reader, its signal or its activation.
func TestFetchStreams(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.TimeoutMS = 60_000
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	for name, c := range map[string]struct {
		source string // of a handler that gets the URL of a streamer
		want   string // its result, or part of its error
		gone   string // the path of an exchange that ends with it
	}{
		"an event": {`const r = (await fetch(url + "/events")).body.getReader();
			return new TextDecoder().decode((await r.read()).value);`, `"data: 1\n\n"`, "/events"},
		"large, in parts": {`let n = 0, most = 0;
			for await (const part of (await fetch(url + "/large")).body) { n += part.length; most = Math.max(most, part.length); }
			return [n, most <= 262144];`, `[20971520,true]`, ""},
		"large, as a whole": {`return (await (await fetch(url + "/large")).arrayBuffer()).byteLength;`, `20971520`, ""},
		"two readers": {`const r = await fetch(url + "/large"), other = r.clone();
			return (await Promise.all([r.bytes(), other.bytes()])).map((b) => b.length);`, `[20971520,20971520]`, ""},
		"with a buffer of its own": {`const r = (await fetch(url + "/large")).body.getReader({ mode: "byob" });
			return (await r.read(new Uint8Array(1000), { min: 1000 })).value.length;`, `1000`, ""},
		"cut":             {`const r = await fetch(url + "/cut"); try { return await r.text(); } catch (e) { return [e.code]; }`, `["CS_RUNTIME_FETCH_FAILED"]`, ""},
		"a kept response": {`globalThis.kept = await fetch(url + "/kept"); return 1`, `1`, "/kept"},
		"cancelled":       {`const r = await fetch(url + "/cancelled"); await r.body.cancel(); return (await fetch(url + "/wait")).text();`, `"/cancelled"`, ""},
		"aborted": {`const stop = new AbortController(), r = await fetch(url + "/aborted", { signal: stop.signal });
			const reader = r.body.getReader(); await reader.read();
			const waits = reader.read().catch((e) => e.name);
			stop.abort();
			return [await waits, await (await fetch(url + "/wait")).text()];`, `["AbortError","/aborted"]`, ""},
		"aborted before the answer": {`for (let i = 0; i < 70; i++) {
				const stop = new AbortController(), waits = fetch(url + "/silent", { signal: stop.signal }).catch((e) => e.name);
				stop.abort();
				if (await waits !== "AbortError") return i;
			}
			// The signal may abort each of these before it is sent. This one has arrived.
			const stop = new AbortController(), waits = fetch(url + "/silent", { signal: stop.signal }).catch((e) => e.name);
			await fetch(url + "/arrival");
			stop.abort();
			if (await waits !== "AbortError") return "the last";
			return (await fetch(url + "/wait")).text();`, `"/silent"`, ""},
		"aborted at any time": {`for (let i = 0; i < 200; i++) {
				const stop = new AbortController(), waits = fetch(url + "/events", { signal: stop.signal }).catch((e) => e.name);
				setTimeout(() => stop.abort(), i % 5);
				await waits;
				await new Promise((f) => stop.signal.aborted ? f() : stop.signal.addEventListener("abort", f));
			}
			const stop = new AbortController();
			await fetch(url + "/events", { signal: stop.signal });
			stop.abort();
			return (await fetch(url + "/wait")).text();`, `"/events"`, ""},
		"a slow reader": {`const r = (await fetch(url + "/flood")).body.getReader();
			await r.read(); await new Promise((f) => setTimeout(f, 300)); return 1;`, `1`, "/flood"},
		"thrown": {`const r = await fetch(url + "/thrown"); throw new Error("oops");`, `oops`, "/thrown"},
		"killed": {`const r = await fetch(url + "/killed"); for (;;);`, `did not finish before its deadline`, "/killed"},
		"too many": {`const all = [];
			try { for (;;) all.push(await fetch(url + "/many")); } catch (e) { return [all.length, e.code]; }`, `[32,"CS_RUNTIME_INVALID_ARGUMENT"]`, "/many"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStreamer(t)
			function := "streams" + strings.NewReplacer(" ", "", ",", "").Replace(name)
			limited := config
			if name == "killed" {
				limited.TimeoutMS = 2000
			}
			b.publish(function, "export default async (url) => {"+c.source+"};", limited)
			out := b.invoke(function, `"`+s.URL+`"`).Activation
			got := string(out.Result)
			if out.Error != nil {
				got = out.Error.Message
			}
			if got != c.want && (out.Error == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %s, %+v, want %s", got, out.Error, c.want)
			}
			if c.gone != "" {
				s.left(t, c.gone)
			}
			// What the sockets of both sides buffer is sent, too.
			if sent := s.sent.Load(); sent > 32<<20 {
				t.Errorf("got %d bytes, want a server that waits for its reader", sent)
			}
		})
	}
}

// TestKeptStream: what an instance keeps of an earlier activation's response reads nothing.
func TestKeptStream(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.Isolation = api.IsolationInstance
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	s := newStreamer(t)
	b.publish("keeps", `let kept;
		export default async (url) => {
			if (kept) return kept.read().then(() => "read", (e) => e.message);
			kept = (await fetch(url + "/events")).body.getReader();
			await kept.read();
			return "kept";
		};`, config)
	for _, want := range []string{`"kept"`, `"the response is closed"`} {
		if out := b.invoke("keeps", `"`+s.URL+`"`).Activation; string(out.Result) != want {
			t.Errorf("got %s, %+v, want %s", out.Result, out.Error, want)
		}
	}
	s.left(t, "/events")
}
