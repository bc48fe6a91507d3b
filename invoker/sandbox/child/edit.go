package child

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// edit replaces the bytes of a script from at to end by text. None of them has a line break.
type edit struct {
	at, end int
	text    string
}

// sourceMap is the parts of a source map that a script keeps.
type sourceMap struct {
	Version  int      `json:"version"`
	Sources  []string `json:"sources"`
	Names    []string `json:"names"`
	Mappings string   `json:"mappings"`
}

// applyEdits changes a script and the source map in its last line.
func applyEdits(script []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	shifts := shiftsOf(script, edits)
	out := make([]byte, 0, len(script)+64*len(edits))
	done := 0
	for _, e := range edits {
		out = append(out, script[done:e.at]...)
		out = append(out, e.text...)
		done = e.end
	}
	out = append(out, script[done:]...)
	m, at, ok := mapOf(out)
	if !ok {
		return out
	}
	m.Mappings = shiftMappings(m.Mappings, shifts)
	text, err := json.Marshal(m)
	must(err) // a map that was decoded can be encoded
	return base64.StdEncoding.AppendEncode(out[:at+len(mapPrefix)], text)
}

// mapOf decodes the source map in the last line of a script, which begins at. A script
// without a readable one has the positions of its own text: withSourceMap writes one into
// each script of this compiler.
func mapOf(script []byte) (m sourceMap, at int, ok bool) {
	at = bytes.LastIndex(script, []byte(mapPrefix))
	if at < 0 {
		return m, 0, false
	}
	text, err := base64.StdEncoding.DecodeString(string(script[at+len(mapPrefix):]))
	return m, at, err == nil && json.Unmarshal(text, &m) == nil
}

// shift is how much the columns from one on move to the right. Columns count UTF-16 code
// units, as in source maps.
type shift struct{ column, by int }

// shiftsOf returns the shifts of each line, which counts from 0.
func shiftsOf(script []byte, edits []edit) map[int][]shift {
	shifts := map[int][]shift{}
	line, begun := 0, 0
	for _, e := range edits {
		for {
			n := bytes.IndexByte(script[begun:e.at], '\n')
			if n < 0 {
				break
			}
			begun += n + 1
			line++
		}
		by := utf16Length(e.text) - utf16Length(string(script[e.at:e.end]))
		shifts[line] = append(shifts[line], shift{utf16Length(string(script[begun:e.end])), by})
	}
	return shifts
}

func utf16Length(s string) int {
	n := 0
	for _, c := range s {
		n++
		if c > 0xFFFF {
			n++
		}
	}
	return n
}

// shiftMappings moves columns in the mappings of a source map: a list of lines, each a list
// of segments that begin with the distance from the column of the segment before.
func shiftMappings(mappings string, shifts map[int][]shift) string {
	lines := strings.Split(mappings, ";")
	for i, moved := range shifts {
		if i >= len(lines) || lines[i] == "" {
			continue
		}
		segments := strings.Split(lines[i], ",")
		column := 0
		for j, segment := range segments {
			delta, rest := decodeVLQ(segment)
			column += delta
			for len(moved) > 0 && moved[0].column <= column {
				delta += moved[0].by
				moved = moved[1:]
			}
			segments[j] = encodeVLQ(delta) + rest
		}
		lines[i] = strings.Join(segments, ",")
	}
	return strings.Join(lines, ";")
}

const digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodeVLQ reads the first number of a segment.
func decodeVLQ(s string) (n int, rest string) {
	for shift := 0; len(s) > 0; shift += 5 {
		d := strings.IndexByte(digits64, s[0])
		s = s[1:]
		n |= (d & 31) << shift
		if d&32 == 0 {
			break
		}
	}
	if n&1 != 0 {
		return -(n >> 1), s
	}
	return n >> 1, s
}

func encodeVLQ(n int) string {
	v := n << 1
	if n < 0 {
		v = -n<<1 | 1
	}
	var b strings.Builder
	for {
		d := v & 31
		v >>= 5
		if v > 0 {
			d |= 32
		}
		b.WriteByte(digits64[d])
		if v == 0 {
			return b.String()
		}
	}
}
