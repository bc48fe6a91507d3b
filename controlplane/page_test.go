package controlplane

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

func TestCursorsBelongToTheirList(t *testing.T) {
	t.Parallel()
	list := listScope("functions", "t_abcdef", "payments")
	cursor := list.seal("hello")
	if got, err := list.open(*cursor); err != nil || got != "hello" {
		t.Errorf("%q %v", got, err)
	}
	if list.seal("") != nil {
		t.Error("the end has a cursor")
	}
	for name, other := range map[string]scope{
		"another route":     listScope("versions", "t_abcdef", "payments"),
		"another tenant":    listScope("functions", "t_abcdeg", "payments"),
		"parts cut anew":    listScope("functions", "t_abcdefp", "ayments"),
		"one part less":     listScope("functions", "t_abcdefpayments"),
		"an empty part too": listScope("functions", "t_abcdef", "payments", ""),
	} {
		if _, err := other.open(*cursor); api.ErrorCode(err) != api.CodeValidationCursor {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	list := listScope("functions", "t_abcdef")
	f.Add(*list.seal("hello"))
	f.Add("")
	f.Add("AAAAAAAAAAAx")
	f.Add("%")
	f.Fuzz(func(t *testing.T, cursor string) {
		position, err := list.open(cursor)
		if err != nil {
			if api.ErrorCode(err) != api.CodeValidationCursor {
				t.Errorf("code of %v", err)
			}
			return
		}
		// Whatever is accepted is a cursor that this list gave.
		if sealed := list.seal(position); cursor != "" && (sealed == nil || *sealed != cursor) {
			t.Errorf("%q opens to %q, which seals otherwise", cursor, position)
		}
		if strings.TrimSpace(cursor) == "" && position != "" {
			t.Errorf("%q opens to %q", cursor, position)
		}
	})
}
