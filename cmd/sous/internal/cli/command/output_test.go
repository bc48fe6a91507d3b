package command

import (
	"bytes"
	"testing"
)

// Control characters in a name do not move a cell of a table.
func TestTablesPrintNoControls(t *testing.T) {
	t.Parallel()
	got := Table([]string{"WHO", "PATH"}, [][]string{
		{"a", "/x\x1b[2J\r\nb\tFAKE\u202e\u009b"},
		{"é", "日本 'ok'"},
	})
	want := "WHO  PATH\n" +
		`a    /x\x1b[2J\r\nb\tFAKE\u202e\u009b` + "\n" +
		"é    日本 'ok'\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTextsPrintNoControls: Print and Note escape what controls a terminal, and leave lines and
// emoji.
func TestTextsPrintNoControls(t *testing.T) {
	t.Parallel()
	const text, want = "a\tb \x1b[2J\u009b\x7f\u202e\xff\r\n\U0001f469\u200d\U0001f680\n", "a\tb \\x1b[2J\\u009b\\x7f\\u202e\ufffd\\r\n\U0001f469\u200d\U0001f680\n"
	var out, errs bytes.Buffer
	a := &App{Stdout: &out, Stderr: &errs, Output: FormatText}
	if err := a.Print(nil, text); err != nil || out.String() != want {
		t.Errorf("Print: got %q, %v; want %q, nil", out.String(), err, want)
	}
	a.Note("%s", text)
	if want := want + "\n"; errs.String() != want {
		t.Errorf("Note: got %q, want %q", errs.String(), want)
	}
	if got, want := IndentJSON([]byte("\"\u009b\x7f\u202e\"")), "\"\\u009b\\u007f\\u202e\"\n"; got != want {
		t.Errorf("IndentJSON: got %q, want %q", got, want)
	}
}
