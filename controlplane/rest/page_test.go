package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

func TestCursorsBelongToTheirList(t *testing.T) {
	t.Parallel()
	list := ListScope("functions", "t_abcdef", "payments")
	cursor := list.Seal("hello")
	if got, err := list.Open(*cursor); err != nil || got != "hello" {
		t.Errorf("Open: got %q %v, want no error and \"hello\"", got, err)
	}
	if list.Seal("") != nil {
		t.Error("the end has a cursor")
	}
	for name, other := range map[string]Scope{
		"another route":         ListScope("versions", "t_abcdef", "payments"),
		"another tenant":        ListScope("functions", "t_abcdeg", "payments"),
		"parts split elsewhere": ListScope("functions", "t_abcdefp", "ayments"),
		"one part less":         ListScope("functions", "t_abcdefpayments"),
		"an empty part too":     ListScope("functions", "t_abcdef", "payments", ""),
	} {
		if _, err := other.Open(*cursor); api.ErrorCode(err) != api.CodeValidationCursor {
			t.Errorf("%s: Open: got %v, want code CodeValidationCursor", name, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	list := ListScope("functions", "t_abcdef")
	f.Add(*list.Seal("hello"))
	f.Add("")
	f.Add("AAAAAAAAAAAx")
	f.Add("%")
	f.Fuzz(func(t *testing.T, cursor string) {
		position, err := list.Open(cursor)
		if err != nil {
			if api.ErrorCode(err) != api.CodeValidationCursor {
				t.Errorf("code of %v, want code CodeValidationCursor", err)
			}
			return
		}
		// Whatever is accepted is a cursor that this list gave.
		if sealed := list.Seal(position); cursor != "" && (sealed == nil || *sealed != cursor) {
			t.Errorf("Open(%q) = %q, want a position that is sealed to the same cursor", cursor, position)
		}
		if strings.TrimSpace(cursor) == "" && position != "" {
			t.Errorf(`Open(%q) = %q, want ""`, cursor, position)
		}
	})
}

// FuzzHeaders reads what clients send in the headers that the server parses itself.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"gzip", "gzip;q=0, *", "*;q=1e999", ",,;q=,", `"3"`, `W/"3", *`, "gzip;q=-1;q=2", "\xff;q=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		_ = AcceptsGzip(http.Header{"Accept-Encoding": {value, value}}) // must not panic
		if NamesTag(value, RevisionTag(3)) && !strings.Contains(value, RevisionTag(3)) && !strings.Contains(value, "*") {
			t.Errorf("NamesTag(%q) = true, want false for a header without the tag", value)
		}
		_ = CreateOnly(value)
	})
}
