package examples

import (
	"io"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

func testReact(t *testing.T, server *soustest.Server) {
	url := deployPackages(t, server, "react-ssr")
	const placeholder, review = "<p>Loading the reviews …</p>", "<li><b>Grace</b>: <!-- -->5 &lt; 6 cups, but still.</li>"

	// The reviews take 200 ms: on a busy machine the first part may be read too late to be alone.
	first, rest := "", ""
	for try := 0; try < 20 && !strings.Contains(rest, review); try++ {
		first, rest = readParts(t, url)
	}
	if !strings.Contains(first, "&lt;Ada&gt;") || !strings.Contains(first, placeholder) || strings.Contains(first, "Grace") {
		t.Errorf("first part: got %q, want the escaped name and the placeholder, without the reviews", first)
	}
	if !strings.Contains(rest, review) {
		t.Errorf("rest: got %q, want %q in it", rest, review)
	}

	whole := call{method: "GET", header: map[string]string{"User-Agent": "Examplebot/1.0"}}.send(t, url)
	defer func() { _ = whole.Body.Close() }()
	page, err := io.ReadAll(whole.Body)
	if err != nil || !strings.Contains(string(page), review) || strings.Contains(string(page), placeholder) {
		t.Errorf("GET of a crawler: got error %v and %q, want a page with %q and without a placeholder", err, page, review)
	}
}

// readParts returns the first part of the page as it arrives, and the rest.
func readParts(t *testing.T, url string) (first, rest string) {
	t.Helper()
	res := call{method: "GET", path: "?name=%3CAda%3E"}.send(t, url)
	defer func() { _ = res.Body.Close() }()
	if got, want := res.Header.Get("Content-Type"), "text/html; charset=utf-8"; res.StatusCode != 200 || got != want {
		t.Errorf("GET: got status %d and type %q, want 200 and %q", res.StatusCode, got, want)
	}
	part := make([]byte, 64<<10)
	n, err := res.Body.Read(part)
	if err != nil {
		t.Fatalf("first part: got error %v, want a part of the page", err)
	}
	remaining, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("rest: got error %v, want the end of the page", err)
	}
	return string(part[:n]), string(remaining)
}
