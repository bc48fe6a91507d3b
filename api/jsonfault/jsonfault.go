// Package jsonfault explains why a text is not JSON.
package jsonfault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Of says why text is not one JSON value, and where: "line 1, column 7: unexpected '}'".
// It returns "" for JSON.
func Of(text []byte) string {
	if len(bytes.TrimSpace(text)) == 0 {
		return "it is empty"
	}
	var v json.RawMessage
	var fault *json.SyntaxError
	if err := json.Unmarshal(text, &v); err == nil || !errors.As(err, &fault) {
		return ""
	}
	at := int(fault.Offset) - 1 // the offset is behind the byte that is wrong
	// encoding/json ends a literal or a number that is cut by a space of its own.
	cut := strings.HasPrefix(fault.Error(), "invalid character ' '") && text[at] != ' '
	if cut || fault.Error() == "unexpected end of JSON input" {
		return "it ends within a value"
	}
	before := text[:at]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	c, _ := utf8.DecodeRune(text[at:])
	return fmt.Sprintf("line %d, column %d: unexpected %q", line, column, c)
}
