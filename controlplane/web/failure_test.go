package web

import (
	"testing"

	"github.com/codesous/sous/api"
)

// TestFailureShowsErrors: only a server for development answers with the message of a
// function's error.
func TestFailureShowsErrors(t *testing.T) {
	t.Parallel()
	ended := &api.Outcome{Activation: api.Activation{
		ActivationID: "id", Status: api.StatusError, Error: &api.ActivationError{Type: api.ErrException, Message: "TypeError: no"},
	}}
	for want, cfg := range map[string]Config{
		"CS_RUNTIME_EXCEPTION: the function failed (Exception); the log of activation id has the error": {},
		"CS_RUNTIME_EXCEPTION: the function failed (Exception): TypeError: no":                          {ShowErrors: true},
	} {
		if _, err := New(nil, nil, nil, cfg).respond(ended, nil); err == nil || err.Error() != want {
			t.Errorf("respond with %+v: got %v, want %s", cfg, err, want)
		}
	}
}
