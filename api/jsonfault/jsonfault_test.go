package jsonfault_test

import (
	"encoding/json"
	"testing"

	"github.com/codesous/sous/api/jsonfault"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": 1}`:          "",
		` null `:            "",
		``:                  "it is empty",
		" \n":               "it is empty",
		`{`:                 "it ends within a value",
		`{"a": `:            "it ends within a value",
		`"abc`:              "it ends within a value",
		`{"a": }`:           "line 1, column 7: unexpected '}'",
		`}`:                 "line 1, column 1: unexpected '}'",
		`{'a': 1}`:          `line 1, column 2: unexpected '\''`,
		"{\n  \"a\": 1,\n}": "line 3, column 1: unexpected '}'",
		`{"ä": x}`:          "line 1, column 7: unexpected 'x'",
		`["ä" é]`:           "line 1, column 6: unexpected 'é'",
		`{} {}`:             "line 1, column 4: unexpected '{'",
		`hello`:             "line 1, column 1: unexpected 'h'",
		`tru`:               "it ends within a value",
		`-`:                 "it ends within a value",
		`tr e`:              "line 1, column 3: unexpected ' '",
		`trux`:              "line 1, column 4: unexpected 'x'",
	} {
		if got := jsonfault.Of([]byte(text)); got != want || (got == "") != json.Valid([]byte(text)) {
			t.Errorf("Of(%q): got %q, want %q", text, got, want)
		}
	}
}
