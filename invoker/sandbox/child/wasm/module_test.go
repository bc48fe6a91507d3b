package wasm

import (
	"bytes"
	"strings"
	"testing"
)

// TestParseReadsWhatBuilderWrites describes a module that the builder wrote, and refuses every
// prefix of it that ends within a section.
func TestParseReadsWhatBuilderWrites(t *testing.T) {
	t.Parallel()
	var b Builder
	b.Import("m", "g", Type{Kind: Global, Value: I64, Mutable: true})
	b.Export("t", Table, b.Table(FuncRef, Limits{Min: 1}))
	b.Function("f", FuncType{[]byte{I32}, []byte{I32}}, 0x20, 0)
	binary := b.Binary()
	m, err := Parse(binary, 100)
	if err != nil {
		t.Fatalf("Parse: %v, want no error", err)
	}
	if len(m.Imports) != 1 || m.Imports[0].Type.Value != I64 || !m.Imports[0].Type.Mutable {
		t.Errorf("imports %+v, want the mutable global m.g of type i64", m.Imports)
	}
	if len(m.Exports) != 2 || m.Exports[0].Type.Kind != Table || !m.Exports[1].Type.Func.Equal(FuncType{[]byte{I32}, []byte{I32}}) {
		t.Errorf("exports %+v, want the table t and the function f", m.Exports)
	}
	again, err := Parse(m.Binary, 100)
	if err != nil {
		t.Fatalf("Parse of the replaced binary: %v, want no error", err)
	}
	if l := again.Entities[Table][0].Limits; !l.HasMax || l.Max != 100 {
		t.Errorf("limits of the table in the replaced binary = %+v, want the maximum 100", l)
	}
	if _, err := Parse([]byte("\x00asm\x01\x00\x00\x00\x01\x05\xff\xff\xff\xff\x0f"), 100); err == nil {
		t.Error("Parse of a vector of 4 billion types: got no error, want one")
	}
}

// TestParseBoundsWhatWazeroAllocates refuses modules of a few bytes that announce much, which
// wazero would allocate before it finds their end.
func TestParseBoundsWhatWazeroAllocates(t *testing.T) {
	t.Parallel()
	head := []byte("\x00asm\x01\x00\x00\x00")
	number := func(n uint64) []byte { return appendNumber(nil, n) }
	section := func(id byte, parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		return append(appendNumber([]byte{id}, uint64(len(body))), body...)
	}
	function := append(section(sectionType, []byte{1, 0x60, 0, 0}), section(sectionFunction, []byte{1, 0})...)
	code := func(locals ...byte) []byte {
		body := append(locals, 0x0b)
		return section(sectionCode, []byte{1}, number(uint64(len(body))), body)
	}
	huge := number(1<<32 - 1)
	for name, tt := range map[string]struct {
		sections []byte
		want     string
	}{
		"locals":              {code(append(append([]byte{1}, huge...), I32)...), errLocals.Error()},
		"locals of reference": {code(1, 1, 0x63, 0x70), errMalformed.Error()},
		"size of a function":  {section(sectionCode, []byte{1}, huge, []byte{0, 0x0b}), errMalformed.Error()},
		"indices":             {section(sectionElement, []byte{1, 0, 0x41, 0, 0x0b}, huge), errMalformed.Error()},
		"expressions":         {section(sectionElement, []byte{1, 5, FuncRef}, huge), errMalformed.Error()},
		"element kind":        {section(sectionElement, []byte{1, 8, 0}), errMalformed.Error()},
		"data":                {section(sectionData, []byte{1, 1}, huge), errMalformed.Error()},
		"data kind":           {section(sectionData, []byte{1, 3, 0}), errMalformed.Error()},
		"parameters":          {section(sectionType, []byte{1, 0x60}, number(1001), bytes.Repeat([]byte{I32}, 1001), []byte{0}), errValues.Error()},
		"type of a parameter": {section(sectionType, []byte{1, 0x60, 1, 0x64, 0x70, 0}), errMalformed.Error()},
	} {
		_, err := Parse(bytes.Join([][]byte{head, function, tt.sections}, nil), 100)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tt.want)
		}
	}
	body := append(append([]byte{1}, number(maxLocals)...), I32, 0x0b)
	item := append(number(uint64(len(body))), body...)
	if _, err := Parse(bytes.Join([][]byte{head, function, section(sectionCode, number(20), bytes.Repeat(item, 20))}, nil), 100); err == nil || !strings.Contains(err.Error(), errModuleLocals.Error()) {
		t.Errorf("20 functions of %d locals: got error %v, want %q", maxLocals, err, errModuleLocals)
	}
	m, err := Parse(bytes.Join([][]byte{head, section(sectionCustom, []byte("\x04name\x01\x06"), huge)}, nil), 100)
	if err != nil || len(m.Customs) != 1 || !bytes.Equal(m.Binary, head) {
		t.Errorf("a section of names: got %+v, %v, want one custom section, and none for wazero", m, err)
	}
}

// TestParseNamesModulesBriefly replaces the empty names of many modules beside a long one.
func TestParseNamesModulesBriefly(t *testing.T) {
	t.Parallel()
	const unnamed = 1000
	body := appendNumber(nil, unnamed+2)
	for _, name := range []string{"unnamed", "unnamed" + strings.Repeat("_", 10_000)} {
		body = append(appendName(body, name), 0, byte(Func), 0)
	}
	body = append(body, bytes.Repeat([]byte{0, 0, byte(Func), 0}, unnamed)...)
	raw := append([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00"), sectionImport)
	raw = append(appendNumber(raw, uint64(len(body))), body...)
	m, err := Parse(raw, 100)
	if err != nil {
		t.Fatalf("Parse of a module with %d empty names: %v, want no error", unnamed, err)
	}
	if grown, most := len(m.Binary)-len(raw), unnamed*10; grown > most {
		t.Errorf("Parse of %d bytes with %d empty names: the binary for wazero has %d more, want at most %d", len(raw), unnamed, grown, most)
	}
	again, err := Parse(m.Binary, 100)
	if err != nil || again.Imports[2].Module != m.Unnamed || again.Imports[0].Module == m.Unnamed || again.Imports[1].Module == m.Unnamed {
		t.Errorf("Parse of the binary for wazero: got error %v and Unnamed %q, want the name of the third import only", err, m.Unnamed)
	}
}

// TestParseReadsSegments reads segments of all kinds.
func TestParseReadsSegments(t *testing.T) {
	t.Parallel()
	null := []byte{0xd0, FuncRef, 0x0b}
	for name, item := range map[string][]byte{
		"indices":                {0, 0x41, 0, 0x0b, 2, 0, 0},
		"passive indices":        {1, 0, 1, 0},
		"indices of a table":     {2, 0, 0x41, 0, 0x0b, 0, 1, 0},
		"declared indices":       {3, 0, 1, 0},
		"expressions":            append([]byte{4, 0x41, 0, 0x0b, 1}, null...),
		"passive expressions":    append([]byte{5, FuncRef, 1}, null...),
		"expressions of a table": append([]byte{6, 0, 0x41, 0, 0x0b, FuncRef, 1}, null...),
		"declared expressions":   append([]byte{7, FuncRef, 1}, null...),
	} {
		r := &reader{data: item}
		readElements(r)
		if r.err != nil || r.left() != 0 {
			t.Errorf("an element segment of %s: got error %v with %d bytes left, want none", name, r.err, r.left())
		}
	}
	for name, tt := range map[string]struct {
		item  []byte
		want  Elements
		known bool
	}{
		"a number":          {[]byte{2, 3, 0x41, 0x80, 1, 0x0b, 0, 2, 0, 0}, Elements{Table: 3, Offset: 128, Count: 2}, true},
		"a negative number": {[]byte{0, 0x41, 0x7f, 0x0b, 1, 0}, Elements{Offset: 1<<32 - 1, Count: 1}, true},
		"a global":          {[]byte{0, 0x23, 0, 0x0b, 1, 0}, Elements{Count: 1}, false},
		"a sum":             {[]byte{0, 0x41, 1, 0x41, 1, 0x6a, 0x0b, 1, 0}, Elements{Offset: 1, Count: 1}, false},
	} {
		if got, known := readElements(&reader{data: tt.item}); known != tt.known || known && got != tt.want {
			t.Errorf("readElements with the offset %s = %+v, %v, want %+v, %v", name, got, known, tt.want, tt.known)
		}
	}
	for name, item := range map[string][]byte{
		"active": {0, 0x41, 0, 0x0b, 1, 9}, "passive": {1, 2, 9, 9}, "of a memory": {2, 0, 0x41, 0, 0x0b, 1, 9},
	} {
		r := &reader{data: item}
		skipData(r)
		if r.err != nil || r.left() != 0 {
			t.Errorf("a data segment that is %s: got error %v with %d bytes left, want none", name, r.err, r.left())
		}
	}
}
