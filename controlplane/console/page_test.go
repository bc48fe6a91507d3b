package console

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/codesous/sous/api"
)

const source = "export {}; // a script"

// packed returns an archive as tools/console makes it.
func packed(t *testing.T) []byte {
	t.Helper()
	var zipped, out bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(w, source)
	if err := w.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatalf("NewWriter: %v", err)
	}
	archive := zip.NewWriter(&out)
	for name, content := range map[string]string{
		"index.json":           `{"script":"assets/main-A.js","style":"assets/main-A.css"}`,
		"assets/main-A.js.gz":  zipped.String(),
		"assets/main-A.js.zst": string(encoder.EncodeAll([]byte(source), nil)),
		"assets/main-A.css.gz": zipped.String(),
	} {
		f, err := archive.Create(name)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatalf("Create: %v", err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return out.Bytes()
}

// site returns a console with an archive, which serves pages only.
func site(t *testing.T, archive []byte) *Console {
	t.Helper()
	all, err := open(archive)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	pages, err := newPages(all)
	if err != nil {
		t.Fatalf("newPages: %v", err)
	}
	return &Console{files: all, pages: pages}
}

func get(t *testing.T, c *Console, path string, header ...string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	return w, c.page(w, r)
}

var inline = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// The page may be framed by no other, and runs the one script whose hash its policy has.
func TestPagesOfTheConsole(t *testing.T) {
	t.Parallel()
	c := site(t, packed(t))
	for path, root := range map[string]string{"/console/": "./", "/console/t_a": "./", "/console/t_a/default": "../", "/console/t_a/default/functions/hello": "../../../"} {
		w, err := get(t, c, path)
		if err != nil || w.Code != 200 {
			t.Fatalf("%s: got status %d and error %v, want 200", path, w.Code, err)
		}
		policy := w.Header().Get("Content-Security-Policy")
		found := inline.FindStringSubmatch(w.Body.String())
		if len(found) != 2 || !strings.Contains(found[1], `"`+root+`assets/main-A.js"`) || !strings.Contains(w.Body.String(), `href="`+root+`assets/main-A.css"`) {
			t.Fatalf("%s: got %s, want links that begin with %s", path, w.Body, root)
		}
		sum := sha256.Sum256([]byte(found[1]))
		for _, want := range []string{
			"default-src 'none'", "script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "' 'strict-dynamic';", "frame-ancestors 'none'",
			"base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "connect-src 'self'", "style-src 'self'",
		} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: got the policy %s, want %s in it", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || w.Header().Get("X-Frame-Options") != "DENY" || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got the headers %v, want no unsafe sources, no frames and no cache", path, w.Header())
		}
	}
	for _, path := range []string{"/console/api/v2", "/console/" + strings.Repeat("a/", maxDepth+1), "/console/assets/other.js", "/console/assets/../index.json"} {
		if _, err := get(t, c, path); api.ErrorCode(err) != api.CodeRouteNotFound {
			t.Errorf("%s: got error %v, want %s", path, err, api.CodeRouteNotFound)
		}
	}
}

func TestFilesOfTheConsole(t *testing.T) {
	t.Parallel()
	c := site(t, packed(t))
	for accepted, want := range map[string]string{"gzip, deflate, br, zstd": "zstd", "gzip": "gzip", "": "", "br": "", "zstd;q=0, gzip": "gzip"} {
		w, err := get(t, c, "/console/assets/main-A.js", "Accept-Encoding", accepted)
		if err != nil || w.Code != 200 || w.Header().Get("Content-Encoding") != want {
			t.Fatalf("Accept-Encoding %q: got status %d, encoding %q and error %v, want 200 and %q", accepted, w.Code, w.Header().Get("Content-Encoding"), err, want)
		}
		if got := unpacked(t, want, w.Body); got != source {
			t.Errorf("Accept-Encoding %q: got %q, want %q", accepted, got, source)
		}
		if cache := w.Header().Get("Cache-Control"); !strings.Contains(cache, "immutable") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("Accept-Encoding %q: got Cache-Control %q, want immutable, and nosniff", accepted, cache)
		}
	}
	// A style without Zstandard in the archive is served with gzip.
	if w, err := get(t, c, "/console/assets/main-A.css", "Accept-Encoding", "zstd, gzip"); err != nil || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("a file without Zstandard: got encoding %q and error %v, want gzip", w.Header().Get("Content-Encoding"), err)
	}
}

// unpacked returns a body without its encoding.
func unpacked(t *testing.T, encoding string, body io.Reader) string {
	t.Helper()
	var err error
	switch encoding {
	case "gzip":
		body, err = gzip.NewReader(body)
	case "zstd":
		var decoder *zstd.Decoder
		decoder, err = zstd.NewReader(body)
		if err == nil {
			defer decoder.Close()
			body = decoder
		}
	}
	if err != nil {
		t.Fatalf("NewReader: %v", err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("ReadAll: %v", err)
	}
	return string(text)
}

// A program without a console says how to get one.
func TestAbsentConsole(t *testing.T) {
	t.Parallel()
	w, err := get(t, site(t, nil), "/console/t_a/default")
	if err != nil || w.Code != 200 || !strings.Contains(w.Body.String(), "make build") || !strings.Contains(w.Body.String(), `href="../../docs/"`) {
		t.Errorf("got status %d, error %v and %s, want 200 and a page that names make build and the documentation", w.Code, err, w.Body)
	}
}

func TestDamagedArchives(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"nonsense", string(packed(t)[:100])} {
		if _, err := open([]byte(bad)); err == nil {
			t.Errorf("open(%.10q): got no error, want one", bad)
		}
	}
}
