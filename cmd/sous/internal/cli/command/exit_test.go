package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	answered := func(status int, code api.Code) error {
		return fmt.Errorf("deploy: %w", &client.ResponseError{Status: status, Err: api.Errorf(code, "x")})
	}
	tests := map[string]struct {
		err  error
		want int
	}{
		"none":              {nil, 0},
		"a usage error":     {errors.New("x"), 1},
		"a bad name":        {api.Errorf(api.CodeValidationName, "x"), 1},
		"a 404":             {answered(404, api.CodeFunctionNotFound), 1},
		"a 429":             {answered(429, api.CodeConcurrencyLimit), 1},
		"a 500":             {answered(500, api.CodeInternal), 2},
		"a 503":             {answered(503, api.CodeStoreUnavailable), 2},
		"no answer":         {fmt.Errorf("x: %w", &client.UnreachableError{Err: errors.New("refused")}), 2},
		"no store":          {fmt.Errorf("store: %w", api.Errorf(api.CodeStoreUnavailable, "x")), 2},
		"an interrupt":      {context.Canceled, 1},
		"a function failed": {fmt.Errorf("x: %w", &FunctionFailure{Status: api.StatusError}), 3},
	}
	for name, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

func TestErrorsForPeopleAndScripts(t *testing.T) {
	t.Parallel()
	source := &client.ResponseError{Status: 422, RequestID: "req_1", Err: api.Errorf(api.CodeValidationSource, "bad source").WithFields(
		api.FieldError{Path: "a.js", Line: 3, Column: 5, Message: "Unexpected }"},
		api.FieldError{Path: "b.js", Line: 7, Message: "odd"},
		api.FieldError{Path: "limits.timeoutMs", Message: "too much"})}
	excerpts := api.Errorf(api.CodeValidationSource, "a.js:13:5: Unexpected }").WithFields(
		api.FieldError{Path: "a.js", Line: 13, Column: 5, Message: "Unexpected }", Excerpt: "let }\n    ^"},
		api.FieldError{Path: "b.js", Line: 7, Column: 1, Message: "odd \x1b", Excerpt: "\x1b1\n^"})
	field := api.Errorf(api.CodeInvalid, "config.env: no object").WithFields(api.FieldError{Path: "config.env", Message: "no object"})
	failed := &FunctionFailure{Status: api.StatusError, Reason: &api.ActivationError{Type: api.ErrException, Message: "no", Stack: "Error: no\n  at f.js:1:2"}}
	thrown := &FunctionFailure{Status: api.StatusError, Reason: &api.ActivationError{Type: api.ErrException, Message: "MyErr: no", Stack: "MyErr: no\n    at f.js:1:2\nCaused by: odd"}}
	noFrames := &FunctionFailure{Status: api.StatusError, Reason: &api.ActivationError{Type: api.ErrException, Message: "refused", Stack: "Error: refused"}}
	unhandled := &FunctionFailure{Status: api.StatusError, Reason: &api.ActivationError{Type: api.ErrException, Message: "Unhandled promise rejection: MyErr: no", Stack: "MyErr: no\n    at f.js:1:2"}}
	sameCause := &FunctionFailure{Status: api.StatusError, Reason: &api.ActivationError{Type: api.ErrException, Message: "no", Stack: "MyErr: maybe\nCaused by: Error: no"}}
	tests := map[string]struct {
		output string
		err    error
		want   string
	}{
		"text": {FormatText, source, "error: CS_VALIDATION_SOURCE: bad source (request req_1)\n" +
			"  a.js:3:5: Unexpected }\n  b.js:7: odd\n  limits.timeoutMs: too much\n"},
		"source lines": {FormatText, excerpts, "error: CS_VALIDATION_SOURCE: a.js:13:5: Unexpected }\n" +
			"  13 | let }\n     |     ^\n  b.js:7:1: odd \\x1b\n  7 | \\x1b1\n    | ^\n"},
		"a field":                  {FormatText, field, "error: CS_VALIDATION_FAILED: config.env: no object\n"},
		"json":                     {FormatJSON, api.Errorf(api.CodeValidationName, "bad"), `{"error":{"code":"CS_VALIDATION_NAME","message":"bad"}}` + "\n"},
		"the function's":           {FormatText, failed, "error: Exception: no\n  Error: no\n  at f.js:1:2\n"},
		"a message once":           {FormatText, thrown, "error: Exception: MyErr: no\n  at f.js:1:2\n  Caused by: odd\n"},
		"an unhandled rejection":   {FormatText, unhandled, "error: Exception: Unhandled promise rejection: MyErr: no\n  at f.js:1:2\n"},
		"a cause with its message": {FormatText, sameCause, "error: Exception: no\n  MyErr: maybe\n  Caused by: Error: no\n"},
		"no frames":                {FormatText, noFrames, "error: Exception: refused\n"},
		"a cause":                  {FormatText, api.Wrap(api.CodeStoreUnavailable, errors.New("refused"), "no store"), "error: CS_STORE_UNAVAILABLE: no store: refused\n"},
		"a remark around":          {FormatText, fmt.Errorf("--ref: %w", api.Errorf(api.CodeValidationName, "bad")), "error: CS_VALIDATION_NAME: --ref: bad\n"},
		"markup":                   {FormatJSON, errors.New("<b>&"), `{"error":{"message":"<b>&"}}` + "\n"},
		"an interrupt for scripts": {FormatJSON, fmt.Errorf("x: %w", context.Canceled), `{"error":{"message":"interrupted"}}` + "\n"},
		"an interrupt":             {FormatText, context.Canceled, "interrupted\n"},
	}
	for name, tt := range tests {
		var out bytes.Buffer
		(&App{Stderr: &out, Output: tt.output}).Report(tt.err)
		if out.String() != tt.want {
			t.Errorf("%s: got %q, want %q", name, out.String(), tt.want)
		}
	}
}
