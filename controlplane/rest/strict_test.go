package rest

import (
	"errors"
	"testing"

	"github.com/codesous/sous/api"
)

// TestDecodeExplainsItsRefusals holds the errors of Decode to their codes and texts. The
// schema of an integer admits 1e3 and numbers of any size, encoding/json does not.
func TestDecodeExplainsItsRefusals(t *testing.T) {
	t.Parallel()
	type body struct {
		Count int64   `json:"count,omitempty"`
		Share float64 `json:"share,omitempty"`
	}
	counts := func(raw string) error { _, err := NewDecoder[[]int64]().Decode([]byte(raw)); return err }
	fields := func(raw string) error { _, err := NewDecoder[body]().Decode([]byte(raw)); return err }
	for _, tc := range []struct {
		raw    string
		decode func(string) error
		code   api.Code
		text   string
	}{
		{`{"count":7} x`, fields, api.CodeValidationJSON, "the body has data after its JSON value"},
		{`{"count":7}{}`, fields, api.CodeValidationJSON, "the body has data after its JSON value"},
		{`{"count":1e3}`, fields, api.CodeInvalid, "count: must be an integer of 64 bits"},
		{`{"count":9223372036854775808}`, fields, api.CodeInvalid, "count: must be an integer of 64 bits"},
		{`{"extra":1}`, fields, api.CodeInvalid, "extra: is not a known field"},
		{`[1,1e3]`, counts, api.CodeInvalid, "must be an integer of 64 bits"},
	} {
		err := tc.decode(tc.raw)
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != tc.code || coded.Message != tc.text {
			t.Errorf("Decode(%s) = %v, want %s %q", tc.raw, err, tc.code, tc.text)
		}
	}
	if got, err := NewDecoder[body]().Decode([]byte(`{}`)); err != nil || got != (body{}) {
		t.Errorf("Decode({}) = %+v, %v, want the zero body", got, err)
	}
}
