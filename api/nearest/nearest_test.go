package nearest_test

import (
	"testing"

	"github.com/codesous/sous/api/nearest"
)

func TestName(t *testing.T) {
	t.Parallel()
	states := []string{"cursor", "limit", "state"}
	for name, want := range map[string]string{
		"statee": "state", "State": "state", "sate": "state", "limt": "limit", "curosr": "cursor",
		"x": "", "": "", "follow": "", "something": "",
	} {
		if got := nearest.Name(name, states); got != want {
			t.Errorf("Name(%q, %q) = %q, want %q", name, states, got, want)
		}
	}
	if got := nearest.Name("ab", []string{"cd"}); got != "" {
		t.Errorf("Name(ab, [cd]) = %q, want none: every character differs", got)
	}
	long := make([]byte, 1<<20)
	if got := nearest.Name(string(long), states); got != "" {
		t.Errorf("Name of a name of 1 MiB = %q, want none", got)
	}
}
