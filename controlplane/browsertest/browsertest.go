// Package browsertest starts Chromium for the tests of pages.
package browsertest

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Open starts Chromium with an empty tab and returns the context of its actions, which lasts for
// limit. The browser ends with the test. The test is skipped where Chromium is missing.
//
//	tab := browsertest.Open(t, time.Minute)
//	err := chromedp.Do(tab, chromedp.Navigate(server.URL))
func Open(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	executable, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: run tools/need-chromium.sh, as make test does")
	}
	// Tests run in containers and as root, where Chromium's own sandbox cannot start.
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(executable), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(time.Minute),
	})
	allocator, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	tab, stop := context.WithTimeout(tab, limit)
	t.Cleanup(stop)
	return tab
}
