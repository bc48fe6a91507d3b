package controlplane_test

import (
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
