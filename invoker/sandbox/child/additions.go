package child

import (
	"bytes"
	_ "embed"

	"github.com/dop251/goja"
)

// additionsSource defines the methods in JavaScript: Object.groupBy, Map.groupBy,
// Promise.withResolvers, Promise.try and Array.fromAsync.
//
//go:embed additions.js
var additionsSource string

// additionsFor returns a program of the methods that a script names and goja lacks, nil for
// most: a fresh realm should not pay for additions that its script does not use. It looks
// for the names as text: a script that only mentions one, in a string for example, gets the
// additions too, and a script that composes a name at run time gets none.
func additionsFor(script []byte) (*goja.Program, error) {
	for _, name := range []string{"groupBy", "withResolvers", "Promise.try", "fromAsync"} {
		if bytes.Contains(script, []byte(name)) {
			return goja.Compile("additions.js", additionsSource, true)
		}
	}
	return nil, nil
}
