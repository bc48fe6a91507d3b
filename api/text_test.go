package api_test

import (
	"testing"

	"github.com/codesous/sous/api"
)

func TestTruncateText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aé", 3, "aé"}, {"aé", 2, "a"}, {"€", 2, ""}, {"\x80\x80", 1, ""},
	} {
		if got := api.TruncateText(tt.s, tt.n); got != tt.want {
			t.Errorf("TruncateText(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}
