package examples

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

func testReact(t *testing.T, server *soustest.Server) {
	url := deployPackages(t, server, "react-ssr")
	const placeholder, review = "<p>Loading the reviews …</p>", "<li><b>Grace</b>: <!-- -->5 &lt; 6 cups, but still.</li>"

	res := call{method: "GET", path: "?name=%3CAda%3E"}.send(t, url)
	defer func() { _ = res.Body.Close() }()
	if got, want := res.Header.Get("Content-Type"), "text/html; charset=utf-8"; res.StatusCode != 200 || got != want {
		t.Errorf("GET: got status %d and type %q, want 200 and %q", res.StatusCode, got, want)
	}
	buffered := bufio.NewReader(res.Body)
	first := make([]byte, 64<<10)
	n, err := buffered.Read(first)
	if page := string(first[:n]); err != nil || !strings.Contains(page, "&lt;Ada&gt;") || !strings.Contains(page, placeholder) || strings.Contains(page, "Grace") {
		t.Errorf("first part: got error %v and %q, want the escaped name and the placeholder, without the reviews", err, page)
	}
	rest, err := io.ReadAll(buffered)
	if err != nil || !strings.Contains(string(rest), review) {
		t.Errorf("rest: got error %v and %q, want %q in it", err, rest, review)
	}

	whole := call{method: "GET", header: map[string]string{"User-Agent": "Examplebot/1.0"}}.send(t, url)
	defer func() { _ = whole.Body.Close() }()
	page, err := io.ReadAll(whole.Body)
	if err != nil || !strings.Contains(string(page), review) || strings.Contains(string(page), placeholder) {
		t.Errorf("GET of a crawler: got error %v and %q, want a page with %q and without a placeholder", err, page, review)
	}
}
