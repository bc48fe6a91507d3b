package server

import (
	"strings"
	"testing"
)

func TestCgoRisk(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		executable string
		withCgo    bool
		want       bool
	}{
		{"", true, true},
		{"", false, false},
		{"/proc/self/fd/16", true, false},
		{"/proc/self/fd/16", false, false},
	} {
		got := cgoRisk(tc.executable, tc.withCgo)
		if risk := strings.Contains(got, "built with cgo"); risk != tc.want || !risk && got != "" {
			t.Errorf("cgoRisk(%q, %t): got %q, want a text: %t", tc.executable, tc.withCgo, got, tc.want)
		}
	}
}
