// Package wasm reads and writes the binary format of WebAssembly modules: what the JavaScript
// API needs to know of a module beside what wazero reports, and the small modules by which
// memories, tables and globals are made and linked.
package wasm

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Kind is the kind of an import or an export, as the binary format numbers them.
type Kind byte

// The kinds.
const (
	Func Kind = iota
	Table
	Memory
	Global
)

// String returns the name of the kind in the JavaScript API.
func (k Kind) String() string {
	return [...]string{"function", "table", "memory", "global"}[k]
}

// ValueType is the type of a value, as the binary format encodes it.
type ValueType = byte

// The value types.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// FuncType is the signature of a function.
type FuncType struct{ Params, Results []ValueType }

// Limits bound the size of a memory in pages of 64 KiB, or of a table in elements.
type Limits struct {
	Min, Max uint64
	HasMax   bool
}

// Type is the type of an import or an export. Only the fields of its Kind are set.
type Type struct {
	Kind    Kind
	Func    FuncType
	Limits  Limits    // of Table and Memory
	Value   ValueType // of Global, and of the elements of Table
	Mutable bool      // of Global
}

// Import is one import of a module.
type Import struct {
	Module, Name string
	Type         Type
}

// Export is one export of a module. Index counts the imports of its kind first.
type Export struct {
	Name  string
	Type  Type
	Index int
}

// Custom is a custom section. Data is a part of the module's bytes.
type Custom struct {
	Name string
	Data []byte
}

// Module describes a module.
type Module struct {
	Imports []Import
	Exports []Export
	Customs []Custom
	Types   []FuncType
	// Binary is the module with the maximum of each table lowered to the limit of Parse, without
	// custom sections, and with Unnamed for the module names of imports that are empty, which
	// wazero refuses.
	Binary  []byte
	Unnamed string
	// Entities are the types of functions, tables, memories and globals, imported first.
	Entities [4][]Type
	// Imported are the numbers of imports, by kind.
	Imported [4]int
	// Elements are the active element segments whose offsets are numbers.
	Elements []Elements
}

// The ids of sections.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

const preambleBytes = 8

// Parse reads a module. It checks what it reads, and that no vector, also within an item of a
// section, is longer than its bytes; wazero validates the rest. It keeps custom sections from
// wazero, which would read the names of functions. maxTable is the most elements that a table
// may have. Errors describe the first violation.
func Parse(binary []byte, maxTable uint64) (*Module, error) {
	if len(binary) < preambleBytes || string(binary[:preambleBytes]) != "\x00asm\x01\x00\x00\x00" {
		return nil, fmt.Errorf("expected magic word 00 61 73 6d and version 1, found % x", binary[:min(len(binary), preambleBytes)])
	}
	m := &Module{Binary: append([]byte(nil), binary[:preambleBytes]...)}
	r := &reader{data: binary, at: preambleBytes}
	for r.left() > 0 {
		at := r.at
		id := r.byte()
		body := &reader{data: r.bytes(r.count())}
		if r.err != nil {
			return nil, fmt.Errorf("section %d at offset %d exceeds the module", id, at)
		}
		replaced, err := m.section(id, body, maxTable)
		if err != nil {
			return nil, fmt.Errorf("section %d at offset %d: %w", id, at, err)
		}
		if id == sectionCustom {
			continue
		}
		if replaced == nil {
			replaced = body.data
		}
		m.Binary = append(m.Binary, id)
		m.Binary = append(appendNumber(m.Binary, uint64(len(replaced))), replaced...)
	}
	return m, m.resolveExports()
}

// section reads one section. It returns another content for it, nil to keep it.
func (m *Module) section(id byte, r *reader, maxTable uint64) ([]byte, error) {
	var replaced []byte
	switch id {
	case sectionCustom:
		name := r.name()
		if !utf8.ValidString(name) {
			r.fail()
		}
		m.Customs = append(m.Customs, Custom{name, r.bytes(r.left())})
	case sectionType:
		m.readTypes(r)
	case sectionImport:
		replaced = m.readImports(r)
	case sectionFunction:
		for range r.count() {
			m.add(Type{Kind: Func, Func: m.typeAt(r)})
		}
	case sectionTable:
		replaced = m.readTables(r, maxTable)
	case sectionMemory:
		for range r.count() {
			m.add(Type{Kind: Memory, Limits: readLimits(r)})
		}
	case sectionGlobal:
		m.readGlobals(r)
	case sectionExport:
		for range r.count() {
			e := Export{Name: r.name(), Type: Type{Kind: Kind(r.byte())}}
			e.Index = int(r.number() & 0xffffffff)
			m.Exports = append(m.Exports, e)
		}
	case sectionElement:
		for range r.count() {
			if e, known := readElements(r); known {
				m.Elements = append(m.Elements, e)
			}
		}
	case sectionCode:
		checkCode(r)
	case sectionData:
		for range r.count() {
			skipData(r)
		}
	}
	return replaced, r.err
}

func (m *Module) readTypes(r *reader) {
	for range r.count() {
		if r.byte() != 0x60 {
			r.fail()
		}
		m.Types = append(m.Types, FuncType{Params: r.valueTypes(), Results: r.valueTypes()})
	}
}

// readImports returns the section with another name for modules without one, nil if there is none.
func (m *Module) readImports(r *reader) []byte {
	var unnamed [][2]int // where empty names begin and end
	for range r.count() {
		at := r.at
		i := Import{Module: r.name()}
		if i.Module == "" {
			unnamed = append(unnamed, [2]int{at, r.at})
		}
		i.Name = r.name()
		i.Type.Kind = Kind(r.byte())
		switch i.Type.Kind {
		case Func:
			i.Type.Func = m.typeAt(r)
		case Table:
			i.Type.Value = r.valueType()
			i.Type.Limits = readLimits(r)
		case Memory:
			i.Type.Limits = readLimits(r)
		case Global:
			i.Type.Value, i.Type.Mutable = r.valueType(), r.byte() == 1
		default:
			r.fail()
		}
		if r.err != nil {
			return nil
		}
		m.Imports = append(m.Imports, i)
		m.Imported[i.Type.Kind]++
		m.add(i.Type)
	}
	return m.nameModules(r.data, unnamed)
}

// nameModules sets Unnamed and returns the import section with it in the given places. The name is
// short whatever the others are: the section grows by a few bytes for each place.
func (m *Module) nameModules(section []byte, places [][2]int) []byte {
	if len(places) == 0 {
		return nil
	}
	taken := make(map[string]bool, len(m.Imports))
	for _, i := range m.Imports {
		taken[i.Module] = true
	}
	m.Unnamed = "unnamed"
	for n := 1; taken[m.Unnamed]; n++ {
		m.Unnamed = "unnamed" + strconv.Itoa(n)
	}
	var replaced []byte
	from := 0
	for _, p := range places {
		replaced = appendName(append(replaced, section[from:p[0]]...), m.Unnamed)
		from = p[1]
	}
	return append(replaced, section[from:]...)
}

// readTables returns the section with the maxima that hold.
func (m *Module) readTables(r *reader, maxTable uint64) []byte {
	n := r.count()
	replaced := appendNumber(nil, uint64(n))
	for range n {
		t := Type{Kind: Table, Value: r.valueType(), Limits: readLimits(r)}
		m.add(t)
		t.Limits.cap(maxTable)
		replaced = t.Limits.append(append(replaced, t.Value))
	}
	return replaced
}

// cap lowers the maximum of a table, but not below its minimum: a table whose minimum is above
// the limit is refused when it is made.
func (l *Limits) cap(limit uint64) {
	if !l.HasMax || l.Max > limit {
		if l.HasMax && l.Max < l.Min {
			return // invalid, and wazero says so
		}
		l.Max, l.HasMax = max(limit, l.Min), true
	}
}

func (m *Module) readGlobals(r *reader) {
	for range r.count() {
		m.add(Type{Kind: Global, Value: r.valueType(), Mutable: r.byte() == 1})
		skipConstant(r)
	}
}

func (m *Module) add(t Type) { m.Entities[t.Kind] = append(m.Entities[t.Kind], t) }

func (m *Module) typeAt(r *reader) FuncType {
	if i := r.number(); i < uint64(len(m.Types)) {
		return m.Types[i]
	}
	r.fail()
	return FuncType{}
}

func readLimits(r *reader) Limits {
	flags := r.byte()
	l := Limits{Min: r.number(), HasMax: flags&1 == 1}
	if flags > 1 { // shared memory, and addresses of 64 bits
		r.fail()
	}
	if l.HasMax {
		l.Max = r.number()
	}
	return l
}

// resolveExports sets the types of the exports.
func (m *Module) resolveExports() error {
	for i := range m.Exports {
		e := &m.Exports[i]
		if e.Type.Kind > Global || e.Index >= len(m.Entities[e.Type.Kind]) {
			return fmt.Errorf("export %q: there is no such function, table, memory or global", e.Name)
		}
		e.Type = m.Entities[e.Type.Kind][e.Index]
	}
	return nil
}

// Accepts reports whether an import of type want accepts an entity of type have, whose Limits
// hold its current size as Min (WebAssembly Core, matching of external types).
func Accepts(want, have Type) bool {
	if want.Kind != have.Kind {
		return false
	}
	switch want.Kind {
	case Func:
		return want.Func.Equal(have.Func)
	case Global:
		return want.Value == have.Value && want.Mutable == have.Mutable
	}
	w, h := want.Limits, have.Limits
	return want.Value == have.Value && h.Min >= w.Min && (!w.HasMax || h.HasMax && h.Max <= w.Max)
}

// Equal reports whether two signatures are the same.
func (t FuncType) Equal(other FuncType) bool {
	return string(t.Params) == string(other.Params) && string(t.Results) == string(other.Results)
}
