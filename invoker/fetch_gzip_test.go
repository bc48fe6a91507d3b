package invoker_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatalf("WriteString: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return out.Bytes()
}

// newGzipServer is a server whose answers are compressed for clients that accept it.
func newGzipServer(t *testing.T) *httptest.Server {
	t.Helper()
	small, large, second := gzipped(t, `{"a":1}`), gzipped(t, strings.Repeat("x", 20<<20)), gzipped(t, "second")
	bodies := map[string][]byte{
		"/small": small, "/large": large, "/two": bytes.Join([][]byte{small, second}, nil), "/behind": append(small[:len(small):len(small)], "garbage"...),
		"/cut": small[:len(small)-5], "/broken": []byte("this is not compressed"), "/empty": nil,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Accepted", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		if r.URL.Path == "/lines" { // each line is complete when it arrives
			out := gzip.NewWriter(w)
			for line := range 3 {
				_, _ = fmt.Fprintf(out, "line %d\n", line)
				_ = out.Flush()
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			return
		}
		body := bodies[r.URL.Path]
		if r.URL.Query().Has("chunked") {
			for part := range len(body) { // of one byte
				_, _ = w.Write(body[part : part+1])
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestFetchDecompresses: a body that the server compressed arrives plain, however it is cut into
// parts, unless the script asked for an encoding by itself.
func TestFetchDecompresses(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.TimeoutMS, config.CPUMS = 60_000, 60_000
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	s := newGzipServer(t)
	for name, c := range map[string]struct{ source, want string }{
		"small": {`const r = await fetch(url + "/small");
			return [await r.json(), r.headers.get("content-encoding"), r.headers.get("content-length"), r.headers.get("x-accepted")]`, `[{"a":1},null,null,"gzip"]`},
		"small, in parts":        {`return (await fetch(url + "/small?chunked")).json()`, `{"a":1}`},
		"large":                  {`return (await (await fetch(url + "/large")).arrayBuffer()).byteLength`, `20971520`},
		"large, as a stream":     {`let n = 0; for await (const part of (await fetch(url + "/large")).body) n += part.length; return n`, `20971520`},
		"members":                {`return (await fetch(url + "/two")).text()`, `"{\"a\":1}second"`},
		"members, in parts":      {`return (await fetch(url + "/two?chunked")).text()`, `"{\"a\":1}second"`},
		"data behind the end":    {`return (await fetch(url + "/behind")).text()`, `"{\"a\":1}"`},
		"empty":                  {`return (await fetch(url + "/empty")).text()`, `""`},
		"cut":                    {`const r = await fetch(url + "/cut"); try { return await r.text() } catch (e) { return [r.status, e.code] }`, `[200,"CS_RUNTIME_FETCH_FAILED"]`},
		"cut, in parts":          {`const r = await fetch(url + "/cut?chunked"); try { return await r.text() } catch (e) { return [r.status, e.code] }`, `[200,"CS_RUNTIME_FETCH_FAILED"]`},
		"not compressed":         {`const r = await fetch(url + "/broken"); try { return await r.text() } catch (e) { return [r.status, e.code] }`, `[200,"CS_RUNTIME_FETCH_FAILED"]`},
		"an encoding of its own": {`const r = await fetch(url + "/small", { headers: { "accept-encoding": "gzip" } }); return [r.headers.get("content-encoding"), (await r.bytes())[0]]`, `["gzip",31]`},
		"a head":                 {`const r = await fetch(url + "/small", { method: "HEAD" }); return [r.headers.get("content-encoding"), await r.text()]`, `["gzip",""]`},
		"lines": {`const r = (await fetch(url + "/lines")).body.getReader(); let text = "";
			while (!text.endsWith("2\n")) text += new TextDecoder().decode((await r.read()).value);
			await r.cancel(); return text`, `"line 0\nline 1\nline 2\n"`},
		"cancelled": {`const r = await fetch(url + "/large"), reader = r.body.getReader(); const n = (await reader.read()).value.length; await reader.cancel(); return n > 0`, `true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			function := strings.NewReplacer(" ", "-", ",", "").Replace(name)
			b.publish(function, `export default async (url) => {`+c.source+`};`, config)
			a := b.invoke(function, quote(s.URL)).Activation
			if got := string(a.Result); got != c.want {
				t.Errorf("got %s %+v, want %s", got, a.Error, c.want)
			}
		})
	}
}

// TestBombsCostTheirFunction: the time to decompress a body is that of the function, and the bytes that
// count as egress are those of the network.
func TestBombsCostTheirFunction(t *testing.T) {
	t.Parallel()
	config := defaults()
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"127.0.0.1:*"}}
	config.TimeoutMS, config.CPUMS = 60_000, 500
	b := newBench(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), func(c *invoker.Config) { c.EgressAllow = local })
	s := newGzipServer(t)
	b.publish("bomb", `export default async (url) => { for (;;) for await (const part of (await fetch(url + "/large")).body); };`, config)
	a := b.invoke("bomb", quote(s.URL)).Activation
	if a.Error == nil || a.Error.Type != api.ErrCPULimit {
		t.Errorf("got %s %+v, want %s", a.Status, a.Error, api.ErrCPULimit)
	}
	if a.EgressBytes > 10<<20 {
		t.Errorf("got %d bytes of egress, want those of the compressed bodies", a.EgressBytes)
	}
}
