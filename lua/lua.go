// Package lua holds the store's atomic operations, one file each. Every file
// begins with its purpose, KEYS, ARGV and reply, and keeps to docs/storage.md:
// it touches declared keys only, reads no clock, re-encodes no JSON that it
// read, and orders its writes so that any prefix of them is harmless.
package lua

import "embed"

// FS holds the scripts under their file names.
//
//go:embed *.lua
var FS embed.FS
