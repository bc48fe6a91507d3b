package command

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// The forms in which commands print what they found.
const (
	FormatText = "text"
	FormatJSON = "json"
)

func ValidateFormat(s string) error {
	if s != FormatText && s != FormatJSON {
		return fmt.Errorf("--output %q: want text or json", s)
	}
	return nil
}

// Print gives v to scripts as indented JSON, or text to people.
func (a *App) Print(v any, text string) error {
	if a.Output != FormatJSON {
		_, err := io.WriteString(a.Stdout, text)
		return err
	}
	out := jsonTo(a.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// PrintLine prints one value of a stream: v on a line of NDJSON for scripts, or text for
// people.
func (a *App) PrintLine(v any, text string) error {
	if a.Output == FormatJSON {
		return jsonTo(a.Stdout).Encode(v)
	}
	_, err := fmt.Fprintln(a.Stdout, text)
	return err
}

// jsonTo writes JSON as it is, one value a line: no output of ours is part of a page.
func jsonTo(w io.Writer) *json.Encoder {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out
}

// Note tells people something beside the output; scripts are not told.
func (a *App) Note(format string, args ...any) {
	if a.Output == FormatText {
		_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...) // only a remark
	}
}

// List is what a list command prints as JSON.
type List[T any] struct {
	Items []T `json:"items"`
}

// PrintList prints items as a table with a header, one row an item.
func PrintList[T any](a *App, items []T, header []string, row func(T) []string) error {
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		rows = append(rows, row(item))
	}
	if items == nil {
		items = []T{} // [] in JSON, not null
	}
	return a.Print(List[T]{items}, Table(header, rows))
}

// Table aligns rows under header; without rows it says so.
func Table(header []string, rows [][]string) string {
	if len(rows) == 0 {
		return "none\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range append([][]string{header}, rows...) {
		shown := make([]string, len(cells))
		for i, cell := range cells {
			shown[i] = Printable(cell)
		}
		// A strings.Builder takes every write.
		_, _ = fmt.Fprintln(w, strings.Join(shown, "\t"))
	}
	_ = w.Flush()
	return trimLineEnds(b.String())
}

// Printable is text with everything that a terminal would not print, but act upon,
// as Go writes it: others choose the paths of the audit, names and messages, and
// must not move the cursor over what they did.
func Printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// trimLineEnds removes the blanks that align a last column that is empty.
func trimLineEnds(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// Collect takes the first limit items of a list (0: all of them) and says
// whether there are more.
func Collect[T any](items iter.Seq2[T, error], limit uint) (out []T, more bool, err error) {
	for item, err := range items {
		if err != nil {
			return nil, false, err
		}
		if limit > 0 && uint(len(out)) == limit {
			return out, true, nil
		}
		out = append(out, item)
	}
	return out, false, nil
}

// Mark is text for a cell of a table where on holds, else "-".
func Mark(on bool, text string) string {
	if on {
		return text
	}
	return "-"
}

func TimeText(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format(time.DateTime)
}

func SizeText(n int64) string {
	const unit = 1024
	switch {
	case n < unit:
		return fmt.Sprintf("%d B", n)
	case n < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(n)/unit)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(unit*unit))
}

// ShortDigest is enough of a sha256 to tell two versions apart.
func ShortDigest(sha256 string) string { return sha256[:min(len(sha256), 12)] }

// IndentJSON is raw with line breaks for people; what is no JSON stays as it is.
func IndentJSON(raw json.RawMessage) string {
	var b strings.Builder
	out := jsonTo(&b)
	out.SetIndent("", "  ")
	if err := out.Encode(raw); err != nil {
		return string(raw) + "\n"
	}
	return b.String()
}
