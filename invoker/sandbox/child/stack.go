package child

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// mappedColumn corrects goja's columns: of a position that it found in a source map
// it returns the map's own column, which counts from 0.
const mappedColumn = 1

// maxStackFrames bounds the frames of a stack that are written, before the limit in bytes.
const maxStackFrames = 100

// frames writes a stack in goja's own form, which cleanStack reads.
//
// A frame without a position in the script is "native".
func frames(stack []goja.StackFrame) string {
	var b strings.Builder
	for _, f := range stack[:min(len(stack), maxStackFrames)] {
		b.WriteString("\tat ")
		place := "native"
		if f.SrcName() != "<native>" {
			place = f.Position().String() + "(0)"
		}
		if name := f.FuncName(); name != "<anonymous>" && name != "<native>" {
			place = name + " (" + place + ")"
		}
		b.WriteString(place)
		b.WriteByte('\n')
	}
	return b.String()
}

// cleanStack turns goja's form of a stack, "\tat f (function.js:3:9(12))", into
// the usual "    at f (function.js:3:10)", without the frames that are not the
// user's.
//
// Frames of the wrapper that compile adds, which no source map names, and of native
// functions are left out, and the middle of a stack of more than maxFrames: a recursion
// without an end has hundreds. Lines that are no frames, such as the message, stay.
func cleanStack(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	kept := lines[:0]
	shown := 0
	for _, line := range lines {
		frame, ok := strings.CutPrefix(line, "\tat ")
		switch {
		case !ok:
			kept = append(kept, line)
		case strings.Contains(frame, scriptName+":") || frame == "native":
		default:
			kept = append(kept, "    at "+cleanFrame(frame))
			shown++
		}
	}
	if omitted := shown - maxFrames; omitted > 1 {
		first := len(kept) - shown + maxFrames - lastFrames // frames follow all other lines
		kept[first] = "    … " + strconv.Itoa(omitted) + " more frames"
		kept = slices.Delete(kept, first+1, first+omitted)
	}
	return strings.Join(kept, "\n")
}

const (
	maxFrames  = 20 // frames that cleanStack shows
	lastFrames = 5  // of these, the outermost ones
)

// cleanFrame rewrites "f (file:line:column(counter))" or its form without a name.
func cleanFrame(frame string) string {
	name, place := "", frame
	if at := strings.LastIndex(frame, " ("); at >= 0 && strings.HasSuffix(frame, ")") {
		name, place = frame[:at], frame[at+2:len(frame)-1]
	}
	if at := strings.LastIndexByte(place, '('); at >= 0 {
		place = place[:at] // goja's instruction counter
	}
	file, line, column, ok := cutPlace(place)
	if ok && file != "<eval>" {
		if unescaped, err := url.PathUnescape(file); err == nil {
			file = unescaped
		}
		place = file + ":" + line + ":" + strconv.Itoa(column+mappedColumn)
	}
	if name == "" {
		return place
	}
	return name + " (" + place + ")"
}

// cutPlace splits "file:line:column" at its last two colons: a file's name may contain
// colons. line stays text; column is goja's.
func cutPlace(place string) (file, line string, column int, ok bool) {
	at := strings.LastIndexByte(place, ':')
	if at < 0 {
		return "", "", 0, false
	}
	column, err := strconv.Atoi(place[at+1:])
	if err != nil {
		return "", "", 0, false
	}
	place = place[:at]
	at = strings.LastIndexByte(place, ':')
	if at < 0 {
		return "", "", 0, false
	}
	return place[:at], place[at+1:], column, true
}
