package wasm

import (
	"encoding/binary"
	"math"
)

// Builder writes a module. The zero value is an empty one.
type Builder struct {
	types, imports, functions, tables, memories, globals, exports, elements, code [][]byte
	counts                                                                        [4]int
}

// vector appends a section with the items, nothing if there are none.
func vector(dst []byte, id byte, items [][]byte) []byte {
	if len(items) == 0 {
		return dst
	}
	body := appendNumber(nil, uint64(len(items)))
	for _, item := range items {
		body = append(body, item...)
	}
	return append(appendNumber(append(dst, id), uint64(len(body))), body...)
}

// Binary returns the module.
func (b *Builder) Binary() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id    byte
		items [][]byte
	}{
		{sectionType, b.types}, {sectionImport, b.imports}, {sectionFunction, b.functions}, {sectionTable, b.tables},
		{sectionMemory, b.memories}, {sectionGlobal, b.globals}, {sectionExport, b.exports}, {sectionElement, b.elements}, {sectionCode, b.code},
	} {
		out = vector(out, s.id, s.items)
	}
	return out
}

func (l Limits) append(dst []byte) []byte {
	if !l.HasMax {
		return appendNumber(append(dst, 0), l.Min)
	}
	return appendNumber(appendNumber(append(dst, 1), l.Min), l.Max)
}

func (b *Builder) signature(t FuncType) uint64 {
	item := appendNumber([]byte{0x60}, uint64(len(t.Params)))
	item = appendNumber(append(item, t.Params...), uint64(len(t.Results)))
	b.types = append(b.types, append(item, t.Results...))
	return uint64(len(b.types) - 1)
}

func (b *Builder) next(k Kind) int {
	b.counts[k]++
	return b.counts[k] - 1
}

// Import adds an import and returns its index. Imports come before definitions.
func (b *Builder) Import(module, name string, t Type) int {
	item := append(appendName(appendName(nil, module), name), byte(t.Kind))
	switch t.Kind {
	case Func:
		item = appendNumber(item, b.signature(t.Func))
	case Table:
		item = t.Limits.append(append(item, t.Value))
	case Memory:
		item = t.Limits.append(item)
	case Global:
		item = append(item, t.Value, flag(t.Mutable))
	}
	b.imports = append(b.imports, item)
	return b.next(t.Kind)
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// Export exports an entity.
func (b *Builder) Export(name string, k Kind, index int) {
	b.exports = append(b.exports, appendNumber(append(appendName(nil, name), byte(k)), uint64(index)))
}

// Memory defines and Table defines a memory or a table, which is empty at first.
func (b *Builder) Memory(l Limits) int {
	b.memories = append(b.memories, l.append(nil))
	return b.next(Memory)
}

// Table defines a table of null references and returns its index.
func (b *Builder) Table(element ValueType, l Limits) int {
	b.tables = append(b.tables, l.append([]byte{element}))
	return b.next(Table)
}

// Global defines a global. bits is its value as wazero encodes values; a reference is null
// unless function is the index of one.
func (b *Builder) Global(t Type, bits uint64, function int) int {
	item := []byte{t.Value, flag(t.Mutable)}
	switch t.Value {
	case I32:
		item = appendSigned(append(item, 0x41), int64(int32(bits)))
	case I64:
		item = appendSigned(append(item, 0x42), int64(bits))
	case F32:
		item = binary.LittleEndian.AppendUint32(append(item, 0x43), uint32(bits&math.MaxUint32))
	case F64:
		item = binary.LittleEndian.AppendUint64(append(item, 0x44), bits)
	default:
		if function >= 0 {
			item = appendNumber(append(item, 0xd2), uint64(function))
		} else {
			item = append(item, 0xd0, t.Value)
		}
	}
	b.globals = append(b.globals, append(item, 0x0b))
	return b.next(Global)
}

// Function defines a function of instructions, without its end, and exports it.
func (b *Builder) Function(name string, t FuncType, instructions ...byte) {
	b.functions = append(b.functions, appendNumber(nil, b.signature(t)))
	body := append(append([]byte{0}, instructions...), 0x0b)
	b.code = append(b.code, append(appendNumber(nil, uint64(len(body))), body...))
	b.Export(name, Func, b.next(Func))
}

// TableAccess returns a module that imports a table as "t" "t" and exports get, set, grow,
// size and fill for it.
func TableAccess(t Type) []byte {
	var b Builder
	b.Import("t", "t", Type{Kind: Table, Value: t.Value, Limits: Limits{}})
	b.Export("t", Table, 0)
	b.Function("get", FuncType{[]byte{I32}, []byte{t.Value}}, 0x20, 0, 0x25, 0)
	b.Function("set", FuncType{[]byte{I32, t.Value}, nil}, 0x20, 0, 0x20, 1, 0x26, 0)
	b.Function("grow", FuncType{[]byte{I32, t.Value}, []byte{I32}}, 0x20, 1, 0x20, 0, 0xfc, 15, 0)
	b.Function("size", FuncType{nil, []byte{I32}}, 0xfc, 16, 0)
	b.Function("fill", FuncType{[]byte{I32, t.Value, I32}, nil}, 0x20, 0, 0x20, 1, 0x20, 2, 0xfc, 17, 0)
	return b.Binary()
}

// Reference returns a module that imports a function as "f" "f" and exports ref, which
// returns a reference to it.
func Reference(t FuncType) []byte {
	var b Builder
	b.Import("f", "f", Type{Kind: Func, Func: t})
	b.Export("f", Func, 0)
	b.Function("ref", FuncType{nil, []byte{FuncRef}}, 0xd2, 0)
	return b.Binary()
}

// Scratch returns a module with a table of one function, and a function to set it.
func Scratch() []byte {
	var b Builder
	b.Table(FuncRef, Limits{Min: 1, Max: 1, HasMax: true})
	b.Export("t", Table, 0)
	b.Function("set", FuncType{[]byte{FuncRef}, nil}, 0x41, 0, 0x20, 0, 0x26, 0)
	return b.Binary()
}

// Trampoline returns a module with a function "f" of type t that calls the function that set
// was given: it makes a function that is known by its reference alone one to import.
func Trampoline(t FuncType) []byte {
	var b Builder
	b.Table(FuncRef, Limits{Min: 1, Max: 1, HasMax: true})
	b.Function("set", FuncType{[]byte{FuncRef}, nil}, 0x41, 0, 0x20, 0, 0x26, 0)
	var body []byte
	for i := range t.Params {
		body = appendNumber(append(body, 0x20), uint64(i))
	}
	body = appendNumber(append(body, 0x41, 0, 0x11), uint64(len(b.types)))
	b.Function("f", t, append(body, 0)...)
	return b.Binary()
}
