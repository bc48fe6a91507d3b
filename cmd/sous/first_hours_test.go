package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/codesous/sous/controlplane/browsertest"
)

// TestFirstTwoHours plays the first two hours of a new user, with the program that make builds
// from a clean clone. Beside the commands of TestScripts, the script may use
//
//	browse PATH TEXT   open a page of the server in Chromium and wait until it shows TEXT
func TestFirstTwoHours(t *testing.T) {
	t.Parallel()
	tab := browsertest.Open(t, 10*time.Minute)
	params := scripts(t, "testdata/first-hours", filepath.Join(clone(t), "bin", "sous"))
	params.Cmds["browse"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 2 {
			ts.Fatalf("usage: browse PATH TEXT")
		}
		ts.Check(chromedp.Do(tab, chromedp.Navigate(ts.Getenv("SOUS_URL")+args[0])))
		waitFor(ts, func() error {
			text, err := chromedp.Run(tab, chromedp.Evaluate[string]("document.body.innerText"))
			if err != nil {
				return err
			}
			return contains(text, args[1])
		})
	}
	testscript.Run(t, params)
}

// clone copies what a clone of the working tree would hold, runs make build there, and returns
// the folder.
func clone(t *testing.T) string {
	t.Helper()
	into := t.TempDir()
	const copyAndBuild = `cd ../.. && git ls-files -z --cached --others --exclude-standard | xargs -0 cp -P --parents -t "$0" && make -C "$0" build`
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", copyAndBuild, into).CombinedOutput(); err != nil {
		t.Fatalf("make build in a clean clone: %v\n%s", err, out)
	}
	return into
}
