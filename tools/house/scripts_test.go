package house

import (
	"path"
	"strings"
	"testing"
)

// TestScriptsHaveRows requires that the page of the store names every script: an operator who
// sees a script in the slow log of the store looks for it there.
func TestScriptsHaveRows(t *testing.T) {
	t.Parallel()
	const pageOfScripts = "docs/storage.md"
	var page string
	var scripts []string
	for _, s := range sources(t) {
		if s.path == pageOfScripts {
			page = string(s.text)
		}
		if s.folder() == "lua" && strings.HasSuffix(s.path, ".lua") {
			scripts = append(scripts, strings.TrimSuffix(path.Base(s.path), ".lua"))
		}
	}
	if len(scripts) < 50 {
		t.Errorf("examined %d scripts, want at least 50", len(scripts))
	}
	for _, name := range scripts {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s: got no row for %s, want one in its table of scripts", pageOfScripts, name)
		}
	}
}
