package controlplane_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/codesous/sous/controlplane/browsertest"
)

// The form of an operation sends its example with the key of the page, and shows the answer.
func TestReferenceFormSendsARequest(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Open(t, time.Minute)
	k := startKeyed(t, embedded(t))
	key, _ := k.key(t, "viewer")
	if err := chromedp.Do(ctx, chromedp.Navigate(k.URL+"/docs/reference")); err != nil {
		t.Fatalf("Navigate: %v", err)
	}
	submit := func(key string) string {
		t.Helper()
		answered, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(async () => {
			document.getElementById("key").value = "`+key+`";
			const form = document.querySelector("#whoami form"), output = form.querySelector("output");
			const changed = new Promise((resolve) => new MutationObserver(() => {
				if (output.textContent !== "…") resolve(output.textContent);
			}).observe(output, { childList: true }));
			form.requestSubmit();
			return await changed;
		})()`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		return answered
	}
	for text, want := range map[string]string{"": "401 Unauthorized\n", key: "200 OK\n"} {
		if got := submit(text); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("whoami with key %q: got %q, want %q", text, got, want)
		}
	}
}

// The reference fits a phone: only its code blocks may be scrolled sideways.
func TestReferenceFitsAPhone(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	ctx := browsertest.Open(t, time.Minute)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 740), chromedp.Navigate(k.URL+"/docs/reference")); err != nil {
		t.Fatalf("Navigate: %v", err)
	}
	wide, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`
		document.querySelectorAll("details").forEach((d) => { d.open = true; });
		[...document.querySelectorAll("body *")].filter((e) => !e.closest("pre") && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))`))
	if err != nil {
		t.Fatalf("Evaluate: %v", err)
	}
	if len(wide) > 0 {
		t.Errorf("%d elements are wider than a phone, want none; the first ones are\n%s", len(wide), strings.Join(wide[:min(5, len(wide))], "\n"))
	}
	if width, err := chromedp.Run(ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); err != nil || width > 360 {
		t.Errorf("the page is %d wide, error %v, want at most 360", width, err)
	}
}
