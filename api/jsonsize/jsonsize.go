// Package jsonsize estimates the memory that a JSON text takes once it is decoded. A text of a few
// bytes for each element, such as {"jobs":[{},{},…]}, takes a hundred times its length as a slice
// of structs: a request of 8 MiB would take a gigabyte before anything counts its jobs.
package jsonsize

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Elements is the usual limit of Fits: 16 MiB, which is 40,000 jobs without a field.
const Elements = 16 << 20

// The estimated bytes of an entry of a map besides its value, and of a value of any type.
const (
	entryBytes = 48
	anyBytes   = 40
)

// small is the length of a text that needs no estimate: it takes some megabytes at most.
const small = 16 << 10

// Fits reports whether the elements of slices and maps take at most limit bytes when encoding/json
// decodes text into a value of type t. Values that decode themselves, such as json.RawMessage, are
// skipped, as are texts that are small. A text that is not JSON may fit or not. It stops as soon as
// the limit is reached, and otherwise reads the text once.
//
// For a struct with the field Jobs []Job, where a Job takes 400 bytes, a text with n jobs takes
// 400·n bytes and those of the slices and maps in them.
func Fits(text []byte, t reflect.Type, limit int64) bool {
	if len(text) <= small {
		return true
	}
	w := walker{text: text, left: limit}
	w.value(t)
	return w.left >= 0
}

// walker reads a text once, from the start. A type of nil is that of values that are skipped.
type walker struct {
	text []byte
	at   int
	left int64 // bytes of the limit
}

// take counts bytes. At the limit the walk ends.
func (w *walker) take(bytes int64) {
	w.left -= bytes
	if w.left < 0 {
		w.at = len(w.text)
	}
}

// value reads a value that is decoded into a t.
func (w *walker) value(t reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
		w.take(int64(t.Size()))
	}
	if t != nil && decodesItself(t) {
		t = nil
	}
	switch w.next() {
	case '{':
		w.at++
		w.members(t)
	case '[':
		w.at++
		w.elements(t)
	case '"':
		w.str()
	default:
		w.scalar()
	}
}

// members reads the members of an object behind its brace.
func (w *walker) members(t reflect.Type) {
	for {
		switch w.next() {
		case '}', 0:
			w.at++
			return
		case ',':
			w.at++
			continue
		}
		begin := w.at
		if w.next() != '"' { // not JSON
			w.at = len(w.text)
			return
		}
		w.str()
		member := w.memberOf(t, w.text[begin:min(w.at, len(w.text))])
		if w.next() == ':' {
			w.at++
		}
		w.value(member)
	}
}

// memberOf returns the type of the member with a quoted name, and counts it if t is a map or any.
func (w *walker) memberOf(t reflect.Type, quoted []byte) reflect.Type {
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Struct:
		return fieldOf(t, quoted)
	case t.Kind() == reflect.Map:
		w.take(entryBytes + int64(t.Elem().Size()))
		return t.Elem()
	case t.Kind() == reflect.Interface:
		w.take(entryBytes + anyBytes)
		return t
	}
	return nil
}

// elements reads the elements of an array behind its bracket.
func (w *walker) elements(t reflect.Type) {
	var element reflect.Type
	var size int64
	switch {
	case t == nil:
	case t.Kind() == reflect.Slice:
		element, size = t.Elem(), int64(t.Elem().Size())
	case t.Kind() == reflect.Interface:
		element, size = t, anyBytes
	}
	for {
		switch w.next() {
		case ']', 0:
			w.at++
			return
		case ',':
			w.at++
			continue
		case '}', ':': // not JSON
			w.at = len(w.text)
			return
		}
		w.take(size)
		w.value(element)
	}
}

// next returns the next byte that is no white space, without reading it; 0 at the end.
func (w *walker) next() byte {
	for ; w.at < len(w.text); w.at++ {
		switch c := w.text[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// str reads a string.
func (w *walker) str() {
	for w.at++; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case '\\':
			w.at++
		case '"':
			w.at++
			return
		}
	}
}

// scalar reads a number or a word. It reads at least one byte.
func (w *walker) scalar() {
	for w.at++; w.at < len(w.text); w.at++ {
		switch w.text[w.at] {
		case ',', ']', '}', ':', ' ', '\t', '\r', '\n':
			return
		}
	}
}

var (
	ofJSON = reflect.TypeFor[json.Unmarshaler]()
	ofText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodesItself reports whether t has a decoder of its own.
func decodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(ofJSON) || p.Implements(ofText)
}

// fields of structs, by type: map[reflect.Type][]field.
var fields sync.Map

type field struct {
	name string
	of   reflect.Type
}

// fieldOf returns the type of the field that encoding/json chooses for a quoted name, nil for none.
func fieldOf(t reflect.Type, quoted []byte) reflect.Type {
	known, ok := fields.Load(t)
	if !ok {
		known, _ = fields.LoadOrStore(t, fieldsOf(t))
	}
	name := string(quoted[1:max(len(quoted)-1, 1)])
	if strings.Contains(name, `\`) {
		_ = json.Unmarshal(quoted, &name) // a wrong name is one of no field
	}
	for _, f := range known.([]field) {
		if strings.EqualFold(f.name, name) {
			return f.of
		}
	}
	return nil
}

// fieldsOf returns the fields of a struct that encoding/json knows, those of embedded ones included.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "": // its fields follow
		case name == "":
			out = append(out, field{f.Name, f.Type})
		default:
			out = append(out, field{name, f.Type})
		}
	}
	return out
}
