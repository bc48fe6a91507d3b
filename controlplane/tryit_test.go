package controlplane_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The form of an operation sends its example with the key of the page, and shows the answer.
func TestReferenceFormSendsARequest(t *testing.T) {
	t.Parallel()
	executable, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: run tools/need-chromium.sh, as make test does")
	}
	k := startKeyed(t, embedded(t))
	key, _ := k.key(t, "viewer")
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(executable), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute),
	})
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(stop)
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
