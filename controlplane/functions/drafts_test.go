package functions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// TestDraftsHaveABoundedNumberOfEntries: files without number are refused before they are decoded.
func TestDraftsHaveABoundedNumberOfEntries(t *testing.T) {
	t.Parallel()
	files := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":"",`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	var most, many draftFiles
	if err := json.Unmarshal([]byte(files(api.MaxBundleFiles)), &most); err != nil || len(most) != api.MaxBundleFiles {
		t.Errorf("as many files as a bundle may have: got %d and error %v, want them", len(most), err)
	}
	if err := json.Unmarshal([]byte(files(100_000)), &many); api.ErrorCode(err) != api.CodeBodyLimit || len(many) > 0 {
		t.Errorf("100,000 files: got %d and error %v, want %s", len(many), err, api.CodeBodyLimit)
	}
}
