package docsite

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/gzip"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/docs"
)

var (
	attribute = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]*)"`)
)

func built(t *testing.T, pages fs.FS) *builtSite {
	t.Helper()
	site, err := New(pages).built()
	if err != nil {
		t.Fatalf("New(pages).built() = %v, want no error", err)
	}
	return site
}

// get sends a request to a site.
func get(t *testing.T, s *Site, at string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if err := s.serve(w, r); err != nil {
		t.Fatalf("GET %s: got error %v, want none", at, err)
	}
	return w
}

func TestMenuHasEveryPageOnce(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, s := range menu {
		for _, file := range s.files {
			count[file]++
		}
	}
	err := fs.WalkDir(docs.Pages, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && count[file] != 1 {
			t.Errorf("%s is in the menu %d times, want once: menu.go lists the pages", file, count[file])
		}
		return err
	})
	if err != nil {
		t.Errorf("WalkDir = %v, want no error", err)
	}
}

// TestLinksResolve follows every link of every page, with its anchor.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	site := built(t, docs.Pages)
	anchors := map[string][]string{}
	for at, d := range site.documents {
		for _, m := range identity.FindAllSubmatch(d.raw, -1) {
			anchors[at] = append(anchors[at], string(m[1]))
		}
	}
	links := 0
	for at, d := range site.documents {
		if !strings.HasPrefix(d.contentType, "text/html") {
			continue
		}
		base := &url.URL{Path: "/docs/" + at}
		for _, m := range attribute.FindAllSubmatch(d.raw, -1) {
			link, err := url.Parse(strings.ReplaceAll(string(m[1]), "&amp;", "&"))
			if err != nil {
				t.Errorf("/docs/%s: link %q = %v, want a URL", at, m[1], err)
				continue
			}
			if file, ours := strings.CutPrefix(string(m[1]), repository); ours {
				file, _, _ = strings.Cut(file, "#")
				if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
					t.Errorf("/docs/%s: the link to %s of the repository = %v, want a file", at, file, err)
				}
			}
			if link.IsAbs() {
				continue
			}
			links++
			full := base.ResolveReference(link)
			target := strings.TrimPrefix(full.Path, "/docs/")
			if _, exists := site.documents[target]; !exists && target != "reference" {
				t.Errorf("/docs/%s: the link %q leads to %s, want a page", at, m[1], full.Path)
			} else if full.Fragment != "" && !slices.Contains(anchors[target], full.Fragment) {
				t.Errorf("/docs/%s: the link %q has the anchor %q, want one of %q", at, m[1], full.Fragment, anchors[target])
			}
		}
	}
	if links < 1000 {
		t.Errorf("got %d links, want at least 1000: every page has a menu", links)
	}
}

func TestSiteLink(t *testing.T) {
	t.Parallel()
	known := func(file string) bool {
		return slices.Contains([]string{"README.md", "queue.md", "decisions/README.md", "decisions/a.md"}, file)
	}
	for _, tt := range []struct{ from, link, want string }{
		{"api.md", "queue.md", "queue"},
		{"api.md", "queue.md#retry", "queue#retry"},
		{"api.md", "#here", "#here"},
		{"api.md", "README.md", "./"},
		{"api.md", "decisions/README.md", "decisions/"},
		{"api.md", "decisions", "decisions/"},
		{"decisions/a.md", "../queue.md", "../queue"},
		{"decisions/a.md", "README.md", "../decisions/"},
		{"api.md", "../examples/hello", repository + "examples/hello"},
		{"api.md", "../CONTRIBUTING.md#tests", repository + "CONTRIBUTING.md#tests"},
		{"api.md", "https://example.org/x.md", "https://example.org/x.md"},
	} {
		if got := siteLink(tt.from, tt.link, known); got != tt.want {
			t.Errorf("siteLink(%s, %s) = %q, want %q", tt.from, tt.link, got, tt.want)
		}
	}
}

func TestHeadingsHaveTheIDsOfTheRepository(t *testing.T) {
	t.Parallel()
	const text = "# T\n\n## `cs.kv` and _more_: a, b\n\n## Same\n\n## Same\n\n<script>alert(1)</script>\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
	p, err := render("x.md", []byte(text), func(string) string { return "" })
	if err != nil {
		t.Fatalf("render = %v, want no error", err)
	}
	var ids []string
	for _, h := range p.headings {
		ids = append(ids, h.ID)
	}
	if want := []string{"cskv-and-more-a-b", "same", "same-1"}; !slices.Equal(ids, want) {
		t.Errorf("ids = %q, want %q", ids, want)
	}
	for _, bad := range []string{"<script", "style="} {
		if strings.Contains(string(p.body), bad) {
			t.Errorf("the page has %q, want it left out: %s", bad, p.body)
		}
	}
}

// The name of a file says little on the site; other texts of links stay.
func TestLinksHaveTheTitlesOfPages(t *testing.T) {
	t.Parallel()
	site := built(t, fstest.MapFS{
		"queue.md":             {Data: []byte("# Job queues\n\n[start.md](start.md#a), [README](README.md), [start](start.md), [go.mod](../go.mod)\n")},
		"start.md":             {Data: []byte("# Start & go\n\n[no-raft.md](decisions/no-raft.md)\n")},
		"README.md":            {Data: []byte("# Home\n")},
		"decisions/no-raft.md": {Data: []byte("# No Raft\n\n[queue.md](../queue.md)\n")},
	})
	for at, want := range map[string]string{
		"queue":             `<a href="start#a">Start &amp; go</a>, <a href="./">README</a>, <a href="start">start</a>, <a href="` + repository + `go.mod">go.mod</a>`,
		"start":             `<a href="decisions/no-raft">No Raft</a>`,
		"decisions/no-raft": `<a href="../queue">Job queues</a>`,
	} {
		if got := string(site.documents[at].raw); !strings.Contains(got, want) {
			t.Errorf("/docs/%s = %s, want %s in it", at, got, want)
		}
	}
}

// The policy of the site refuses scripts and styles in a page.
func TestPagesObeyThePolicy(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`<style|<script>|\sstyle=|\son[a-z]+=|src="http|<link[^>]*href="http`)
	for at, d := range built(t, docs.Pages).documents {
		if found := inline.Find(d.raw); strings.HasPrefix(d.contentType, "text/html") && found != nil {
			t.Errorf("/docs/%s has %q, want neither inline code nor files of other servers", at, found)
		}
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	s := New(docs.Pages)
	plain := get(t, s, "/docs/queue")
	if plain.Code != http.StatusOK || !strings.Contains(plain.Body.String(), "<h1 id=\"job-queues\">") {
		t.Fatalf("GET /docs/queue = %d %.200s, want 200 and the heading", plain.Code, plain.Body)
	}
	if got := plain.Header().Get("Content-Security-Policy"); got != policy {
		t.Errorf("policy = %q, want %q", got, policy)
	}
	zipped := get(t, s, "/docs/queue", "Accept-Encoding", "br, gzip;q=0.5")
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatalf("NewReader = %v, want a gzip body", err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(r); err != nil || text.String() != plain.Body.String() {
		t.Errorf("the gzip body has %d bytes, error %v; want the %d of the plain one", text.Len(), err, plain.Body.Len())
	}
	if plain.Header().Get("ETag") == zipped.Header().Get("ETag") {
		t.Errorf("both forms have the ETag %s, want two", plain.Header().Get("ETag"))
	}
	if got := get(t, s, "/docs/queue", "If-None-Match", plain.Header().Get("ETag")).Code; got != http.StatusNotModified {
		t.Errorf("GET with If-None-Match = %d, want 304", got)
	}
	if got := get(t, s, "/docs/queue", "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"); got != "" {
		t.Errorf("Content-Encoding = %q to a client that refuses gzip, want none", got)
	}
}

func TestServeOtherAddresses(t *testing.T) {
	t.Parallel()
	s := New(docs.Pages)
	for _, tt := range []struct {
		at, location string
		status       int
	}{
		{"/docs/", "", 200},
		{"/docs/decisions/", "", 200},
		{"/docs/decisions", "/docs/decisions/", 308},
		{"/docs/queue.md", "/docs/queue", 308},
		{"/docs/queue/", "/docs/queue", 308},
		{"/docs/README.md", "/docs/", 308},
		{"/docs/decisions/no-raft.md", "/docs/decisions/no-raft", 308},
		{"/docs/nothing", "", 404},
		{"/docs/a/b/c", "", 404},
		{"/docs/../go.mod", "", 404},
		{"/docs//evil.example/queue.md", "", 404},
	} {
		w := get(t, s, tt.at)
		location := w.Header().Get("Location")
		if location != "" {
			to, err := url.Parse(location)
			if err != nil || to.Host != "" || path.IsAbs(to.Path) {
				t.Errorf("GET %s: Location %q, want a relative one", tt.at, location)
				continue
			}
			location = (&url.URL{Path: tt.at}).ResolveReference(to).Path
		}
		if w.Code != tt.status || location != tt.location {
			t.Errorf("GET %s = %d %q, want %d %q", tt.at, w.Code, location, tt.status, tt.location)
		}
	}
	missing := get(t, s, "/docs/a/b/c").Body.String()
	if !strings.Contains(missing, `href="../../assets/site.css"`) {
		t.Errorf("404 page of /docs/a/b/c: got %.400s, want a link to ../../assets/site.css", missing)
	}
}

// A page for an unknown path would grow with the path, so there is one for a few depths only.
func TestUnknownPathsAreCheap(t *testing.T) {
	t.Parallel()
	s := New(docs.Pages)
	for _, slashes := range []int{4, 60_000} {
		w := httptest.NewRecorder()
		err := s.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/docs/"+strings.Repeat("/", slashes), nil))
		if api.ErrorCode(err) != api.CodeRouteNotFound || len(err.Error()) > 200 || w.Body.Len() > 0 {
			t.Errorf("%d slashes: got error %.200v and %d bytes, want a short %s", slashes, err, w.Body.Len(), api.CodeRouteNotFound)
		}
	}
}

func TestSearchIndex(t *testing.T) {
	t.Parallel()
	site := built(t, fstest.MapFS{"queue.md": {Data: []byte("# Queues\n\nFirst.\n\n## Retry\n\nWait `1s`,\nthen run.\n")}})
	var got []found
	if err := json.Unmarshal(site.documents["search.json"].raw, &got); err != nil {
		t.Fatalf("Unmarshal(search.json) = %v, want no error", err)
	}
	want := []found{
		{Path: "queue#queues", Page: "Queues", Title: "Queues", Text: "First."},
		{Path: "queue#retry", Page: "Queues", Title: "Retry", Text: "Wait 1s, then run."},
	}
	if !slices.Equal(got, want) {
		t.Errorf("search.json = %v, want %v", got, want)
	}
}
