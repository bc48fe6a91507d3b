package functions

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// TestAnswersOfFunctionsPrintNoControls: the log, the headers and the error of fn test --http
// come from a function. The body is printed as it is where stdout is no terminal.
func TestAnswersOfFunctionsPrintNoControls(t *testing.T) {
	t.Parallel()
	const evil = "mark\x1b]0;PWN\x07\x1b[2J\u009b31m"
	message, err := json.Marshal(evil)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/logs"):
			_ = json.NewEncoder(w).Encode(api.Page[api.LogLine]{Items: []api.LogLine{{Level: evil, Message: message}}})
		case strings.Contains(r.URL.Path, "/activations/"):
			_ = json.NewEncoder(w).Encode(api.Activation{Status: api.StatusError, Error: &api.ActivationError{Type: api.ErrException, Message: "no " + evil, Stack: evil}})
		default:
			w.Header().Set("X-Cs-Activation-Id", "act_1")
			w.Header().Set("X-Evil", "\u009b31m \x9b31m")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "raw \x1b[1m")
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.Config{})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	var out, errs bytes.Buffer
	a := &command.App{Stdout: &out, Stderr: &errs, Output: command.FormatText}
	target := command.NewTarget(c, command.DefaultTenant, command.DefaultNamespace)
	a.Report(commands{a}.tryRequest(t.Context(), target, http.DefaultTransport, server.URL, &tryRequest{method: http.MethodGet, path: "/", header: http.Header{}}))
	head, body, _ := strings.Cut(out.String(), "\n\n")
	if want := "raw \x1b[1m\n"; body != want {
		t.Errorf("body: got %q, want %q", body, want)
	}
	for name, got := range map[string]string{"head": head, "stderr": errs.String()} {
		if strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), unicode.IsControl) || strings.Contains(got, "\x9b31m ") {
			t.Errorf("%s: got %q, want no control characters", name, got)
		}
	}
	if !strings.Contains(errs.String(), "mark") {
		t.Errorf("stderr: got %q, want the log and the error", errs.String())
	}
}
