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
// which touches a key that it did not declare. Where the server is not KVRocks, it
// also makes the server answer scripts as KVRocks does.
func StrictKeys() string {
	const shared = "local expired = {} " // keys that the prelude of ExpireBefore removed
	if OnKVRocks() {
		return shared + oneLine(strictLua)
	}
	return shared + oneLine(kvrocksLua) + oneLine(strictLua)
}

// CutAfter is StrictKeys and ends every script after its nth write, which a crash in
// the middle of a script does on KVRocks.
func CutAfter(n int) string {
	return StrictKeys() + oneLine(strings.ReplaceAll(cutLua, "CUT_AFTER", strconv.Itoa(n)))
}

// ExpireBefore is StrictKeys and lets every key that has less than a minute to live
// expire before a script's nth command, counted from 1; see ShortLived.
func ExpireBefore(n int) string {
	return StrictKeys() + oneLine(strings.ReplaceAll(expireLua, "EXPIRE_BEFORE", strconv.Itoa(n)))
}

// OnKVRocks reports whether the tests' store server is KVRocks.
func OnKVRocks() bool {
	b, err := binary()
	return err == nil && b.Kind == storeserver.KVRocks // starting the server fails with err
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
