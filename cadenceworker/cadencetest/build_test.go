package cadencetest

import (
	"os/exec"
	"testing"
)

// TestProgram builds the server, unless it was built before. A first build takes minutes, so make
// test runs this test before those that need the server within their time.
func TestProgram(t *testing.T) {
	t.Parallel()
	Skip(t)
	binary, folder, err := program()
	if err != nil {
		t.Fatalf("program: %v", err)
	}
	if out, err := exec.CommandContext(t.Context(), binary, "--config", folder+"/config", "--version").CombinedOutput(); err != nil {
		t.Errorf("%s --version: %v\n%s", binary, err, out)
	}
}
