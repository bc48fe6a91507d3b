package rest

import (
	"testing"

	"github.com/codesous/sous/api"
)

func TestBoundsAreWordedAlike(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ path, theirs, want string }{
		{"limit", "expected number <= 500", "must be at most 500"},
		{"limit", "expected number <= 1e+06", "must be at most 1,000,000"},
		{"wait_ms", "expected number <= 60000", "must be at most 60,000 ms (1 min)"},
		{"n", "expected number >= 0.5", "expected number >= 0.5"},
		{"id", "expected length >= 4", "must have at least 4 characters"},
		{"name", "expected length >= 1", "must have at least 1 character"},
		{"jobs", "expected array length <= 10000", "must have at most 10,000 items"},
		{"state", `expected value to be one of "a, b"`, "must be one of a, b"},
		{"x", "expected string", "expected string"},
	} {
		if got := withRule(api.FieldError{Path: tc.path, Message: tc.theirs}); got.Message != tc.want {
			t.Errorf("%s: %s: got %q, want %q", tc.path, tc.theirs, got.Message, tc.want)
		}
	}
}
