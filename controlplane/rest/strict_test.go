package rest

import (
	"errors"
	"runtime"
	"strings"
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

// TestDecodeStopsAtItsBounds: bodies of many tiny elements are refused without being decoded, and the
// refusal of a large body compares nothing with the schema.
func TestDecodeStopsAtItsBounds(t *testing.T) {
	t.Parallel()
	type body struct {
		Jobs []api.NewJob `json:"jobs"`
	}
	many := func(n int, element string) string {
		return `{"jobs":[` + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + `]}`
	}
	decoder := NewDecoder[body]()
	for name, tc := range map[string]struct {
		raw  string
		code api.Code
	}{
		"objects":                {many(2_500_000, "{}"), api.CodeBodyLimit},
		"nulls":                  {many(1_500_000, "null"), api.CodeBodyLimit},
		"lists":                  {many(2_500_000, "[]"), api.CodeBodyLimit},
		"lists that are no jobs": {many(20_000, "[]      "), api.CodeInvalid},
		"unknown fields":         {`{` + strings.Repeat(`"x":0,`, 200_000) + `"x":0}`, api.CodeInvalid},
	} {
		raw := []byte(tc.raw)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decoder.Decode(raw)
		runtime.ReadMemStats(&after)
		// Other tests allocate beside it: without the bounds it is a thousand MiB.
		if used := after.TotalAlloc - before.TotalAlloc; api.ErrorCode(err) != tc.code || used > 200<<20 {
			t.Errorf("%s: got error %v and %d MiB, want %s and at most 200", name, err, used>>20, tc.code)
		}
		var coded *api.Error
		if errors.As(err, &coded) && len(coded.Fields) > maxProblemFields {
			t.Errorf("%s: got %d fields, want at most %d", name, len(coded.Fields), maxProblemFields)
		}
	}
}

// TestProblemsAreBounded: a problem names some of very many faults.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	fields := make([]api.FieldError, 100_000)
	p := newProblem(api.Errorf(api.CodeInvalid, "wrong").WithFields(fields...), "req_1")
	if len(p.Errors) != maxProblemFields {
		t.Errorf("got %d fields, want %d", len(p.Errors), maxProblemFields)
	}
	var v any
	if err := decodeJSON([]byte(`{"roles":[`+strings.Repeat("0,", 500_000)+`0]}`), &v); err == nil {
		t.Error("500,000 numbers in a body: got no error, want one")
	}
}
