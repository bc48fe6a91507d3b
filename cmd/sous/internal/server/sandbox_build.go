package server

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
)

// sandboxBuild returns the Go build ID of the executable at path, which differs between any
// two builds with different code; "" is this process's own executable. The result is "" for
// an executable that was linked without one: its compiled scripts are kept in memory only.
func sandboxBuild(path string) string {
	if path == "" {
		path = "/proc/self/exe"
	}
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	section := file.Section(".note.go.buildid")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	if err != nil {
		return ""
	}
	return buildOf(note, file.ByteOrder)
}

// buildOf returns the build ID in a note of the linker.
func buildOf(note []byte, order binary.ByteOrder) string {
	// A note is the sizes of its name and its text, its type, the name and the text.
	const header = 12
	name := []byte("Go\x00\x00")
	if len(note) < header+len(name) || !bytes.Equal(note[header:header+len(name)], name) {
		return ""
	}
	text := note[header+len(name):]
	size := order.Uint32(note[4:])
	if uint64(size) > uint64(len(text)) {
		return ""
	}
	// The parts are digests of inputs and contents. A linker may have been given another text,
	// the same for all builds.
	if build := string(text[:size]); strings.Count(build, "/") == 3 {
		return build
	}
	return ""
}
