package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/browsertest"
)

// script has a page try what an administrator can do, at the URL api, and shows the results.
const script = `<script>(async () => {
	const results = {};
	const attempt = async (name, f) => { try { results[name] = await f(); } catch (e) { results[name] = "refused: " + e.name; } };
	await attempt("read", async () => (await fetch(API + PATH)).status);
	await attempt("blind", async () => { await fetch(API + PATH, { method: "POST", mode: "no-cors", body: '{"name":"evil"}' }); return "sent"; });
	await attempt("write", async () => (await fetch(API + PATH, { method: "POST", headers: { "content-type": "application/json" }, body: '{"name":"evil"}' })).status);
	await attempt("storage", async () => { localStorage.setItem("a", "b"); return "stored"; });
	await attempt("worker", async () => { await navigator.serviceWorker.register("sw.js"); return "registered"; });
	await attempt("own", async () => (await fetch("own", { method: "PUT", headers: { "content-type": "application/json" }, body: "{}" })).status);
	document.title = JSON.stringify(results);
})()</script>`

// attempts opens a page and returns what its script achieved.
func attempts(ctx context.Context, t *testing.T, url string) map[string]any {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("Navigate: %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // a page sends no notice of its title
		title, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.title"))
		var results map[string]any
		if err == nil && json.Unmarshal([]byte(title), &results) == nil {
			return results
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got title %q, error %v, want the results of its script", url, title, err)
		}
	}
}

// Without API keys every request is the administrator's, so a page must not send one: neither a
// page that a function reflects on the server's own origin, nor one of another port.
func TestPagesDoNotBecomeAdministrators(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Open(t, 2*time.Minute)
	h := start(t)
	h.create(t)
	h.deploy(t, "x", `{"cors":{"allow_origins":["*"],"allow_methods":["PUT"],"allow_headers":["content-type"]}}`)
	path := strings.TrimSuffix(h.fn(""), "/hello")
	page := strings.NewReplacer("API", `"`+h.URL+`"`, "PATH", `"`+path+`"`).Replace(script)
	h.engine.invoke = func(_ context.Context, inv api.Invocation) (*api.Outcome, error) {
		var e webEvent
		_ = json.Unmarshal(inv.Event, &e) // an event without a path is answered, too
		if e.Path != "/page" {
			return success(`{"statusCode":200,"body":"ok"}`), nil
		}
		body, err := json.Marshal(page)
		return success(fmt.Sprintf(`{"statusCode":200,"headers":{"content-type":"text/html"},"body":%s}`, body)), err
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, page)
	}))
	t.Cleanup(elsewhere.Close)
	for name, url := range map[string]string{"the page of a function": h.URL + h.web("/page"), "a page of another port": elsewhere.URL} {
		results := attempts(ctx, t, url)
		for _, what := range []string{"read", "write"} {
			if got := fmt.Sprint(results[what]); !strings.HasPrefix(got, "refused") {
				t.Errorf("%s, %s: got %s, want a refusal", name, what, got)
			}
		}
		if a := h.call(t, "GET", path+"/evil", ""); a.status != 404 {
			t.Errorf("%s: got %d for the function that it tried to create, want 404", name, a.status)
		}
		if url == elsewhere.URL {
			continue
		}
		for what, want := range map[string]string{"storage": "refused: SecurityError", "worker": "refused: SecurityError", "own": "200"} {
			if got := fmt.Sprint(results[what]); got != want {
				t.Errorf("%s, %s: got %s, want %s", name, what, got, want)
			}
		}
	}
	// The documentation of the same server still works, its form included.
	if err := chromedp.Do(ctx, chromedp.Navigate(h.URL+"/docs/reference")); err != nil {
		t.Fatalf("Navigate: %v", err)
	}
	status, err := chromedp.Run(ctx, chromedp.Evaluate[int](`fetch("/v1/limits").then((r) => r.status)`, chromedp.EvalAwaitPromise))
	if err != nil || status != 200 {
		t.Errorf("a fetch of the page of the documentation: got %d, error %v, want 200", status, err)
	}
}
