package child

import (
	"bytes"
	"errors"

	"github.com/dop251/goja/parser"
)

// maxQuotedFields bounds the fields of a script that quoteFields quotes, since each of them
// costs one parse of the script up to it.
const maxQuotedFields = 64

// quoteFields quotes the names of fields that goja takes for the beginning of a method:
// get, set and async, as in
//
//	class Context { get; set = (name) => … }    // class Context { get; "set" = (name) => … }
//
// Each parse finds one of them, by goja's error behind it. The script is
// returned as it is where goja has another error.
func quoteFields(script []byte) []byte {
	for range maxQuotedFields {
		_, err := parser.ParseFile(nil, scriptName, script, 0, parser.WithDisableSourceMaps)
		var list parser.ErrorList
		if !errors.As(err, &list) || len(list) == 0 {
			return script
		}
		behind := offsetOf(script, list[0].Position.Line, list[0].Position.Column)
		if behind < 0 {
			return script
		}
		// The error is at the token behind the = or } that follows the name.
		name := bytes.TrimRight(script[:behind], " \t\n")
		name = bytes.TrimRight(name[:max(len(name)-1, 0)], " \t\n")
		begin := len(name)
		for begin > 0 && name[begin-1] >= 'a' && name[begin-1] <= 'z' {
			begin--
		}
		switch word := string(name[begin:]); word {
		case "get", "set", "async":
			script = applyEdits(script, []edit{{begin, len(name), `"` + word + `"`}})
		default:
			return script
		}
	}
	return script
}
