package build

import (
	"os"
	"regexp"
	"testing"

	"golang.org/x/mod/semver"
)

func TestUnstamped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		module, revision string
		modified         bool
		want             string
	}{
		{"v1.2.3", "", false, "1.2.3"},
		{"v1.2.3", "1a2b3c4d5e", true, "1.2.3"},
		{"(devel)", "", false, Release + "-dev"},
		{"", "1a2b3c4d5e", false, Release + "-dev+1a2b3c4"},
		{"v0.0.0-20261124081500-1a2b3c4d5e6f", "1a2b3c4d5e6f", true, Release + "-dev+1a2b3c4.modified"},
	} {
		got := unstamped(c.module, c.revision, c.modified)
		if got != c.want || !semver.IsValid("v"+got) {
			t.Errorf("unstamped(%q, %q, %t) = %q, want the semantic version %q", c.module, c.revision, c.modified, got, c.want)
		}
	}
}

// TestChangelog checks that the next release stands first in the changelog, and above those
// that it follows.
func TestChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../CHANGELOG.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	headings := regexp.MustCompile(`(?m)^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$`).FindAllStringSubmatch(string(text), -1)
	if len(headings) == 0 || headings[0][1] != Release {
		t.Fatalf("the headings of CHANGELOG.md are %q, want the first to be %s", headings, Release)
	}
	for i, h := range headings[1:] {
		if before := headings[i][1]; semver.Compare("v"+before, "v"+h[1]) <= 0 || h[2] == "unreleased" {
			t.Errorf("CHANGELOG.md has %q after %s, want an older release", h[0], before)
		}
	}
}
