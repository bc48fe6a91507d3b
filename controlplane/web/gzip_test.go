package web

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/codesous/sous/controlplane/rest"
)

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"":                              false,
		"gzip":                          true,
		"x-gzip":                        true,
		"GZIP":                          true,
		"deflate, gzip;q=1.0, *;q=0.5":  true,
		"br, deflate":                   false,
		"*":                             true,
		"*;q=0":                         false,
		"gzip;q=0":                      false,
		"gzip;q=0, *":                   false,
		"gzip;q=0.000":                  false,
		"gzip; q=0.5, identity":         false,
		"gzip; q=0.5, identity;q=0.4":   true,
		"gzip;q=high":                   false,
		"gzip;q=2":                      false,
		"identity":                      false,
		"gzipped":                       false,
		"gzip;level=9;q=0.1, br;q=0.01": true,
	} {
		if got := rest.AcceptsGzip(http.Header{"Accept-Encoding": {value}}); got != want {
			t.Errorf("Accept-Encoding %q: got %t, want %t", value, got, want)
		}
	}
	if rest.AcceptsGzip(http.Header{}) {
		t.Error("no Accept-Encoding: got true, want false")
	}
}

// TestCompress: the headers and the body of answers to a client that accepts gzip.
func TestCompress(t *testing.T) {
	t.Parallel()
	const text = "text/plain"
	long := strings.Repeat("A text that is long enough. ", 100)
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		method string
		gzip   bool
		vary   bool
	}{
		{"a text", 200, http.Header{"Content-Type": {text}}, long, "GET", true, true},
		{"an error", 500, http.Header{"Content-Type": {"application/problem+json"}}, long, "POST", true, true},
		{"a small body", 200, http.Header{"Content-Type": {text}}, long[:1023], "GET", false, false},
		{"no type", 200, http.Header{}, long, "GET", false, false},
		{"a malformed type", 200, http.Header{"Content-Type": {"text"}}, long, "GET", false, false},
		{"an image", 200, http.Header{"Content-Type": {"image/png"}}, long, "GET", false, false},
		{"bytes", 200, http.Header{"Content-Type": {"application/octet-stream"}}, long, "GET", false, false},
		{"an encoded body", 200, http.Header{"Content-Type": {text}, "Content-Encoding": {"br"}}, long, "GET", false, false},
		{"no-transform", 200, http.Header{"Content-Type": {text}, "Cache-Control": {"private, No-Transform"}}, long, "GET", false, false},
		{"a part", 206, http.Header{"Content-Type": {text}, "Content-Range": {"bytes 0-1/2"}}, long, "GET", false, false},
		{"not modified", 304, http.Header{"Content-Type": {text}}, long, "GET", false, false},
		{"HEAD", 200, http.Header{"Content-Type": {text}}, long, "HEAD", false, true},
		{"random bytes that are called a text", 200, http.Header{"Content-Type": {text}}, randomText(), "GET", false, true},
	} {
		r := response{status: c.status, body: []byte(c.body)}
		c.header["Etag"] = []string{`"v1"`}
		r.compress(c.header, &http.Request{Method: c.method, Header: http.Header{"Accept-Encoding": {"gzip"}}})
		body, etag := string(r.body), `"v1"`
		if c.gzip {
			body, etag = gunzip(t, r.body), `W/"v1"`
			if got := c.header.Get("Content-Encoding"); got != "gzip" {
				t.Errorf("%s: Content-Encoding: got %q, want gzip", c.name, got)
			}
		}
		if body != c.body || c.header.Get("Etag") != etag {
			t.Errorf("%s: got %d bytes and the ETag %s, want the %d of the function and %s", c.name, len(body), c.header.Get("Etag"), len(c.body), etag)
		}
		if got := c.header.Get("Vary") != ""; got != c.vary {
			t.Errorf("%s: got the header Vary %t, want %t", c.name, got, c.vary)
		}
	}
}

// TestVaryWithoutGzip: caches must know that the answer depends on what the client accepts,
// also if this one accepts no gzip.
func TestVaryWithoutGzip(t *testing.T) {
	t.Parallel()
	h := http.Header{"Content-Type": {"text/html"}, "Vary": {"Origin"}}
	r := response{status: http.StatusOK, body: make([]byte, 2000)}
	r.compress(h, &http.Request{Method: http.MethodGet})
	if got := strings.Join(h["Vary"], ","); got != "Origin,Accept-Encoding" || len(r.body) != 2000 || h["Content-Encoding"] != nil {
		t.Errorf("got Vary %s, %d bytes, %v, want Origin,Accept-Encoding and 2000 bytes that are not encoded", got, len(r.body), h["Content-Encoding"])
	}
}

// TestGzipStreamsAreBounded: when all compressors for streams are in use, an answer is sent
// as it is, and one that has ended makes room.
func TestGzipStreamsAreBounded(t *testing.T) {
	t.Parallel()
	a := New(nil, nil, nil, Config{})
	request := &http.Request{Header: http.Header{"Accept-Encoding": {"gzip"}}}
	open := func() streamWriter {
		w := httptest.NewRecorder()
		w.Header()["Content-Type"] = []string{"text/event-stream"}
		return a.newStreamWriter(w, request, http.StatusOK)
	}
	var first streamWriter
	for i := range maxGzipStreams {
		s := open()
		if _, ok := s.(*gzipStream); !ok {
			t.Fatalf("stream %d: got %T, want one that compresses", i, s)
		}
		first = s
	}
	if s, ok := open().(plainStream); !ok {
		t.Errorf("one more: got %T, want a plain stream", s)
	}
	first.release()
	if s, ok := open().(*gzipStream); !ok {
		t.Errorf("after an end: got %T, want one that compresses", s)
	}
}

func gunzip(t *testing.T, body []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("gzip.NewReader: %v", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("the compressed body: %v", err)
	}
	return string(text)
}

// randomText returns a body that gzip cannot make smaller.
func randomText() string {
	b := make([]byte, 4096)
	x := uint64(88172645463325252) // xorshift
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}
