package docstest

import (
	"regexp"
	"strings"
	"testing"
)

// matches reports whether an output is the expected one, in which "…" stands for any
// text of a line and a line "…" for any lines. Spaces at the ends of lines do not count.
func matches(expected, output string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.Lines(trimmed(expected)) {
		line = strings.TrimRight(line, "\n")
		if line == "…" {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(`.*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(trimmed(remark.ReplaceAllString(output, "")))
}

// remark matches what a command prints on stderr if it takes longer than a second.
var remark = regexp.MustCompile(`(?m)^[a-z]+ing .*…\n`)

// trimmed ends each line without spaces, and the text with one newline.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimRight(text, " \r\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \r")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expected, output string
		want             bool
	}{
		{"a\n", "a", true},
		{"a\n", "a\nb\n", false},
		{"a\n", "ab\n", false},
		{"a…z\n", "a.*?z\n", true},
		{"a…z\n", "a\nz\n", false},
		{"a\n…\nz\n", "a\nz\n", true},
		{"a\n…\nz\n", "a\nb\nc\nz\n", true},
		{"…\n", "\n", true},
		{"a\n…\n", "b\n", false},
		{"a  b\n", "a b\n", false},
		{"a\n", "a   \n\n", true},
		{"a\nb\n", "a\ndeploying hello…\nb\n", true},
		{"a\n", "deploying hello\na\n", false},
	} {
		if got := matches(tt.expected, tt.output); got != tt.want {
			t.Errorf("matches(%q, %q) = %v, want %v", tt.expected, tt.output, got, tt.want)
		}
	}
}
