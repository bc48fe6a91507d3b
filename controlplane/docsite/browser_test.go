package docsite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/codesous/sous/controlplane/browsertest"
	"github.com/codesous/sous/docs"
)

// A browser is one tab of Chromium and what went wrong in it.
type browser struct {
	ctx  context.Context
	site string // the URL of /docs/

	mu       sync.Mutex
	problems []string
}

// open starts Chromium with the site. The test is skipped where Chromium is missing.
func open(t *testing.T) *browser {
	t.Helper()
	ctx := browsertest.Open(t, time.Minute)
	s := New(docs.Pages)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.serve(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	b := &browser{ctx: ctx, site: server.URL + "/docs/"}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatalf("start Chromium: got %v, want success", err)
	}
	b.do(t, "start", command(network.Enable, network.EnableParams{}), command(cdplog.Enable, cdp.Empty{}))
	return b
}

// command returns the action of a command without a result.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, c, params)
		return err
	})
}

// listen collects errors of scripts, violations of the policy, and requests to others.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.site) && !strings.HasSuffix(e.Request.URL, "/favicon.ico") {
			b.problems = append(b.problems, "a request to "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Text+" "+e.ExceptionDetails.URL)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError && !strings.HasSuffix(e.Entry.URL, "/favicon.ico") {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

func (b *browser) do(t *testing.T, what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		t.Fatalf("%s: got %v, want success", what, err)
	}
}

// expect waits until a JavaScript expression is true, also on the page after this one.
func (b *browser) expect(t *testing.T, what, expression string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		// A navigation ends the script of the page that it leaves: its error is no result.
		if is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression)); is {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s: got %v, error %v for %s, want true", what, is, err, expression)
		}
		time.Sleep(20 * time.Millisecond) // a page sends no notice of a change of its variables
	}
}

// value returns the value of a JavaScript expression.
func value[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: got %v, want a value", expression, err)
	}
	return v
}

// sound fails the test for what listen collected.
func (b *browser) sound(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		t.Errorf("the browser reports %s, want no problem", p)
	}
}

func TestBrowserSearchAndTheme(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.do(t, "open", chromedp.EmulateViewport(1280, 900), chromedp.Navigate(b.site))
	b.expect(t, "the menu of a wide screen is open", `document.getElementById("menu").open`)

	b.do(t, "search", chromedp.KeyEvent("/"), chromedp.SendKeys("#search", "lease epoch"), chromedp.WaitVisible("#found a"))
	b.do(t, "choose", chromedp.KeyEvent("\r"))
	b.expect(t, "the first result is opened", `location.pathname !== "/docs/" && location.hash !== ""`)
	b.expect(t, "its anchor exists", `document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null`)
	b.do(t, "search for nothing", chromedp.SendKeys("#search", "xyzzyx"))
	b.expect(t, "nothing is found", `document.getElementById("found").textContent === "Nothing found"`)

	const background = `getComputedStyle(document.body).backgroundColor`
	light := value[string](t, b, background)
	b.do(t, "switch to dark", chromedp.Click("#theme"))
	dark := value[string](t, b, background)
	if light == dark {
		t.Errorf("the background is %s in both themes, want two colours", light)
	}
	b.do(t, "open another page", chromedp.Navigate(b.site+"queue"))
	b.expect(t, "the theme is kept", fmt.Sprintf("%s === %q", background, dark))
	b.sound(t)
}

// A page that is wider than a phone has to be scrolled in two directions.
func TestBrowserFitsAPhone(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.do(t, "open", chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile), chromedp.Navigate(b.site))
	b.expect(t, "the menu of a phone is closed", `!document.getElementById("menu").open`)
	b.do(t, "open the menu", chromedp.Click("#menu > summary"))
	b.expect(t, "the menu is open", `document.querySelector("#menu a").checkVisibility()`)
	for at, d := range built(t, docs.Pages).documents {
		if !strings.HasPrefix(d.contentType, "text/html") {
			continue
		}
		b.do(t, "open "+at, chromedp.Navigate(b.site+at))
		if width := value[int](t, b, `document.documentElement.scrollWidth`); width > 360 {
			t.Errorf("/docs/%s: the page is %d pixels wide on a screen of 360, want no scrolling sideways", at, width)
		}
	}
	b.sound(t)
}
