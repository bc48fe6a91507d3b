package child

import (
	"bytes"
	"errors"
	"slices"

	"github.com/dop251/goja/parser"
)

// importHelper stands for import() of a name that is computed.
const importHelper = "__cs_import"

// importText is the helper. A name is not a file: what a bundle holds is decided when it
// is compiled.
const importText = "async function " + importHelper + "(name){throw new TypeError(`import(\"${name}\"): the name of a dynamic import must be written out`)}\n"

// lowerImports replaces the dynamic imports whose names are computed, which esbuild leaves
// and goja cannot parse, by calls of a function that rejects.
func lowerImports(script []byte) []byte {
	const dynamic = "import("
	found := false
	for bytes.Contains(script, []byte(dynamic)) {
		_, err := parser.ParseFile(nil, scriptName, script, 0, parser.WithDisableSourceMaps)
		var list parser.ErrorList
		if !errors.As(err, &list) || len(list) == 0 {
			break
		}
		at := offsetOf(script, list[0].Position.Line, list[0].Position.Column)
		if at < 0 || !bytes.HasPrefix(script[at:], []byte(dynamic)) {
			break
		}
		script = slices.Replace(script, at, at+len("import"), []byte(importHelper)...)
		found = true
	}
	if !found {
		return script
	}
	end := bytes.LastIndex(script, []byte("return "+bindName+"})"))
	return slices.Insert(script, end, []byte(importText)...)
}

// offsetOf returns where a position that counts lines and columns from 1 is, -1 if nowhere.
func offsetOf(script []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(script[at:], '\n')
		if n < 0 {
			return -1
		}
		at += n + 1
	}
	at += column - 1
	if at < 0 || at >= len(script) {
		return -1
	}
	return at
}
