package jetstream_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestSousKnowsNoNATS: the platform's state is in the store that it has, and its
// binary does not grow by another's client.
func TestSousKnowsNoNATS(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "github.com/codesous/sous/cmd/sous").Output()
	if err != nil {
		t.Fatalf("Output: %v", err)
	}
	if !strings.Contains(string(out), "github.com/codesous/sous/storage/statestore/kvrocks") {
		t.Error("cmd/sous has no state store at all")
	}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "github.com/nats-io/") || strings.HasSuffix(pkg, "statestore/jetstream") {
			t.Errorf("cmd/sous: got dependency %s, want none", pkg)
		}
	}
}
