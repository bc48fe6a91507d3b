package server

import (
	"os"
	"path/filepath"
	"testing"
)

// The runners' token comes from its file, else from its variable.
func TestDocumentTokenSources(t *testing.T) { // it sets the process's environment
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	var s documentSettings
	t.Setenv(documentTokenVariable, "")
	if token, err := s.token(); token != "" || err != nil {
		t.Errorf(`token(): got token %q, error %v; want "", nil`, token, err)
	}
	t.Setenv(documentTokenVariable, "token-of-the-variable")
	if token, err := s.token(); token != "token-of-the-variable" || err != nil {
		t.Errorf(`token(): got token %q, error %v; want "token-of-the-variable", nil`, token, err)
	}
	s.TokenFile = file
	write("token-of-the-file\n")
	if token, err := s.token(); token != "token-of-the-file" || err != nil {
		t.Errorf(`token(): got token %q, error %v; want "token-of-the-file", nil`, token, err)
	}
	for _, bad := range []string{"", "\n", "fifteen-letters", "token of several words", "two-of-these-tokens\ntwo-of-these-tokens\n"} {
		write(bad)
		if token, err := s.token(); err == nil {
			t.Errorf("token() of a file with %q = %q, want an error", bad, token)
		}
	}
	s.TokenFile = ""
	t.Setenv(documentTokenVariable, "short")
	if err := s.validate(); err == nil {
		t.Error("validate() with a short token = nil, want an error")
	}
}
