// Package lua holds the store's atomic operations, one file each, as scripts for
// EVALSHA. A script declares every key that it touches, reads no clock, and orders its
// writes so that any prefix of them is harmless; docs/storage.md has all rules.
//
// A script begins with a header that says what it does, then lists KEYS, ARGV and the
// reply. Its first statements name its keys and its fixed arguments, in the header's
// order. Arguments that repeat come in groups of a fixed size, which a loop unpacks
// into names as well:
//
//	-- KEYS[1] cs:queue:t:ns:q:active
//	-- ARGV[1] now in ms
//	-- ARGV[2…] two for each job: id, epoch
//	-- Reply: …
//	-- include run.lua
//	local active_key = KEYS[1]
//	local now = ARGV[1]
//	for first = 2, #ARGV, 2 do
//	  local id, epoch = unpack(ARGV, first, first + 1)
//	  …
//	end
//
// Functions that several scripts need are in the folder include. The line
// "-- include run.lua" puts the code of include/run.lua in its place; see Sources.
package lua

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// FS holds the scripts under their file names, as they are written: see Sources for
// what runs.
//
//go:embed *.lua include/*.lua
var FS embed.FS

// includePrefix begins a line that stands for a file of the folder include.
const includePrefix = "-- include "

// Sources returns the text of each script by its file name, with its included files
// in place. An included file takes one line, without its comments, so that the line
// numbers of errors are those of the script's file. It fails if a script includes a
// file that does not exist.
func Sources() (map[string]string, error) {
	names, err := fs.Glob(FS, "*.lua")
	if err != nil {
		return nil, err
	}
	sources := make(map[string]string, len(names))
	for _, name := range names {
		source, err := fs.ReadFile(FS, name)
		if err != nil {
			return nil, fmt.Errorf("read script %s: %w", name, err)
		}
		sources[name], err = expand(string(source))
		if err != nil {
			return nil, fmt.Errorf("script %s: %w", name, err)
		}
	}
	return sources, nil
}

// expand replaces the include lines of a script.
func expand(source string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(source) {
		name, ok := strings.CutPrefix(line, includePrefix)
		if !ok {
			b.WriteString(line)
			continue
		}
		included, err := fs.ReadFile(FS, path.Join("include", strings.TrimSpace(name)))
		if err != nil {
			return "", fmt.Errorf("include: %w", err)
		}
		b.WriteString(oneLine(string(included)) + "\n")
	}
	return b.String(), nil
}

// oneLine joins the lines of Lua code. Lua needs no line ends, but a comment would run
// to the end of the joined line.
func oneLine(source string) string {
	var code []string
	for line := range strings.Lines(source) {
		statement, _, _ := strings.Cut(line, "--")
		statement = strings.TrimSpace(statement)
		if statement != "" {
			code = append(code, statement)
		}
	}
	return strings.Join(code, " ")
}
