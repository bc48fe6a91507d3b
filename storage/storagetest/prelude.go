package storagetest

import (
	_ "embed"
	"strconv"
	"strings"
)

//go:embed strict.lua
var strictLua string

//go:embed cut.lua
var cutLua string

// StrictKeys is a prelude (see storage.Config.ScriptPrelude) that fails a script
// which touches a key that it did not declare.
func StrictKeys() string { return oneLine(strictLua) }

// CutAfter is a prelude that ends every script after its nth write, which a
// crash in the middle of a script does on KVRocks.
func CutAfter(n int) string {
	return oneLine(strings.ReplaceAll(cutLua, "CUT_AFTER", strconv.Itoa(n)))
}

// oneLine keeps the line numbers of the script behind the prelude.
func oneLine(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line + " ")
		}
	}
	return b.String()
}
