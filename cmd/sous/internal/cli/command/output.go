package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// The values of --output.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// ValidateFormat refuses a value of --output other than FormatText and FormatJSON.
func ValidateFormat(s string) error {
	if s != FormatText && s != FormatJSON {
		return fmt.Errorf("--output %q: want text or json", s)
	}
	return nil
}

// Print prints v as indented JSON under --output json, else text. Control characters in text
// are printed as escape sequences of Go, except line feeds, tabs and the colors of Paint.
func (a *App) Print(v any, text string) error {
	return a.PrintRaw(v, a.printable(text))
}

// PrintRaw is Print for text that is printed as it is. It is for text that goes to a file or
// another program: see StdoutIsTerminal.
func (a *App) PrintRaw(v any, text string) error {
	if a.Output != FormatJSON {
		_, err := io.WriteString(a.Stdout, text)
		return err
	}
	out := jsonTo(a.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// PrintLine prints one value of a stream: v as one line of JSON under --output json, else
// text and a line break. Control characters in text are printed as by Print.
func (a *App) PrintLine(v any, text string) error {
	if a.Output == FormatJSON {
		return jsonTo(a.Stdout).Encode(v)
	}
	_, err := fmt.Fprintln(a.Stdout, a.printable(text))
	return err
}

// jsonTo returns an encoder that writes one value a line and does not escape <, > and &:
// the output is no part of an HTML page. It escapes the control characters that encoding/json
// leaves as they are.
func jsonTo(w io.Writer) *json.Encoder {
	out := json.NewEncoder(escapingWriter{w})
	out.SetEscapeHTML(false)
	return out
}

// escapingWriter writes JSON with every control character as an escape sequence of JSON. The
// encoder writes each value at once, so no character is divided.
type escapingWriter struct{ io.Writer }

// Write implements io.Writer.
func (w escapingWriter) Write(text []byte) (int, error) {
	if bytes.IndexFunc(text, controls) < 0 {
		return w.Writer.Write(text)
	}
	var b strings.Builder
	for _, r := range string(text) {
		if controls(r) {
			fmt.Fprintf(&b, `\u%04x`, r) // none of them is above U+FFFF
		} else {
			b.WriteRune(r)
		}
	}
	_, err := io.WriteString(w.Writer, b.String())
	return len(text), err
}

// Note prints a remark on stderr, with control characters as by Print. Under --output json and
// --quiet it prints nothing, so results must not depend on it.
func (a *App) Note(format string, args ...any) {
	if a.Output != FormatText || a.Quiet {
		return
	}
	a.screen.Lock()
	defer a.screen.Unlock()
	text := a.printable(fmt.Sprintf(format, args...)) + "\n"
	if a.drawn {
		text = eraseLine + text // the line of progress is drawn again below the note
	}
	_, _ = io.WriteString(a.Stderr, text) // only a remark
}

// List is the JSON form of the output of a list command.
type List[T any] struct {
	Items []T `json:"items"`
}

// PrintList prints items as a List, or as a table with one row for each item. row returns as
// many cells as header has.
func PrintList[T any](a *App, items []T, header []string, row func(T) []string) error {
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		rows = append(rows, row(item))
	}
	if items == nil {
		items = []T{} // [] in JSON, not null
	}
	return a.Print(List[T]{items}, Table(a.fit(header, rows)))
}

// PrintPages prints the first limit items (0: all of them) of a listing that list returns
// in pages, as PrintList does.
func PrintPages[T any](ctx context.Context, a *App, list func(context.Context, client.PageOptions) (api.Page[T], error),
	limit uint, header []string, row func(T) []string,
) error {
	items, more, err := Collect(client.All(ctx, list, client.PageOptions{}), limit)
	if err != nil {
		return err
	}
	a.NoteMore(more)
	return PrintList(a, items, header, row)
}

// Table aligns rows under header. Without rows it returns "none".
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

// Printable returns text with every character that is not printable as a Go escape
// sequence. Names, paths and messages come from other users: control sequences in them
// must not move the cursor or hide lines. A byte that is no UTF-8 becomes U+FFFD: some
// terminals take such bytes for control characters.
func Printable(text string) string {
	return escape(text, unprintable)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// PrintableLines is Printable for text of several lines, with tabs.
func PrintableLines(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && r != '\t' && unprintable(r) })
}

// escape returns text with the characters for which escaped is true as escape sequences of Go.
func escape(text string, escaped func(rune) bool) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if strings.IndexFunc(text, escaped) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if escaped(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// controls reports whether r can change what a terminal shows of other text: a control
// character other than the line feed and the tab, or one of those that change the direction of
// text. Unlike unprintable it leaves the characters that join emoji.
func controls(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

// printable returns text for a terminal: without control characters, except the colors of Paint.
func (a *App) printable(text string) string {
	if !a.colored() {
		return escape(text, controls)
	}
	var b strings.Builder
	for {
		at := paint.FindStringIndex(text)
		if at == nil {
			return b.String() + escape(text, controls)
		}
		b.WriteString(escape(text[:at[0]], controls) + text[at[0]:at[1]])
		text = text[at[1]:]
	}
}

// trimLineEnds removes trailing blanks: those that align an empty last column.
func trimLineEnds(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// Collect returns the first limit items (0: all of them) and reports whether there are
// more. It asks for one item more than it returns, and stops at the first error.
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

// Silent returns an App that works on the same server and prints no notes, progress or results.
func (a *App) Silent() *App {
	return &App{Stdin: a.Stdin, Stdout: io.Discard, Stderr: io.Discard, Output: FormatJSON, Quiet: true, remote: a.remote}
}

// Plural returns a number with its noun: "1 file", "2 files".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// DurationText returns a duration without the units that are zero: "1m", not "1m0s".
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Mark returns text if on is set, else "-": a cell of a table.
func Mark(on bool, text string) string {
	if on {
		return text
	}
	return "-"
}

// TimeText returns the local time of a Unix time in milliseconds, to the second, "-" for 0.
// --output json has the milliseconds.
func TimeText(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format(time.DateTime)
}

// SizeText returns a number of bytes with its unit, B, KiB or MiB.
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

// ShortDigest returns the first 12 digits of a SHA-256: enough to tell two versions apart.
func ShortDigest(sha256 string) string { return sha256[:min(len(sha256), 12)] }

// IndentJSON returns raw, indented and with a line break at its end. Text that is no JSON
// is not indented.
func IndentJSON(raw json.RawMessage) string {
	var b strings.Builder
	out := jsonTo(&b)
	out.SetIndent("", "  ")
	if err := out.Encode(raw); err != nil {
		return PrintableLines(string(raw)) + "\n"
	}
	return b.String()
}
