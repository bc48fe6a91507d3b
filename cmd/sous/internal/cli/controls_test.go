package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/codesous/sous/api"
)

// TestCommandsPrintNoControls: texts of functions, of workers and of servers reach the terminal
// without characters that control it.
func TestCommandsPrintNoControls(t *testing.T) {
	t.Parallel()
	const evil = "mark\x1b]0;PWN\x07\x1b[2J\u009b31m\x7f\u202e"
	const activation, job = "01920000-0000-7000-8000-000000000001", "01920000-0000-7000-8000-000000000002"
	failed := &api.ActivationError{Type: api.ErrException, Message: evil, Stack: "Error: " + evil + "\n  at f.js:1:2 " + evil}
	result, err := json.Marshal(evil)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	latest := int64(1)
	answers := map[string]any{
		"fails:invoke": api.InvokeResponse{ActivationID: activation, Status: api.StatusError, Error: failed},
		"works:invoke": api.InvokeResponse{ActivationID: evil, Status: api.StatusSuccess, Result: result},
		activation:     api.Activation{ActivationID: activation, Status: api.StatusError, Error: failed, Result: result},
		job:            api.Job{ID: job, Queue: evil, Payload: result, DeadReason: evil, Errors: []api.JobError{{Attempt: 1, Error: evil, Stack: evil + "\n" + evil}}},
		"fn":           api.FunctionDetail{Function: api.Function{Name: evil, Description: evil}, LatestVersion: &latest, Aliases: []api.Alias{{Alias: evil, Version: 1}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		answer, ok := answers[last]
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "req_\u009b1")
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"error": map[string]any{"code": "CS_" + evil, "message": evil, "request_id": evil, "errors": []api.FieldError{{Path: evil, Message: evil}}}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	for _, args := range [][]string{
		{"fn", "invoke", "fails"},
		{"fn", "invoke", "works"},
		{"fn", "get", "fn"},
		{"fn", "get", "none"},
		{"activation", "get", activation},
		{"job", "get", job},
	} {
		for _, format := range []string{"text", "json"} {
			var out, errs bytes.Buffer
			Run(t.Context(), append(args, "--url", server.URL, "--output", format), strings.NewReader(""), &out, &errs)
			for name, got := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
				if strings.ContainsFunc(got, control) {
					t.Errorf("%s of %q as %s: got %q, want no control characters", name, args, format, got)
				}
			}
			if got := out.String() + errs.String(); !strings.Contains(got, "mark") {
				t.Errorf("%q as %s: got %q, want it to contain the text %q", args, format, got, "mark")
			}
		}
	}
}

// control reports whether r controls a terminal; lines end all the same.
func control(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}
