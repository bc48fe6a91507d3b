package child

import (
	"strings"
	"testing"
)

// TestCursor finds places in ascending order, in descending order and behind the end.
func TestCursor(t *testing.T) {
	t.Parallel()
	sources := []string{"ab😀c\nzweite\n", "second"}
	places := []struct {
		source, line, column int
		want                 string
	}{
		{0, 0, 0, "ab"}, {0, 0, 2, "😀"}, {0, 0, 4, "c"}, {0, 1, 0, "zw"}, {0, 1, 6, "\n"}, {0, 1, 2, "eite"},
		{0, 0, 4, "c\n"}, {1, 0, 1, "econd"}, {0, 0, 1, "b😀"}, {0, 2, 0, ""}, {0, 3, 0, ""}, {0, 1, 99, ""}, {0, 0, 1, "b"},
		{0, 0, 9, ""}, {0, 1, 0, "zw"},
	}
	c := cursor{source: -1}
	for _, p := range places {
		got := string(c.from([]byte(sources[p.source]), place{source: p.source, line: p.line, sourceColumn: p.column}))
		if !strings.HasPrefix(got, p.want) || p.want == "" && got != "" {
			t.Errorf("source %d, line %d, column %d: got %q, want it to begin with %q", p.source, p.line, p.column, got, p.want)
		}
	}
}

// TestCursorGoesOn from its last place: a bundle in one line is read once, not for each of its
// declarations. What was read is replaced by text with fewer characters, which would lead a second
// reading of it to another place.
func TestCursorGoesOn(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("var x;", 1<<16))
	c := cursor{source: -1}
	for column := 0; column < len(text); column += 6 {
		if got := c.from(text, place{sourceColumn: column}); len(got) != len(text)-column {
			t.Fatalf("column %d: got %d bytes, want %d", column, len(got), len(text)-column)
		}
		if column > 0 {
			copy(text[column-6:], "ééé")
		}
	}
}
