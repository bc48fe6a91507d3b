// Package models checks the models of protocols, which are written in Promela, with spin. A model
// whose guard is removed must fail: a check that cannot fail shows nothing.
package models

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestModels(t *testing.T) {
	t.Parallel()
	spin := need(t, "spin")
	need(t, "gcc")
	for _, row := range []struct {
		model, claim string
		without      string // the guard that is removed, "" for none
	}{
		{"steps.pml", "ends", ""},
		{"steps.pml", "whole", ""},
		{"steps.pml", "", ""},
		{"steps.pml", "", "UNFENCED"},
		{"steps.pml", "", "UNLOADED"},
		{"waits.pml", "ends", ""},
		{"waits.pml", "ends", "UNTOUCHED"},
		{"budget.pml", "", ""},
		{"budget.pml", "", "GUARD_SUM=0"},
		{"budget.pml", "", "GUARD_FETCH=0"},
		{"budget.pml", "", "GUARD_REVISION=0"},
		{"budget.pml", "", "GUARD_DROP=0"},
		{"budget.pml", "", "GUARD_MARK=0"},
	} {
		t.Run(strings.Join([]string{row.model, row.claim, row.without}, " "), func(t *testing.T) {
			t.Parallel()
			errors := check(t, spin, row.model, row.claim, row.without)
			if got := strings.Contains(errors, "errors: 0"); got != (row.without == "") {
				t.Errorf("spin of %s without guard %q: got %q, want errors only without a guard", row.model, row.without, errors)
			}
		})
	}
}

// need returns the path of a program. Without it the test fails: on Debian, install spin and gcc.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("LookPath: %v", err)
	}
	return path
}

// check searches all states of a model for violations of a claim with weak fairness, or without a
// claim for violated assertions, and returns the line of spin with the number of errors.
func check(t *testing.T, spin, model, claim, without string) string {
	t.Helper()
	folder := t.TempDir()
	path, err := filepath.Abs(model)
	if err != nil {
		t.Fatalf("filepath.Abs: %v", err)
	}
	do := func(program string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("run of %s: %v\n%s", program, err, out)
		}
		return string(out)
	}
	generate := []string{"-a", path}
	if without != "" {
		generate = append([]string{"-D" + without}, generate...)
	}
	do(spin, generate...)
	flags, run := []string{"-O2", "-w", "-o", "pan", "pan.c"}, []string{"-m1000000"}
	if claim == "" {
		flags, run = append(flags, "-DSAFETY", "-DNOCLAIM"), append(run, "-E") // an end of all processes but one is no error here
	} else {
		flags, run = append(flags, "-DNFAIR=3"), append(run, "-a", "-f", "-N", claim)
	}
	do("gcc", flags...)
	out := do("./pan", run...)
	for line := range strings.Lines(out) {
		if strings.Contains(line, "errors:") {
			return line
		}
	}
	return out
}
