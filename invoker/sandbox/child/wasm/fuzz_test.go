package wasm

import "testing"

// FuzzParse reads modules of anything: no panic, and no table above the limit.
func FuzzParse(f *testing.F) {
	header := []byte("\x00asm\x01\x00\x00\x00")
	f.Add(header)
	f.Add(append(header[:8:8], 1, 4, 1, 0x60, 0, 0))
	f.Add(append(header[:8:8], 4, 5, 1, 0x70, 1, 1, 0xff))
	f.Add(append(header[:8:8], 0, 0xff, 0xff, 0xff, 0xff, 0x0f))
	f.Add(append(header[:8:8], 9, 7, 1, 0, 0x41, 0, 0x0b, 1, 0))
	f.Add(Scratch())
	f.Fuzz(func(t *testing.T, binary []byte) {
		m, err := Parse(binary, 1000)
		if err == nil && m == nil {
			t.Error("Parse = nil without an error, want a module")
		}
	})
}
