package wasm

import "errors"

// errMalformed is the error of a binary that ends early, or that has a number or a count that
// is too large for the bytes that follow.
var errMalformed = errors.New("malformed module")

// reader reads the binary format. After an error all reads return zero values.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) fail() { r.refuse(errMalformed) }

// refuse ends the reading with an error, if there is none yet.
func (r *reader) refuse(err error) {
	if r.err == nil {
		r.err, r.at = err, len(r.data)
	}
}

func (r *reader) left() int { return len(r.data) - r.at }

func (r *reader) byte() byte {
	if r.left() < 1 {
		r.fail()
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

// number reads an unsigned LEB128 of at most 64 bits.
func (r *reader) number() uint64 {
	var n uint64
	for shift := 0; shift < 70; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.fail()
	return 0
}

// count reads the length of a vector whose elements take at least one byte each. wazero
// allocates vectors by their declared length, so a length beyond the bytes must not reach it.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(r.left()) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > r.left() {
		r.fail()
		return nil
	}
	r.at += n
	return r.data[r.at-n : r.at]
}

// valueType reads the type of a value. Types of references that take more than one byte are
// refused, as wazero refuses them.
func (r *reader) valueType() ValueType {
	switch t := r.byte(); t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return t
	}
	r.fail()
	return 0
}

// valueTypes reads the types of parameters or results.
func (r *reader) valueTypes() []ValueType {
	n := r.count()
	if n > maxValues {
		r.refuse(errValues)
		return nil
	}
	types := make([]ValueType, n)
	for i := range types {
		types[i] = r.valueType()
	}
	return types
}

func (r *reader) name() string { return string(r.bytes(r.count())) }

// appendNumber appends n as an unsigned LEB128.
func appendNumber(dst []byte, n uint64) []byte {
	for n >= 0x80 {
		dst = append(dst, byte(n)|0x80)
		n >>= 7
	}
	return append(dst, byte(n))
}

// appendSigned appends n as a signed LEB128.
func appendSigned(dst []byte, n int64) []byte {
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(dst, b)
		}
		dst = append(dst, b|0x80)
	}
}

func appendName(dst []byte, name string) []byte {
	return append(appendNumber(dst, uint64(len(name))), name...)
}
