package child

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
)

// encoder writes JSON as JSON.stringify does (ECMAScript, 25.5.2), without replacer and
// indentation. It works within a bound, so that a result is refused before its text has
// eaten the memory; goja's own has none. It differs from JSON.stringify in the bound of
// nesting.
type encoder struct {
	realm *realm
	out   []byte         // the text so far
	limit int            // of out, in bytes; passing it is found at the next value
	stack []*goja.Object // the objects being written, to find cycles
	// errors has an Error without a toJSON written with its name, message, stack and cause,
	// which JSON.stringify leaves out: they are not enumerable.
	errors bool
}

// notJSON is a value that JSON cannot hold.
type notJSON struct{ message string }

func (e *notJSON) Error() string { return e.message }

// tooLong is text over the encoder's limit.
type tooLong struct{}

func (tooLong) Error() string { return "the JSON text is too long" }

// notEncodable reports whether err is about the value: not JSON, or too long. Any other
// error of encodeJSON was thrown by the script meanwhile.
func notEncodable(err error) bool {
	var not *notJSON
	var long tooLong
	return errors.As(err, &not) || errors.As(err, &long)
}

// encodeJSON returns v's JSON text of at most limit bytes. ok is false where
// JSON.stringify would return undefined. err is a *notJSON, a tooLong or the exception of a
// script's toJSON or getter.
//
// For example, with JSON.stringify's rules:
//
//	{a: undefined, b: [undefined, () => 1], c: NaN}   {"b":[null,null],"c":null}
//	new Date(0)                                       "1970-01-01T00:00:00.000Z"
//	undefined                                         ok is false
//	10n                                               *notJSON
func (r *realm) encodeJSON(v goja.Value, limit int) (text []byte, ok bool, err error) {
	return (&encoder{realm: r, limit: limit}).encode(v)
}

// logJSON returns v as a log line has it: as encodeJSON, with the Errors in it.
func (r *realm) logJSON(v goja.Value, limit int) (text []byte, ok bool, err error) {
	return (&encoder{realm: r, limit: limit, errors: true}).encode(v)
}

func (e *encoder) encode(v goja.Value) (text []byte, ok bool, err error) {
	threw := e.realm.try(func() { ok, err = e.value("", v) })
	if threw != nil {
		return nil, false, threw
	}
	if err == nil && len(e.out) > e.limit {
		err = tooLong{}
	}
	if err != nil || !ok {
		return nil, false, err
	}
	return e.out, true, nil
}

// result encodes the value that a handler returned; nil stands for undefined. Errors: a
// *refusedResult for a value that is too large or not JSON, otherwise what the script threw
// meanwhile.
func (r *realm) result(v goja.Value) ([]byte, error) {
	text, ok, err := r.encodeJSON(v, api.MaxResultBytes)
	var long tooLong
	var not *notJSON
	switch {
	case err == nil:
	case errors.As(err, &long):
		return nil, &refusedResult{api.ErrResultTooLarge, "the result is more than 6 MiB as JSON"}
	case errors.As(err, &not):
		return nil, &refusedResult{api.ErrResultInvalid, "the result is not JSON: " + not.message}
	default:
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	return text, nil
}

// value writes v and reports whether there was anything to write: undefined, functions and
// symbols have no JSON form. key is the name under which v stands, which a toJSON method
// receives. What v wrote before an error stays in out.
func (e *encoder) value(key string, v goja.Value) (bool, error) {
	if len(e.out) > e.limit {
		return false, tooLong{}
	}
	switch v := v.(type) {
	case nil:
		return false, nil
	case goja.String:
		return true, e.string(v)
	case *goja.Symbol:
		return false, nil
	case *goja.Object:
		return e.object(key, v)
	}
	if goja.IsUndefined(v) {
		return false, nil
	}
	if goja.IsNull(v) {
		e.out = append(e.out, "null"...)
		return true, nil
	}
	switch n := v.Export().(type) {
	case bool:
		e.out = strconv.AppendBool(e.out, n)
	case int64:
		e.out = strconv.AppendInt(e.out, n, 10)
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			e.out = append(e.out, "null"...)
		} else {
			e.out = append(e.out, v.String()...)
		}
	case *big.Int:
		return e.bigInt(key, v)
	}
	return true, nil
}

// bigInt writes a BigInt if a script has defined a toJSON for it, and refuses it otherwise.
func (e *encoder) bigInt(key string, v goja.Value) (bool, error) {
	boxed := v.ToObject(e.realm.vm)
	if replaced, ok, err := e.toJSON(key, v, boxed); err != nil || ok {
		if err != nil {
			return false, err
		}
		if _, still := replaced.Export().(*big.Int); !still {
			return e.value(key, replaced)
		}
	}
	return false, &notJSON{"a BigInt has no JSON form"}
}

// toJSON calls the method of that name, if there is one; ok reports that. this is its
// receiver, obj the object on which it is looked for.
func (e *encoder) toJSON(key string, this goja.Value, obj *goja.Object) (goja.Value, bool, error) {
	method, ok := obj.Get("toJSON").(*goja.Object)
	if !ok {
		return nil, false, nil
	}
	call, ok := goja.AssertFunction(method)
	if !ok {
		return nil, false, nil
	}
	v, err := call(this, e.realm.vm.ToValue(key))
	return v, err == nil, err
}

// object writes an object: what its toJSON returns, a boxed primitive as its value, and an
// array or any other object by its elements or members.
func (e *encoder) object(key string, obj *goja.Object) (bool, error) {
	if v, ok, err := e.toJSON(key, obj, obj); err != nil {
		return false, err
	} else if ok {
		replaced, ok := v.(*goja.Object)
		if !ok {
			return e.value(key, v)
		}
		obj = replaced
	}
	switch obj.ClassName() {
	case "Object", "Array":
	case "Function":
		return false, nil
	case "Number":
		return e.value(key, obj.ToNumber())
	case "String":
		return e.value(key, obj.ToString())
	case "Boolean":
		return e.value(key, e.realm.vm.ToValue(obj.Export()))
	case "BigInt":
		return false, &notJSON{"a BigInt has no JSON form"}
	case "RawJSON":
		raw, _ := stringProperty(obj, "rawJSON")
		e.out = append(e.out, raw...)
		return true, nil
	default:
		if _, callable := goja.AssertFunction(obj); callable {
			return false, nil
		}
	}
	if err := e.enter(obj); err != nil {
		return false, err
	}
	var err error
	switch {
	case obj.ClassName() == "Array":
		err = e.elements(obj)
	case e.errors && obj.ClassName() == "Error":
		err = e.failure(obj)
	default:
		err = e.members(obj)
	}
	e.stack = e.stack[:len(e.stack)-1]
	return true, err
}

// enter notes that obj is being written, and refuses cycles and deep nesting. The caller
// removes obj from the stack.
func (e *encoder) enter(obj *goja.Object) error {
	for _, outer := range e.stack {
		if outer == obj {
			return &notJSON{"it contains itself"}
		}
	}
	if len(e.stack) >= maxEncodeDepth {
		return &notJSON{"it is nested deeper than 1000 levels"}
	}
	e.stack = append(e.stack, obj)
	return nil
}

// maxEncodeDepth bounds nesting, and the cost of looking for cycles, which compares each
// object with all around it.
const maxEncodeDepth = 1000

// elements writes an array, with null in place of a value without a JSON form.
func (e *encoder) elements(array *goja.Object) error {
	n := array.Get("length").ToInteger()
	e.out = append(e.out, '[')
	for i := range n {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		index := strconv.FormatInt(i, 10)
		ok, err := e.value(index, array.Get(index))
		if err != nil {
			return err
		}
		if !ok {
			e.out = append(e.out, "null"...)
		}
	}
	e.out = append(e.out, ']')
	return nil
}

// members writes an object's own enumerable members, without those whose value has no JSON
// form: the name is written first, and removed again.
func (e *encoder) members(obj *goja.Object) error { return e.named(obj, obj.Keys()) }

// failure writes an Error: its name, message, stack, cause and, of an AggregateError, errors,
// and its other members.
func (e *encoder) failure(obj *goja.Object) error {
	names := []string{"name", "message", "stack", "cause", "errors"}
	for _, name := range obj.Keys() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return e.named(obj, names)
}

// named writes the members of an object that have these names.
func (e *encoder) named(obj *goja.Object, names []string) error {
	e.out = append(e.out, '{')
	empty := true
	for _, name := range names {
		before := len(e.out)
		if !empty {
			e.out = append(e.out, ',')
		}
		e.text(name)
		e.out = append(e.out, ':')
		value := obj.Get(name)
		if stack, ok := value.(goja.String); ok && name == "stack" && e.errors && obj.ClassName() == "Error" {
			value = e.realm.vm.ToValue(cleanStack(stack.String()))
		}
		ok, err := e.value(name, value)
		if err != nil {
			return err
		}
		if ok {
			empty = false
		} else {
			e.out = e.out[:before]
		}
	}
	e.out = append(e.out, '}')
	return nil
}

// string writes a string value. If Go's form of it shows U+FFFD it may have been a lone
// surrogate, which only its code units show; JSON has an escape for it (well-formed
// JSON.stringify).
func (e *encoder) string(s goja.String) error {
	if s.Length() > e.limit {
		return tooLong{}
	}
	text := s.String()
	if !strings.ContainsRune(text, utf8.RuneError) {
		e.text(text)
		return nil
	}
	e.out = append(e.out, '"')
	for i := 0; i < s.Length(); i++ {
		e.unit(s, &i)
	}
	e.out = append(e.out, '"')
	return nil
}

// unit writes the character at code unit i and leaves i at its last unit.
func (e *encoder) unit(s goja.String, i *int) {
	u := rune(s.CharAt(*i))
	switch {
	case u >= 0xd800 && u < 0xdc00 && *i+1 < s.Length():
		low := rune(s.CharAt(*i + 1))
		if low >= 0xdc00 && low < 0xe000 {
			*i++
			e.out = utf8.AppendRune(e.out, (u-0xd800)<<10|(low-0xdc00)+0x10000)
			return
		}
		e.escaped(u)
	case u >= 0xd800 && u < 0xe000:
		e.escaped(u)
	default:
		e.char(string(u))
	}
}

const hexDigits = "0123456789abcdef"

// escaped writes a code unit as \uXXXX, in lower case as JSON.stringify.
func (e *encoder) escaped(u rune) {
	e.out = append(e.out, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

// text writes a quoted string.
func (e *encoder) text(s string) {
	e.out = append(e.out, '"')
	e.char(s)
	e.out = append(e.out, '"')
}

// char writes the characters of s, escaped where they must be.
func (e *encoder) char(s string) {
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		e.out = append(e.out, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			e.out = append(e.out, '\\', c)
		case '\b':
			e.out = append(e.out, `\b`...)
		case '\t':
			e.out = append(e.out, `\t`...)
		case '\n':
			e.out = append(e.out, `\n`...)
		case '\f':
			e.out = append(e.out, `\f`...)
		case '\r':
			e.out = append(e.out, `\r`...)
		default:
			e.escaped(rune(c))
		}
	}
	e.out = append(e.out, s[start:]...)
}
