package logtext_test

import (
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/logtext"
)

func TestFailureText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]api.ActivationError{
		"just text\n    at handle (function.js:3:32)":            {Type: api.ErrException, Message: "just text", Stack: "    at handle (function.js:3:32)"},
		"MemoryLimit: more than 64 MB":                           {Type: api.ErrMemoryLimit, Message: "more than 64 MB"},
		"bad source\n  code: CS_VALIDATION_SOURCE":               {Type: api.ErrException, Message: "bad source", Code: "CS_VALIDATION_SOURCE"},
		"AppError: no\n    at f (a.js:1:2)\nCaused by: Error: c": {Type: api.ErrException, Message: "AppError: no", Stack: "AppError: no\n    at f (a.js:1:2)\nCaused by: Error: c"},
		"Error: two\nlines\n    at f (a.js:1:2)\n  code: E":      {Type: api.ErrException, Message: "two\nlines", Stack: "Error: two\nlines\n    at f (a.js:1:2)", Code: "E"},
		"Unhandled promise rejection: lost\nError: lost\n    at f (a.js:1:2)": {
			Type: api.ErrException, Message: "Unhandled promise rejection: lost", Stack: "Error: lost\n    at f (a.js:1:2)"},
	} {
		if got := logtext.Failure(&e); got != want {
			t.Errorf("logtext.Failure(%+v): got %q, want %q", e, got, want)
		}
	}
}
