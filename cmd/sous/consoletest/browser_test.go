package consoletest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/codesous/sous/controlplane/browsertest"
)

// A browser is one tab of Chromium and what went wrong in it.
type browser struct {
	ctx  context.Context
	site string // the URL of the server

	mu       sync.Mutex
	problems []string
	expected []string // parts of problems that the test causes itself
}

// open starts Chromium for a server. The test is skipped where Chromium is missing.
func open(t *testing.T, site string, expected ...string) *browser {
	t.Helper()
	b := &browser{ctx: browsertest.Open(t, 4*time.Minute), site: site, expected: expected}
	if err := chromedp.Listen(b.ctx, b.listen); err != nil {
		t.Fatalf("start Chromium: got %v, want success", err)
	}
	b.do(t, "start", command(network.Enable, network.EnableParams{}), command(cdplog.Enable, cdp.Empty{}), chromedp.EmulateViewport(1440, 900))
	t.Cleanup(func() { b.sound(t) })
	return b
}

// command returns the action of a command without a result.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, c, params)
		return err
	})
}

// listen collects errors of scripts, violations of the policy, and requests to other servers.
func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	add := func(text string) {
		if !slices.ContainsFunc(b.expected, func(part string) bool { return strings.Contains(text, part) }) {
			b.problems = append(b.problems, text)
		}
	}
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.site) && !strings.HasPrefix(url, "data:") {
			add("a request to " + url)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if o := e.ExceptionDetails.Exception; o != nil {
			text += " " + o.Description
		}
		add(text)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError {
			add(e.Entry.Text + " " + e.Entry.URL)
		}
	}
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

func (b *browser) do(t *testing.T, what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		t.Fatalf("%s: got %v, want success\n%s", what, err, b.text())
	}
}

// text returns what the page shows, for failures.
func (b *browser) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.pathname + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// expect waits until a JavaScript expression is true.
func (b *browser) expect(t *testing.T, what, expression string) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); ; {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if is {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s: got %v, error %v for %s, want true\n%s", what, is, err, expression, b.text())
		}
		time.Sleep(20 * time.Millisecond) // a page sends no notice of a change
	}
}

// shows waits until the page has a text.
func (b *browser) shows(t *testing.T, text string) {
	t.Helper()
	b.expect(t, "the page shows "+text, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// press clicks the button or link with a text.
func (b *browser) press(t *testing.T, text string) {
	t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("button, a, [role=option]")].filter((e) => e.checkVisibility() && e.innerText.trim() === %q)`, text)
	b.expect(t, text+" can be pressed", find+".length > 0")
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](find+`.at(-1).click() === undefined`)); err != nil {
		t.Fatalf("press %s: got %v, want success", text, err)
	}
}

// value returns the value of a JavaScript expression, which may be a promise.
func value[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: got %v, want a value", expression, err)
	}
	return v
}

// findings is a JavaScript expression: what axe reports about the page, a line for each rule.
const findings = `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
	.then((r) => r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160) + " " + n.any.concat(n.all).map((c) => c.message).join("; ").slice(0, 200)).join("\n\t")).join("\n"))`

// look examines the view that is open, in both themes and at two widths: axe must find nothing, and
// the page must not be wider than the screen. It keeps pictures if the test was asked to.
func (b *browser) look(t *testing.T, name string) {
	t.Helper()
	if !value[bool](t, b, `typeof axe === "object"`) {
		script, err := os.ReadFile(filepath.Join(root, "console/node_modules/axe-core/axe.min.js"))
		if err != nil {
			t.Fatalf("ReadFile: %v", err)
		}
		b.do(t, "load axe", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := chromedp.Evaluate[any](string(script)+";0")(ctx, target)
			return err
		}))
	}
	for _, size := range [][2]int64{{390, 844}, {1440, 900}} {
		for _, theme := range []string{"dark", "light"} {
			b.do(t, "resize", chromedp.EmulateViewport(size[0], size[1]), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
			}))
			if wide := value[int64](t, b, `document.documentElement.scrollWidth`); wide > size[0] {
				t.Errorf("%s: the page is %d pixels wide on a screen of %d, want no scrolling sideways", name, wide, size[0])
			}
			if found := value[string](t, b, findings); found != "" {
				t.Errorf("%s, %s, %d wide: axe reports\n%s\nwant nothing", name, theme, size[0], found)
			}
			b.picture(t, fmt.Sprintf("%s-%s-%d.png", name, theme, size[0]))
		}
	}
}

// picture keeps a picture of the page in the folder SOUS_TEST_SCREENSHOTS.
func (b *browser) picture(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("SOUS_TEST_SCREENSHOTS")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), png, 0o600)
	}
	if err != nil {
		t.Fatalf("picture %s: got %v, want success", name, err)
	}
}
