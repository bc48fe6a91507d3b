package storagetest

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/codesous/sous/storage/storeserver"
)

//go:embed kvrocks.lua
var kvrocksLua string

//go:embed strict.lua
var strictLua string

//go:embed cut.lua
var cutLua string

//go:embed expire.lua
var expireLua string

// StrictKeys is a prelude (see storage.Config.ScriptPrelude) that fails a script
// which touches a key that it did not declare, or that uses a command which strict.lua does
// not list. Where the server is not KVRocks, it also makes the server answer scripts as
// KVRocks does.
func StrictKeys() string {
	const shared = "local expired = {} " // keys that the prelude of ExpireBefore removed
	if OnKVRocks() {
		return shared + oneLine(strictLua)
	}
	return shared + oneLine(kvrocksLua) + oneLine(strictLua)
}

// CutAfter is StrictKeys, and ends every script after its nth write, as a crash in the
// middle of a script does on KVRocks: the n writes stay, and the call fails with an error that
// contains "CUT". With 0 the script fails before its first write. Scripts with at most n
// writes succeed. cut.lua lists the commands that are not writes; a command that is missing
// there counts as one.
func CutAfter(n int) string {
	return StrictKeys() + oneLine(strings.ReplaceAll(cutLua, "CUT_AFTER", strconv.Itoa(n)))
}

// ExpireBefore is StrictKeys, and lets every key with less than a minute to live expire
// before the nth command of a script, counted from 1; see ShortLived. Only keys that the
// script declares expire.
func ExpireBefore(n int) string {
	return StrictKeys() + oneLine(strings.ReplaceAll(expireLua, "EXPIRE_BEFORE", strconv.Itoa(n)))
}

// OnKVRocks reports whether the tests' store server is KVRocks. Tests use it where a server's
// guarantees differ, such as scripts that a kill interrupts.
func OnKVRocks() bool {
	b, err := binary()
	return err == nil && b.Kind == storeserver.KVRocks // starting the server fails with err
}

// oneLine removes line feeds and comments, so that the script after the prelude keeps its
// line numbers.
func oneLine(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line + " ")
		}
	}
	return b.String()
}
