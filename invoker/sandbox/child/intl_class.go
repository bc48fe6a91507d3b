package child

import (
	"math"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

// intlClass describes a class of Intl. Its members are not enumerable, unlike those of the
// web's classes.
type intlClass struct {
	name      string
	length    int
	plain     bool // it may be called without new
	construct func(r *realm, args goja.ConstructorCall) any
	methods   []intlMember
	getters   []intlMember
	locales   bool // it has supportedLocalesOf
}

// intlMember is a method or a getter: this is checked by call.
type intlMember struct {
	name   string
	length int
	call   func(r *realm, call goja.FunctionCall) goja.Value
}

// method makes a member whose receiver must have a state of type T.
func method[T any](class, name string, length int, call func(r *realm, this T, call goja.FunctionCall) goja.Value) intlMember {
	return intlMember{name, length, func(r *realm, c goja.FunctionCall) goja.Value {
		this, ok := stateOf[T](c.This)
		if !ok {
			panic(r.vm.NewTypeError("Method Intl.%s.prototype.%s called on incompatible receiver %s", class, name, describe(c.This)))
		}
		return call(r, this, c)
	}}
}

// describe names a value in a message without running code of the script.
func describe(v goja.Value) string {
	if obj, ok := v.(*goja.Object); ok {
		return "#<" + obj.ClassName() + ">"
	}
	return v.String()
}

// defineIntl makes a class of Intl, once in a realm.
func (r *realm) defineIntl(c *intlClass) built {
	key := "Intl." + c.name
	if b, ok := r.classes[key]; ok {
		return b
	}
	var b built
	b.ctor = r.vm.ToValue(func(call goja.ConstructorCall) *goja.Object {
		this := call.This
		if call.NewTarget == nil && !fresh(this, b.proto) {
			if !c.plain {
				panic(r.vm.NewTypeError("Constructor Intl.%s requires 'new'", c.name))
			}
			this = r.vm.CreateObject(b.proto)
		}
		r.attach(this, c.construct(r, call))
		return this
	}).(*goja.Object)
	b.proto = b.ctor.Get("prototype").(*goja.Object)
	must(b.ctor.DefineDataProperty("prototype", b.proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	must(b.ctor.DefineDataProperty("name", r.vm.ToValue(c.name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(b.ctor.DefineDataProperty("length", r.vm.ToValue(c.length), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	for _, m := range c.methods {
		r.hidden(b.proto, m.name, r.newFunction(m.name, m.length, func(call goja.FunctionCall) goja.Value { return m.call(r, call) }))
	}
	for _, m := range c.getters {
		get := r.newFunction("get "+m.name, 0, func(call goja.FunctionCall) goja.Value { return m.call(r, call) })
		must(b.proto.DefineAccessorProperty(m.name, get, nil, goja.FLAG_TRUE, goja.FLAG_FALSE))
	}
	if c.locales {
		r.hidden(b.ctor, "supportedLocalesOf", r.newFunction("supportedLocalesOf", 1, r.supportedLocalesOf))
	}
	must(b.proto.DefineDataPropertySymbol(goja.SymToStringTag, r.vm.ToValue("Intl."+c.name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	if r.classes == nil {
		r.classes = make(map[string]built)
	}
	r.classes[key] = b
	return b
}

// fresh reports whether new made an object just now: goja names no new.target where it is
// the class itself.
func fresh(obj, proto *goja.Object) bool {
	return obj.Prototype() == proto && obj.GetSymbol(slot) == nil
}

// intlObject makes Intl (https://tc39.es/ecma402/#intl-object).
func intlObject(r *realm) goja.Value {
	o := r.vm.NewObject()
	for _, c := range intlClasses() {
		r.hidden(o, c.name, r.defineIntl(c).ctor)
	}
	r.hidden(o, "getCanonicalLocales", r.newFunction("getCanonicalLocales", 1, func(call goja.FunctionCall) goja.Value {
		return r.strings(tagStrings(r.localeList(call.Argument(0))))
	}))
	r.hidden(o, "supportedValuesOf", r.newFunction("supportedValuesOf", 1, func(call goja.FunctionCall) goja.Value {
		key := call.Argument(0).String()
		values, ok := intl.SupportedValues(key)
		if !ok {
			panic(r.newNamedError("RangeError", "Invalid key : "+key))
		}
		return r.strings(values)
	}))
	must(o.DefineDataPropertySymbol(goja.SymToStringTag, r.vm.ToValue("Intl"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	return o
}

func (r *realm) strings(list []string) goja.Value {
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	return r.vm.NewArray(values...)
}

func tagStrings(tags []intl.Tag) []string {
	var out []string
	for i := range tags {
		if s := tags[i].String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (r *realm) supportedLocalesOf(call goja.FunctionCall) goja.Value {
	tags := r.localeList(call.Argument(0))
	r.intlOptions(call.Argument(1), true, "").text("localeMatcher", "lookup", "best fit")
	var out []intl.Tag
	for _, t := range tags {
		if _, ok := intl.Matched(t.Base()); ok {
			out = append(out, t)
		}
	}
	return r.strings(tagStrings(out))
}

// localeList reads the argument locales: CanonicalizeLocaleList of ECMA-402.
func (r *realm) localeList(v goja.Value) []intl.Tag {
	if v == nil || goja.IsUndefined(v) {
		return nil
	}
	if goja.IsNull(v) {
		panic(r.vm.NewTypeError("Cannot convert undefined or null to object"))
	}
	obj, ok := v.(*goja.Object)
	if !ok || obj.ClassName() == "String" {
		if goja.IsString(v) {
			return []intl.Tag{r.tag(v.String())}
		}
		if !ok {
			return nil // numbers and such have no elements
		}
	}
	if l, ok := stateOf[*intl.Locale](v); ok {
		return []intl.Tag{l.Tag}
	}
	var tags []intl.Tag
	n := obj.Get("length")
	if n == nil {
		return nil
	}
	for i := range n.ToInteger() {
		r.checkStopped()
		item := obj.Get(r.vm.ToValue(i).String())
		if item == nil {
			continue
		}
		if l, ok := stateOf[*intl.Locale](item); ok {
			tags = append(tags, l.Tag)
			continue
		}
		if _, isObject := item.(*goja.Object); !isObject && !goja.IsString(item) {
			panic(r.vm.NewTypeError("Incorrect locale information provided"))
		}
		tags = append(tags, r.tag(item.String()))
	}
	return tags
}

func (r *realm) tag(s string) intl.Tag {
	t, ok := intl.ParseTag(s)
	if !ok {
		panic(r.newNamedError("RangeError", "Incorrect locale information provided"))
	}
	return t
}

// optionBag reads the options of a function of Intl, each once and in the order of the
// specification.
type optionBag struct {
	r     *realm
	obj   *goja.Object // nil if there are none
	class string
}

// intlOptions reads the argument options. With coerce, a value that is not an object becomes
// one; else it is a TypeError.
func (r *realm) intlOptions(v goja.Value, coerce bool, class string) *optionBag {
	if v == nil || goja.IsUndefined(v) {
		return &optionBag{r, nil, class}
	}
	if goja.IsNull(v) {
		panic(r.vm.NewTypeError("Cannot convert undefined or null to object"))
	}
	if _, ok := v.(*goja.Object); !ok && !coerce {
		panic(r.vm.NewTypeError("Incorrect options: not an object"))
	}
	return &optionBag{r, v.ToObject(r.vm), class}
}

// get returns an option, nil if it is undefined.
func (o *optionBag) get(name string) goja.Value {
	if o.obj == nil {
		return nil
	}
	v := o.obj.Get(name)
	if v == nil || goja.IsUndefined(v) {
		return nil
	}
	return v
}

// text returns an option as a string, "" if it is undefined. It must be one of allowed,
// unless there are none.
func (o *optionBag) text(name string, allowed ...string) string {
	v := o.get(name)
	if v == nil {
		return ""
	}
	s := o.r.toText(v)
	if len(allowed) > 0 && !slices.Contains(allowed, s) {
		o.fail("Value %s out of range for Intl.%s options property %s", s, o.class, name)
	}
	return s
}

// toText converts a value to a string as JavaScript does; a symbol is a TypeError.
func (r *realm) toText(v goja.Value) string {
	if _, ok := v.(*goja.Symbol); ok {
		panic(r.vm.NewTypeError("Cannot convert a Symbol value to a string"))
	}
	return v.String()
}

// name returns an option that must have the form of a keyword's value, such as a calendar.
func (o *optionBag) name(name string) string {
	v := o.get(name)
	if v == nil {
		return ""
	}
	s := strings.ToLower(o.r.toText(v))
	for part := range strings.SplitSeq(s, "-") {
		if len(part) < 3 || len(part) > 8 || strings.ContainsFunc(part, func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'a' || c > 'z')
		}) {
			o.fail("Invalid %s : %s", name, s)
		}
	}
	return s
}

// boolean returns an option as a boolean, nil if it is undefined.
func (o *optionBag) boolean(name string) *bool {
	v := o.get(name)
	if v == nil {
		return nil
	}
	b := v.ToBoolean()
	return &b
}

// integer returns an option as an integer from least to most, or fallback.
func (o *optionBag) integer(name string, least, most, fallback int) int {
	v := o.get(name)
	if v == nil {
		return fallback
	}
	return o.bounded(name, v, least, most)
}

func (o *optionBag) bounded(name string, v goja.Value, least, most int) int {
	n := v.ToFloat()
	if math.IsNaN(n) || n < float64(least) || n > float64(most) {
		o.fail("%s value is out of range.", name)
	}
	return int(math.Floor(n))
}

func (o *optionBag) fail(format string, args ...any) {
	o.r.rangeError(format, args...)
}

// parts makes the array of formatToParts.
func (r *realm) parts(list []intl.Part) goja.Value {
	values := make([]any, len(list))
	for i, p := range list {
		o := r.vm.NewObject()
		must(o.Set("type", p.Type))
		must(o.Set("value", p.Value))
		if p.Unit != "" {
			must(o.Set("unit", p.Unit))
		}
		if p.Source != "" {
			must(o.Set("source", p.Source))
		}
		values[i] = o
	}
	return r.vm.NewArray(values...)
}

// record makes an object of names and values, in order; a nil value is left out.
func (r *realm) record(pairs ...any) *goja.Object {
	o := r.vm.NewObject()
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != nil && pairs[i+1] != "" {
			must(o.Set(pairs[i].(string), pairs[i+1]))
		}
	}
	return o
}
