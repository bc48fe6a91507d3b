package command

import (
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/term"
)

const (
	columnGap      = 2  // blanks between the columns of a Table
	readableColumn = 24 // characters that a shortened text keeps while something else can go
	minColumn      = 10 // characters that a shortened text keeps at least
)

// fit returns header and rows changed so that their table fits the terminal of stdout. If
// stdout is no terminal, it returns them unchanged: scripts read whole cells.
func (a *App) fit(header []string, rows [][]string) ([]string, [][]string) {
	width := a.Width()
	if width == 0 {
		return header, rows
	}
	return fitWidth(header, rows, width)
}

// Width returns the number of characters in a line of the terminal of stdout, 0 if stdout is
// no terminal.
func (a *App) Width() int {
	out, ok := a.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 0
	}
	return max(width, 0)
}

// fitWidth changes a table until its lines have at most width characters, as far as that is
// possible. It begins with what readers miss least: the ends of texts, the year of times,
// columns without a value, the seconds of times, and all of an id but its end, which logs print
// and commands accept. It cuts neither headers nor the first column,
// which names the resource and is copied into other commands.
func fitWidth(header []string, rows [][]string, width int) ([]string, [][]string) {
	if len(rows) == 0 {
		return header, rows // no column has a value, but the headers say what there would be
	}
	t := newFitting(header, rows)
	for _, step := range []func(){t.omitYears, t.omitEmpty, t.omitSeconds, t.abbreviateIDs} {
		if t.shortenTexts(width, readableColumn) {
			return t.header, t.rows
		}
		step()
	}
	if !t.shortenTexts(width, readableColumn) {
		t.shortenTexts(width, minColumn)
	}
	return t.header, t.rows
}

// fitting is a table that fitWidth changes. Its cells are printable.
type fitting struct {
	header []string
	rows   [][]string
	whole  []bool // the columns of times and ids, which say nothing without their end
}

func newFitting(header []string, rows [][]string) *fitting {
	t := &fitting{header: header, rows: make([][]string, len(rows)), whole: make([]bool, len(header))}
	for r, row := range rows {
		t.rows[r] = make([]string, len(row))
		for c, cell := range row {
			t.rows[r][c] = Printable(cell)
		}
	}
	for c := range header {
		t.whole[c] = t.all(c, func(cell string) bool { return isTime(cell) || isID(cell) || isEmptyCell(cell) })
	}
	return t
}

// all reports whether is holds for all cells of column c.
func (t *fitting) all(c int, is func(string) bool) bool {
	return !slices.ContainsFunc(t.rows, func(row []string) bool { return !is(row[c]) })
}

// change replaces the cells of the columns for which is holds in all cells.
func (t *fitting) change(is func(string) bool, with func(string) string) {
	for c := range t.header {
		if !t.all(c, func(cell string) bool { return is(cell) || isEmptyCell(cell) }) {
			continue
		}
		for _, row := range t.rows {
			if !isEmptyCell(row[c]) {
				row[c] = with(row[c])
			}
		}
	}
}

func isEmptyCell(cell string) bool { return cell == "" || cell == "-" }

func isTime(cell string) bool {
	_, err := time.Parse(time.DateTime, cell)
	return err == nil
}

func isShortTime(cell string) bool {
	_, err := time.Parse(dayAndTime, cell)
	return err == nil
}

func isID(cell string) bool { return uuid.Validate(cell) == nil && len(cell) == len(uuid.Nil.String()) }

// dayAndTime is time.DateTime without the year.
const dayAndTime = "01-02 15:04:05"

func (t *fitting) omitYears() {
	t.change(isTime, func(cell string) string { return cell[len(time.DateTime)-len(dayAndTime):] })
}

func (t *fitting) omitSeconds() {
	t.change(isShortTime, func(cell string) string { return cell[:len(dayAndTime)-len(":05")] })
}

func (t *fitting) abbreviateIDs() {
	t.change(isID, ShortID)
}

// omitEmpty removes the columns without a value in any row, except the first.
func (t *fitting) omitEmpty() {
	for c := len(t.header) - 1; c > 0; c-- {
		if !t.all(c, isEmptyCell) {
			continue
		}
		t.header = slices.Delete(slices.Clone(t.header), c, c+1)
		t.whole = slices.Delete(t.whole, c, c+1)
		for r := range t.rows {
			t.rows[r] = slices.Delete(t.rows[r], c, c+1)
		}
	}
}

// shortenTexts shortens the widest columns, to not less than least characters each, and reports
// whether the table then has at most width characters a line. If it has not, cells stay as they
// are, unless least is minColumn: nothing else is left then.
func (t *fitting) shortenTexts(width, least int) bool {
	widths := make([]int, len(t.header))
	total := columnGap * (len(t.header) - 1)
	for c, name := range t.header {
		widths[c] = utf8.RuneCountInString(name)
		for _, row := range t.rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
		total += widths[c]
	}
	for ; total > width; total-- {
		widest := 0
		for c := 1; c < len(widths); c++ {
			mayShrink := !t.whole[c] && widths[c] > max(least, utf8.RuneCountInString(t.header[c]))
			if mayShrink && (widest == 0 || widths[c] > widths[widest]) {
				widest = c
			}
		}
		if widest == 0 {
			break
		}
		widths[widest]--
	}
	if total > width && least > minColumn {
		return false
	}
	for _, row := range t.rows {
		for c := range row {
			row[c] = shorten(row[c], widths[c])
		}
	}
	return total <= width
}

// shorten returns the first characters of text and an ellipsis if text has more than width.
func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// FittedTable is Table whose lines have at most width characters, if the columns can be
// shortened to that; a width of 0 shortens nothing.
func FittedTable(header []string, rows [][]string, width int) string {
	if width > 0 {
		header, rows = fitWidth(header, rows, width)
	}
	return Table(header, rows)
}
