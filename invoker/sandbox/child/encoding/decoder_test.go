package encoding

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// whole decodes bytes as a text, with "!" at its end if it has an error.
func whole(d *Decoder, b ...byte) string {
	text, valid := d.Decode(b, false, false)
	if !valid {
		text += "!"
	}
	return text
}

// both writes the text of bytes, and of the bytes with an A after them.
func both(d *Decoder, out *strings.Builder, b ...byte) {
	out.WriteString(whole(d, b...) + "\n")
	out.WriteString(whole(d, append(b, 'A')...) + "\n")
}

// texts returns the texts of a group of testdata/record.mjs.
func texts(d *Decoder, group string, lead byte, ascii bool) string {
	var out strings.Builder
	first, last := int(lead), int(lead)
	if ascii {
		first, last = 0, 0x7f
	}
	prefix, stateful := map[string]string{"ascii": "", "roman": "\x1b(J", "katakana": "\x1b(I", "jis0208": "\x1b$B", "escape": "\x1b"}[group]
	if stateful {
		last = first + 15
	}
	for l := first; l <= last; l++ {
		for t := range 256 {
			l, t := byte(l), byte(t)
			switch {
			case group == "pairs":
				both(d, &out, l, t)
			case group == "three":
				both(d, &out, 0x8f, l, t)
			case group == "cut":
				both(d, &out, l, 0x30, t)
				both(d, &out, l, 0x39, 0x81, t)
				both(d, &out, l, 0x35, 0xfe, t)
			case stateful:
				both(d, &out, append([]byte(prefix), l, t)...)
			}
			if group == "escape" {
				out.WriteString(whole(d, 0x1b, 0x24, 0x42, 0x30, 0x1b, l, t) + "\n")
				out.WriteString(whole(d, 0x1b, 0x28, 0x49, 0x1b, l, t, 0x21, 0x21) + "\n")
			}
		}
	}
	if group == "four" {
		var all []byte
		for i := range 10 * 126 * 10 {
			all = append(all, lead, 0x30+byte(i/1260), 0x81+byte(i/10%126), 0x30+byte(i%10))
		}
		out.WriteString(whole(d, all...) + "\n")
	}
	return out.String()
}

// TestDecodersFollowTheStandard compares all bytes, all pairs of bytes and the longer
// sequences with what the standard's algorithms make of them with its indexes, which
// testdata/record.mjs recorded. That script prints the texts of a line that differs.
func TestDecodersFollowTheStandard(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/decoders.txt")
	if err != nil {
		t.Fatalf("os.Open: %v", err)
	}
	t.Cleanup(func() { _ = file.Close() })
	lines := map[string][][]string{}
	for s := bufio.NewScanner(file); s.Scan(); {
		if f := strings.Fields(s.Text()); f[0] != "#" {
			lines[f[0]] = append(lines[f[0]], f[1:])
		}
	}
	if len(lines) != 36 {
		t.Fatalf("testdata/decoders.txt has %d encodings, want 36", len(lines))
	}
	for name, groups := range lines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, ok := NewDecoder(name)
			if !ok {
				t.Fatalf("NewDecoder(%q) = false, want a decoder", name)
			}
			for _, f := range groups {
				got, want := "", f[len(f)-1]
				if f[0] == "single" {
					for b := 0x80; b <= 0xff; b++ {
						c := []rune(whole(d, byte(b)))[0]
						got += fmt.Sprintf("%04x", c)
					}
				} else {
					lead, err := strconv.ParseUint(f[1], 16, 8)
					sum := sha256.Sum256([]byte(texts(d, f[0], byte(lead), err != nil)))
					got = hex.EncodeToString(sum[:4])
				}
				if got != want {
					t.Errorf("%s: the texts have the hash %s, want %s", strings.Join(f[:len(f)-1], " "), got, want)
				}
			}
		})
	}
}

// TestChunksDoNotMatter: any chunking of a text has the same result, and the decoder begins
// again after it.
func TestChunksDoNotMatter(t *testing.T) {
	t.Parallel()
	names := []string{"big5", "euc-kr", "shift_jis", "euc-jp", "gb18030", "gbk", "iso-2022-jp", "x-user-defined", "utf-8", "utf-16le", "utf-16be", "koi8-r"}
	special := rapid.SampledFrom([]byte{0x1b, '$', '(', 'B', 'J', 'I', '0', '9', 'A', 0x80, 0x81, 0x8e, 0x8f, 0xa1, 0xb0, 0xd8, 0xdc, 0xe0, 0xf0, 0xfe, 0xff})
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		text := rapid.SliceOfN(rapid.OneOf(special, rapid.Byte()), 0, 40).Draw(t, "text")
		d, ok := NewDecoder(name)
		if !ok {
			t.Fatalf("NewDecoder(%q) = false, want a decoder", name)
		}
		want, wantValid := d.Decode(text, false, true)
		for range 2 {
			var got strings.Builder
			valid := true
			for rest := text; ; {
				n := rapid.IntRange(0, len(rest)).Draw(t, "chunk")
				more := n < len(rest) || rapid.Bool().Draw(t, "more")
				part, ok := d.Decode(rest[:n], more, true)
				got.WriteString(part)
				valid = valid && ok
				rest = rest[n:]
				if !more {
					break
				}
			}
			if got.String() != want || valid != wantValid {
				t.Fatalf("%s %x in chunks = %q, %v, want %q, %v", name, text, got.String(), valid, want, wantValid)
			}
		}
	})
}
