package command

import (
	"os"
	"regexp"

	"golang.org/x/term"

	"github.com/codesous/sous/api"
)

// A Color is the SGR parameter of an ANSI escape sequence.
type Color string

// The colors of text on a terminal.
const (
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Gray   Color = "90"
)

// Paint returns text in a color if stdout is a terminal and NO_COLOR is not set
// (https://no-color.org).
func (a *App) Paint(c Color, text string) string {
	if c == "" || !a.colored() {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// paint matches the sequences that Paint writes.
var paint = regexp.MustCompile("\x1b\\[(0|31|32|33|90)m")

// colored reports whether stdout shows colors.
func (a *App) colored() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && a.StdoutIsTerminal()
}

// StdoutIsTerminal reports whether stdout is a terminal.
func (a *App) StdoutIsTerminal() bool {
	out, ok := a.Stdout.(*os.File)
	return ok && term.IsTerminal(int(out.Fd()))
}

// StatusColor returns the color of an activation's status.
func StatusColor(s api.Status) Color {
	switch s {
	case api.StatusSuccess:
		return Green
	case api.StatusError, api.StatusTimeout:
		return Red
	case api.StatusCancelled:
		return Yellow
	}
	return ""
}

// LevelColor returns the color of the level of a log line.
func LevelColor(level string) Color {
	switch level {
	case "error":
		return Red
	case "warn":
		return Yellow
	case "debug":
		return Gray
	}
	return ""
}
