package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/codesous/sous/api"
)

// ShortID returns the last 8 characters of an activation's id. The first ones are the time,
// which is the same for activations of the same moment.
func ShortID(id string) string { return id[max(len(id)-8, 0):] }

// MessageText returns the message of a log line: a string without its quotes, another value as
// JSON.
func MessageText(l api.LogLine) string {
	var s string
	if json.Unmarshal(l.Message, &s) == nil {
		return s
	}
	return string(l.Message)
}

// LogText returns a log line as text: its time, its level and its message.
func (a *App) LogText(l api.LogLine) string {
	return TimeText(l.TSMS) + " " + a.levelText(l)
}

// levelText returns the level and the message of a log line.
func (a *App) levelText(l api.LogLine) string {
	return a.Paint(LevelColor(l.Level), fmt.Sprintf("%-5s", strings.ToUpper(l.Level))) + " " + PrintableLines(MessageText(l))
}

// ActivityLine returns a log line of one of several functions, on one line unless its message
// has several:
//
//	12:03:04.250 5f0db2c6 checkout INFO  paid
func (a *App) ActivityLine(function, id string, l api.LogLine) string {
	return a.activity(l.TSMS, function, id) + a.levelText(l)
}

// ActivityEnd returns how an activation of one of several functions ended, on one line. If
// errorShown, a log line with its error was printed, and the line does not repeat it:
//
//	12:03:04.260 5f0db2c6 checkout success in 12 ms (http)
//	12:03:04.260 5f0db2c6 checkout error in 3 ms (queue): TypeError: x is not a function
func (a *App) ActivityEnd(function string, act *api.Activation, errorShown bool) string {
	text := a.activity(act.EndMS, function, act.ActivationID) + a.Paint(StatusColor(act.Status), string(act.Status)) +
		fmt.Sprintf(" in %d ms (%s)", act.DurationMS, act.Trigger.Type)
	if act.Error != nil && !errorShown {
		text += ": " + ErrorSummary(act.Error)
	}
	return text
}

// ShowsError reports whether a log line contains the message of e, as the last line of a failed
// activation does. e may be nil.
func ShowsError(line api.LogLine, e *api.ActivationError) bool {
	return e != nil && strings.Contains(MessageText(line), e.Message)
}

func (a *App) activity(ms int64, function, id string) string {
	return a.Paint(Gray, time.UnixMilli(ms).Format("15:04:05.000")+" "+ShortID(id)) + " " + Printable(function) + " "
}

// maxSummary bounds the characters of an error on one line.
const maxSummary = 120

// ErrorSummary returns the first line of an error's message, with its type unless it is an
// exception, which names itself.
func ErrorSummary(e *api.ActivationError) string {
	text, _, more := strings.Cut(e.Message, "\n")
	if e.Type != api.ErrException {
		text = string(e.Type) + ": " + text
	}
	if runes := []rune(text); len(runes) > maxSummary {
		text, more = string(runes[:maxSummary]), true
	}
	if more {
		text += "…"
	}
	return Printable(text)
}
