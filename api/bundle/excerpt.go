package bundle

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/rivo/uniseg"

	"github.com/codesous/sous/api"
)

// excerptBefore and excerptAfter bound the text of a long line, such as a minified one, that an
// excerpt has on either side of the column, in characters.
const (
	excerptBefore = 50
	excerptAfter  = 30
)

// Excerpt returns a line of source and below it a caret under the column, without a line break
// at the end. Columns count UTF-16 code units from 1, as source maps do. Of a long line only
// the part around the column is shown. Indentation is removed, tabs are two spaces, and
// characters that cannot be printed are replaced.
//
//	Excerpt("\treturn 1 +;", 12)  "return 1 +;\n          ^"
//
// It returns "" for a blank line, and for a column that is not 1 to one more than the length.
func Excerpt(line string, column int) string {
	runes := []rune(strings.TrimRight(line, "\r\n"))
	at, unit := 0, 1
	for ; at < len(runes) && unit < column; at++ {
		unit += utf16.RuneLen(runes[at])
	}
	if column < 1 || unit < column || strings.TrimSpace(string(runes)) == "" {
		return ""
	}
	first := 0
	for first < at && unicode.IsSpace(runes[first]) {
		first++
	}
	cutBefore, cutAfter := "", ""
	if at-first > excerptBefore {
		first, cutBefore = at-excerptBefore, "…"
	}
	last := len(runes)
	if last-at > excerptAfter && last-first > excerptBefore+excerptAfter {
		last, cutAfter = max(at+excerptAfter, first+excerptBefore+excerptAfter), "…"
		last = min(last, len(runes))
	}
	before := cutBefore + shown(runes[first:at])
	return strings.TrimRight(before+shown(runes[at:last])+cutAfter, " ") + "\n" + strings.Repeat(" ", uniseg.StringWidth(before)) + "^"
}

// shown returns source with tabs as spaces and without characters that would move the cursor.
func shown(source []rune) string {
	var b strings.Builder
	for _, r := range source {
		switch {
		case r == '\t':
			b.WriteString("  ")
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(unicode.ReplacementChar)
		}
	}
	return b.String()
}

// Column returns the column, in UTF-16 code units from 1, of the byte at the offset in line.
func Column(line string, offset int) int {
	column := 1
	for _, r := range line[:min(max(offset, 0), len(line))] {
		column += utf16.RuneLen(r)
	}
	return column
}

// AddExcerpts adds excerpts to those Fields of err that name a place in a file and have none.
// read returns the contents of a file, nil if there is none of that path. Like WithFields it is
// meant for an error that was just made. It does nothing to an error without such fields.
func AddExcerpts(err error, read func(path string) []byte) {
	var coded *api.Error
	if !errors.As(err, &coded) {
		return
	}
	fields := make([]api.FieldError, 0, len(coded.Fields))
	for _, f := range coded.Fields {
		if f.Line > 0 && f.Excerpt == "" {
			f.Excerpt = Excerpt(lineOf(read(f.Path), f.Line), f.Column)
		}
		fields = append(fields, f)
	}
	coded.Fields = fields
}

// WithExcerpts returns err, a refusal of the bundle tar, after AddExcerpts if its code is
// CodeValidationSource.
func WithExcerpts(tar []byte, err error) error {
	if api.ErrorCode(err) != api.CodeValidationSource {
		return err
	}
	files, unreadable := Unpack(bytes.NewReader(tar))
	if unreadable == nil {
		AddExcerpts(err, func(path string) []byte { return files[path] })
	}
	return err
}

// lineOf returns a line of a text, which counts from 1, "" if the text has fewer.
func lineOf(text []byte, number int) string {
	for range number - 1 {
		_, rest, found := bytes.Cut(text, []byte("\n"))
		if !found {
			return ""
		}
		text = rest
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}
