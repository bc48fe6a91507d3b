package command

import (
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	columnGap = 2  // blanks between the columns of a Table
	minColumn = 10 // characters that a shortened column keeps
)

// fit returns rows with cells shortened so that their table fits the terminal of stdout. If
// stdout is no terminal, it returns rows: scripts read whole cells.
func (a *App) fit(header []string, rows [][]string) [][]string {
	width := a.Width()
	if width == 0 {
		return rows
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

// fitWidth shortens the widest columns until the table has at most width characters a line,
// or no column can be shortened. It never shortens headers or the first column, which names
// the resource and is copied into other commands.
func fitWidth(header []string, rows [][]string, width int) [][]string {
	widths := make([]int, len(header))
	total := columnGap * (len(header) - 1)
	for i, name := range header {
		widths[i] = utf8.RuneCountInString(name)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(Printable(row[i])))
		}
		total += widths[i]
	}
	for ; total > width; total-- {
		widest := 0
		for i := 1; i < len(widths); i++ {
			least := max(minColumn, utf8.RuneCountInString(header[i]))
			if widths[i] > least && (widest == 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest == 0 {
			break
		}
		widths[widest]--
	}
	out := make([][]string, len(rows))
	for r, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = shorten(Printable(cell), widths[i])
		}
		out[r] = cells
	}
	return out
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
		rows = fitWidth(header, rows, width)
	}
	return Table(header, rows)
}
