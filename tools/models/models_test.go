// Package models checks the models of the platform's protocols with spin.
package models

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// result is the line of spin's report that counts the faults it found.
var result = regexp.MustCompile(`errors: (\d+)`)

// TestModels: spin finds no fault in a model, and finds one once a guard is removed.
func TestModels(t *testing.T) {
	t.Parallel()
	for model, guards := range map[string][]string{
		"budget.pml": {"GUARD_SUM", "GUARD_FETCH", "GUARD_REVISION", "GUARD_DROP", "GUARD_MARK"},
	} {
		path, err := filepath.Abs(model)
		if err != nil {
			t.Fatalf("Abs: %v", err)
		}
		for _, removed := range append([]string{""}, guards...) {
			t.Run(model+"/"+removed, func(t *testing.T) {
				t.Parallel()
				args := []string{"-run", "-O2", "-m1000000", path}
				if removed != "" {
					args = append([]string{"-D" + removed + "=0"}, args...)
				}
				cmd := exec.CommandContext(t.Context(), "spin", args...)
				cmd.Dir = t.TempDir() // spin compiles the model there
				said, err := cmd.CombinedOutput()
				found := result.FindSubmatch(said)
				if err != nil && found == nil {
					t.Fatalf("spin %v: got error %v, want a report; make test-spin installs spin\n%s", args, err, said)
				}
				if found == nil || (string(found[1]) == "0") != (removed == "") {
					t.Errorf("spin without %q: got\n%s\nwant faults only without a guard", removed, said)
				}
			})
		}
	}
}
