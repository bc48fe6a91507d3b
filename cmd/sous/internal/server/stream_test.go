package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// streamer is a function whose answers are streamed, one for each path.
const streamer = `
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const bytes = (s) => new TextEncoder().encode(s);
export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    switch (url.pathname) {
      case "/events": {
        let n = 0;
        return new Response(new ReadableStream({
          async pull(c) { if (n) await new Promise((r) => { request.signal.onabort = r; }); c.enqueue(bytes("data: " + n++ + "\n\n")); },
        }), { headers: { "content-type": "text/event-stream" } });
      }
      case "/large": {
        const part = new Uint8Array(65536).fill(120);
        let left = Number(url.searchParams.get("parts"));
        return new Response(new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(part); else c.close(); } }), { headers: { "content-length": "3" } });
      }
      case "/throws": {
        let n = 0;
        return new Response(new ReadableStream({ async pull(c) { if (n++) throw new Error("broken"); c.enqueue(bytes("part")); } }), { headers: { "content-type": "text/plain" } });
      }
      case "/spins": {
        let n = 0;
        return new Response(new ReadableStream({ async pull(c) { if (n++) for (;;); c.enqueue(bytes("part")); } }));
      }
      case "/eats": {
        let n = 0;
        return new Response(new ReadableStream({ async pull(c) { if (n++) { const all = []; for (;;) all.push("x".repeat(1e6) + all.length); } c.enqueue(bytes("part")); } }));
      }
      case "/lines": {
        let left = 1000;
        return new Response(new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(bytes("a line\n")); else c.close(); } }), { headers: { "content-type": "text/plain" } });
      }
      case "/forever":
        return new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(65536)); } }));
      case "/silent":
        return new Response(new ReadableStream({ pull: () => sleep(60000) }));
      case "/header":
        return new Response(ReadableStream.from([bytes("a")]), { headers: { "connection": "x", "x-a": "1" } });
      case "/later":
        ctx.waitUntil(sleep(1800).then(() => console.log("later")));
        return new Response("now");
    }
    return new Response("plain");
  },
};`

func startStreamer(t *testing.T, args ...string) (s *soustest.Server, url string) {
	t.Helper()
	s = soustest.Start(t, args...)
	return s, deployStreamer(t, s)
}

// deployStreamer deploys the streamer to s with flags, and returns its URL.
func deployStreamer(t *testing.T, s *soustest.Server, flags ...string) (url string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "streamer")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	for name, text := range map[string]string{"function.js": streamer, "manifest.json": `{"limits": {"timeoutMs": 2000, "memoryMb": 64}}`} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	s.Sous(t, append([]string{"fn", "deploy", source}, flags...)...)
	return s.URL + "/v1/web/t_default/default/streamer/prod"
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatalf("http.NewRequest: %v", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestStreamedAnswers through a whole server.
func TestStreamedAnswers(t *testing.T) {
	t.Parallel()
	_, url := startStreamer(t)

	answer := get(t, url+"/large?parts=200")
	if n, err := io.Copy(io.Discard, answer.Body); n != 200<<16 || err != nil {
		t.Errorf("large: got %d bytes, %v, want %d", n, err, 200<<16)
	}
	answer = get(t, url+"/header")
	if body, err := io.ReadAll(answer.Body); string(body) != "a" || err != nil || answer.Header.Get("X-A") != "1" {
		t.Errorf("header: got %q, %v, %v, want a and X-A", body, err, answer.Header)
	}
	for _, path := range []string{"/throws", "/spins", "/eats", "/forever", "/silent"} {
		answer := get(t, url+path)
		n, err := io.Copy(io.Discard, answer.Body)
		if err == nil {
			t.Errorf("%s: got a complete answer of %d bytes, want one that is cut", path, n)
		}
	}
	began := time.Now()
	if body, err := io.ReadAll(get(t, url+"/later").Body); string(body) != "now" || err != nil {
		t.Errorf("later: got %q, %v, want now", body, err)
	}
	if took := time.Since(began); took > 1700*time.Millisecond {
		t.Errorf("later: got the answer after %v, want it before the promise", took)
	}
}

// TestClientLeaves: the function ends with its client, and its sandbox stays.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s, url := startStreamer(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	if err != nil {
		t.Fatalf("http.NewRequest: %v", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("GET: %v", err)
	}
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if line != "data: 0\n" || err != nil {
		t.Errorf("got the line %q, %v, want the first event while the function runs", line, err)
	}
	leave()
	_ = answer.Body.Close()
	id := answer.Header.Get("X-Cs-Activation-Id")
	var activation string
	storagetest.Eventually(t, func() bool {
		raw, err := io.ReadAll(get(t, s.URL+"/v1/tenants/t_default/activations/"+id).Body)
		activation = string(raw)
		return err == nil && strings.Contains(activation, `"cancelled"`)
	})
	if !strings.Contains(activation, `"stream_bytes":9,`) || !strings.Contains(activation, `"first_byte_ms":`) {
		t.Errorf("got the activation %s, want its figures", activation)
	}
}

// TestSlowReaders: clients that read nothing leave no sandbox and no goroutine behind.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	s, url := startStreamer(t)
	var conns []net.Conn
	for i := range 10 { // as many as may run at once
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatalf("net.Dial: %v", err)
		}
		defer func() { _ = conn.Close() }()
		path := strings.TrimPrefix(url, s.URL) + "/forever"
		if _, err := fmt.Fprintf(conn, "GET %s?%d HTTP/1.1\r\nHost: %s\r\n\r\n", path, i, conn.RemoteAddr()); err != nil {
			t.Fatalf("write: %v", err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns { // the time limit ends the function, and then its connection
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatalf("SetReadDeadline: %v", err)
		}
	}
	// Nothing is read before the functions have ended: that is the test.
	list := s.URL + "/v1/tenants/t_default/activations?namespace=default&function=streamer&status=timeout&limit=100"
	storagetest.Eventually(t, func() bool {
		raw, err := io.ReadAll(get(t, list).Body)
		return err == nil && strings.Count(string(raw), `"status":"timeout"`) == len(conns)
	})
	for _, conn := range conns {
		text, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.HasSuffix(string(text), "0\r\n\r\n") {
			t.Errorf("got %d bytes, %v, want a cut connection", len(text), err)
		}
	}
	if body, err := io.ReadAll(get(t, url+"/").Body); string(body) != "plain" || err != nil {
		t.Errorf("afterwards: got %q, %v, want plain", body, err)
	}
}
