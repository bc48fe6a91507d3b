package wasm

import "testing"

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
