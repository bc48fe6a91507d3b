package wasm

import "fmt"

// Limits of the JavaScript interface, which all engines have
// (https://webassembly.github.io/spec/js-api/#limits).
const (
	maxLocals = 50_000 // that a function declares
	maxValues = 1_000  // parameters, and results, of a function
)

// maxModuleLocals is how many locals the functions of a module declare together, beside one
// for each byte of code. wazero makes an instruction of 56 bytes for each.
const maxModuleLocals = 500_000

// skipConstant skips a constant expression.
func skipConstant(r *reader) {
	for r.err == nil {
		switch op := r.byte(); op {
		case 0x0b: // end
			return
		case 0x41, 0x42, 0x23, 0xd2, 0xd0: // i32.const, i64.const, global.get, ref.func, ref.null
			r.number()
		case 0x43:
			r.bytes(4)
		case 0x44:
			r.bytes(8)
		case 0xfd: // v128.const
			r.number()
			r.bytes(16)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // extended constants
		default:
			r.fail()
		}
	}
}

var (
	errValues       = fmt.Errorf("limit of %d parameters or results of a function exceeded", maxValues)
	errLocals       = fmt.Errorf("limit of %d locals of a function exceeded", maxLocals)
	errModuleLocals = fmt.Errorf("limit of %d locals, and one for each byte of code, of a module exceeded", maxModuleLocals)
)

// The bits of the kind of an element segment.
const (
	elementPassive     = 1 // or declarative
	elementIndexed     = 2 // has the index of its table; declarative, if it is passive
	elementExpressions = 4 // has expressions instead of indices of functions
)

// Elements is an active element segment whose offset is a number.
type Elements struct {
	Table  int
	Offset uint32
	Count  int
}

// readElements reads an element segment. It reports false for one that is not active, and for one
// whose offset is not a number: a global, or an expression.
func readElements(r *reader) (e Elements, known bool) {
	kind := r.number()
	if kind > elementPassive|elementIndexed|elementExpressions {
		r.fail()
	}
	if kind&elementPassive == 0 {
		if kind&elementIndexed != 0 {
			e.Table = int(r.number() & 0xffffffff)
		}
		e.Offset, known = readOffset(r)
	}
	item := func() { r.number() }
	if kind&elementExpressions != 0 {
		item = func() { skipConstant(r) }
	}
	switch {
	case kind&(elementPassive|elementIndexed) == 0: // functions of the table 0
	case kind&elementExpressions != 0:
		r.valueType()
	default:
		r.byte()
	}
	e.Count = r.count()
	for range e.Count {
		item()
	}
	return e, known
}

// readOffset skips a constant expression, and returns its value if it is one i32.const.
func readOffset(r *reader) (offset uint32, known bool) {
	at := r.at
	skipConstant(r)
	one := &reader{data: r.data[:r.at], at: at}
	if r.err != nil || one.byte() != 0x41 {
		return 0, false
	}
	n, shift := uint64(0), 0
	for {
		b := one.byte()
		n |= uint64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			if b&0x40 != 0 {
				n |= ^uint64(0) << shift
			}
			return uint32(n), one.err == nil && one.left() == 1
		}
	}
}

// skipData skips a data segment.
func skipData(r *reader) {
	switch r.number() {
	case 0:
		skipConstant(r)
	case 1: // passive
	case 2:
		r.number()
		skipConstant(r)
	default:
		r.fail()
	}
	r.bytes(r.count())
}

// checkCode checks the sizes of functions and of their locals, whose number takes few bytes.
func checkCode(r *reader) {
	room := uint64(maxModuleLocals + r.left())
	for range r.count() {
		body := &reader{data: r.bytes(r.count())}
		locals := uint64(0)
		for range body.count() {
			n := body.number()
			body.valueType()
			if n > maxLocals-locals {
				body.refuse(errLocals)
				break
			}
			locals += n
		}
		if body.err == nil && locals > room {
			body.refuse(errModuleLocals)
		}
		if body.err != nil {
			r.refuse(body.err)
			return
		}
		room -= locals
	}
}
