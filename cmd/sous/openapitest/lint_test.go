package openapitest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// report is the part of Redocly's report that the test reads.
type report struct {
	Totals struct {
		Errors, Warnings, Ignored int
	} `json:"totals"`
	Problems []struct {
		RuleID  string `json:"ruleId"`
		Message string `json:"message"`
	} `json:"problems"`
}

// lint returns Redocly's report of the document in dir by its recommended rules.
func lint(t *testing.T, modules, dir string) report {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "redocly"), "lint", "openapi.json", "--extends=recommended", "--format=json", "--max-problems=1000")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	// It exits with 1 if it finds errors; the report tells.
	out, err := cmd.Output()
	var r report
	if decodeErr := json.Unmarshal(out, &r); decodeErr != nil {
		t.Fatalf("json.Unmarshal of the report: %v\nredocly ended with error %v and output %s%s", decodeErr, err, out, stderr.String())
	}
	return r
}

func TestDocumentPassesRedocly(t *testing.T) {
	t.Parallel()
	modules, dir := packages(t), t.TempDir()
	document(t, soustest.Start(t), dir)
	r := lint(t, modules, dir)
	for _, p := range r.Problems {
		t.Errorf("redocly lint: got %s: %s, want no problem", p.RuleID, p.Message)
	}
	if r.Totals.Errors+r.Totals.Warnings+r.Totals.Ignored != 0 {
		t.Errorf("got %+v, want no problem", r.Totals)
	}
	text, err := os.ReadFile(filepath.Join(dir, "openapi.json"))
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	broken := bytes.Replace(text, []byte(`"license":`), []byte(`"x-license":`), 1)
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), broken, 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	if r := lint(t, modules, dir); r.Totals.Errors+r.Totals.Warnings == 0 {
		t.Error("a document without a licence passes, want a problem")
	}
}
