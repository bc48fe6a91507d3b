package bundle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

func TestExcerptsPointAtTheColumn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60) + "X" + strings.Repeat("b", 60)
	for name, tt := range map[string]struct {
		line   string
		column int
		want   string
	}{
		"the first column":     {"= 1;", 1, "= 1;\n^"},
		"after the last":       {"let x", 6, "let x\n     ^"},
		"beyond the line":      {"let x", 7, ""},
		"no column":            {"let x", 0, ""},
		"a blank line":         {"  \t", 1, ""},
		"indentation":          {"\t\tlet = 1;", 7, "let = 1;\n    ^"},
		"in the indentation":   {"    x", 3, "  x\n^"},
		"tabs":                 {"a\t= =", 5, "a  = =\n     ^"},
		"Windows":              {"let =\r\n", 5, "let =\n    ^"},
		"surrogate pairs":      {"a😀b =", 6, "a😀b =\n     ^"},
		"wide characters":      {"中文 = =", 6, "中文 = =\n       ^"},
		"control characters":   {"a\x1b[2J=", 6, "a\ufffd[2J=\n     ^"},
		"a long line":          {long, 61, "…" + long[10:90] + "…\n" + strings.Repeat(" ", 51) + "^"},
		"a long line's end":    {long, 121, "…" + long[70:] + "\n" + strings.Repeat(" ", 51) + "^"},
		"a long line's start":  {long, 1, long[:80] + "…\n^"},
		"a line of 80":         {long[:80], 1, long[:80] + "\n^"},
		"no valid UTF-8":       {"a\xff=", 3, "a\ufffd=\n  ^"},
		"a column of no sense": {"let", -1 << 62, ""},
	} {
		if got := bundle.Excerpt(tt.line, tt.column); got != tt.want {
			t.Errorf("%s: Excerpt(%q, %d)\ngot  %q\nwant %q", name, tt.line, tt.column, got, tt.want)
		}
	}
}

func TestColumnsCountCodeUnits(t *testing.T) {
	t.Parallel()
	for offset, want := range map[int]int{-1: 1, 0: 1, 2: 2, 6: 4, 99: 6} {
		if got := bundle.Column("é😀bc", offset); got != want {
			t.Errorf("Column(é😀bc, %d) = %d, want %d", offset, got, want)
		}
	}
}

func TestErrorsGetTheirLinesOfSource(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("publish: %w", api.Errorf(api.CodeValidationSource, "x").WithFields(
		api.FieldError{Path: "a.js", Line: 2, Column: 3},
		api.FieldError{Path: "a.js", Line: 3, Column: 1},
		api.FieldError{Path: "a.js", Line: 4, Column: 1},
		api.FieldError{Path: "none.js", Line: 1, Column: 1},
		api.FieldError{Path: "a.js"},
		api.FieldError{Path: "a.js", Line: 1, Column: 1, Excerpt: "kept"},
	))
	bundle.AddExcerpts(err, func(path string) []byte {
		if path == "a.js" {
			return []byte("one\ntwo\nthree")
		}
		return nil
	})
	var coded *api.Error
	if !errors.As(err, &coded) {
		t.Fatalf("got %v, want a coded error", err)
	}
	want := []string{"two\n  ^", "three\n^", "", "", "", "kept"}
	for i, f := range coded.Fields {
		if f.Excerpt != want[i] {
			t.Errorf("field %d: got excerpt %q, want %q", i, f.Excerpt, want[i])
		}
	}
	plain := errors.New("x")
	bundle.AddExcerpts(plain, func(string) []byte { panic("no file is needed") })
}
