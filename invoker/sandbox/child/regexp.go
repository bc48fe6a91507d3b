package child

import (
	"errors"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
)

// expression is the state of a RegExp object of ours: one that goja's engines do not run.
type expression struct {
	prog   *regex.Program
	source goja.String
}

// textCache keeps the code units of the string that was searched last, for loops that
// search one string many times.
type textCache struct {
	text  goja.Value
	units []uint16
}

// units returns the UTF-16 code units of s.
func (r *realm) units(s goja.String) []uint16 {
	if r.searched.text != nil && r.searched.text.StrictEquals(s) {
		return r.searched.units
	}
	units := unitsOf(s)
	r.searched = textCache{s, units}
	return units
}

func unitsOf(s goja.String) []uint16 {
	units := make([]uint16, s.Length())
	for i := range units {
		units[i] = s.CharAt(i)
	}
	return units
}

// maxExpressions bounds the compiled expressions that a realm keeps.
const maxExpressions = 500

// regexpCompile makes the expression of the text and the flags that are its second and
// third argument the state of the RegExp object that is its first.
func regexpCompile(r *realm, call goja.FunctionCall) goja.Value {
	obj, ok := call.Argument(0).(*goja.Object)
	pattern, isText := call.Argument(1).(goja.String)
	flags := call.Argument(2).String()
	if !ok || !isText {
		panic(r.vm.NewTypeError("a RegExp object and a pattern are expected"))
	}
	prog := r.expressionOf(pattern, flags)
	if e, ok := stateOf[*expression](obj); ok {
		*e = expression{prog, pattern}
		return obj
	}
	r.attach(obj, &expression{prog, pattern})
	return obj
}

func (r *realm) expressionOf(pattern goja.String, flags string) *regex.Program {
	units := unitsOf(pattern)
	key := flags + "/" + string(runesOf(units))
	if prog, ok := r.expressions[key]; ok {
		return prog
	}
	f, ok := regex.ParseFlags(flags)
	if !ok {
		panic(r.syntaxError("Invalid flags supplied to RegExp constructor '" + flags + "'"))
	}
	prog, err := regex.Compile(units, f)
	if err != nil {
		panic(r.syntaxError(err.Error()))
	}
	if r.expressions == nil || len(r.expressions) >= maxExpressions {
		r.expressions = make(map[string]*regex.Program)
	}
	r.expressions[key] = prog
	return prog
}

// runesOf keeps code units apart from each other, lone surrogates too.
func runesOf(units []uint16) []rune {
	out := make([]rune, len(units))
	for i, c := range units {
		out[i] = rune(c)
		if c >= 0xD800 && c < 0xE000 {
			out[i] = 0x100000 + rune(c) // a plane for private use: runes cannot be surrogates
		}
	}
	return out
}

// syntaxError makes an error to throw.
func (r *realm) syntaxError(message string) *goja.Object {
	return r.errorOf("SyntaxError", message)
}

// errorOf makes an error of the language's class of that name.
func (r *realm) errorOf(class, message string) *goja.Object {
	v, err := r.vm.New(r.vm.Get(class), r.vm.ToValue(message))
	must(err)
	return v
}

// regexpFallback keeps the exec of goja, for RegExp objects that goja's own methods make.
func regexpFallback(r *realm, call goja.FunctionCall) goja.Value {
	r.nativeExec, _ = goja.AssertFunction(call.Argument(0))
	return goja.Undefined()
}

// regexpExec is RegExp.prototype.exec.
func regexpExec(r *realm, call goja.FunctionCall) goja.Value {
	e, ok := stateOf[*expression](call.This)
	if !ok {
		v, err := r.nativeExec(call.This, call.Arguments...)
		must(err)
		return v
	}
	text := r.text(call.Argument(0))
	match := r.search(e, call.This.(*goja.Object), text)
	if match == nil {
		return goja.Null()
	}
	return r.matchResult(e, text, match)
}

// regexpTest is RegExp.prototype.test where exec was not replaced.
func regexpTest(r *realm, call goja.FunctionCall) goja.Value {
	e, ok := stateOf[*expression](call.This)
	if !ok {
		v, err := r.nativeExec(call.This, call.Arguments...)
		must(err)
		return r.vm.ToValue(!goja.IsNull(v))
	}
	return r.vm.ToValue(r.search(e, call.This.(*goja.Object), r.text(call.Argument(0))) != nil)
}

func (r *realm) text(v goja.Value) goja.String {
	switch p := v.ToString().(type) {
	case goja.String:
		return p
	case *goja.Symbol:
		panic(r.vm.NewTypeError("Cannot convert a Symbol value to a string"))
	default:
		return r.vm.ToValue(p.String()).(goja.String)
	}
}

// search finds the next match and moves lastIndex (RegExpBuiltinExec).
func (r *realm) search(e *expression, this *goja.Object, text goja.String) []int32 {
	last := toLength(this.Get("lastIndex"))
	moves := e.prog.Flags.Global || e.prog.Flags.Sticky
	if !moves {
		last = 0
	}
	var match []int32
	if last <= int64(text.Length()) {
		match = r.match(e, text, int(last))
	}
	switch {
	case !moves:
	case match == nil:
		r.setStrictly(this, "lastIndex", r.vm.ToValue(0))
	default:
		r.setStrictly(this, "lastIndex", r.vm.ToValue(match[1]))
	}
	return match
}

// setStrictly sets a property or throws.
func (r *realm) setStrictly(o *goja.Object, name string, v goja.Value) {
	must(o.Set(name, v))
}

func toLength(v goja.Value) int64 { return min(max(v.ToInteger(), 0), 1<<53-1) }

func (r *realm) match(e *expression, text goja.String, from int) []int32 {
	return r.matchAt(e, text, from, e.prog.Flags.Sticky)
}

func (r *realm) matchAt(e *expression, text goja.String, from int, sticky bool) []int32 {
	ctl := r.ctl
	found, err := e.prog.Match(r.units(text), from, sticky, func() bool { return ctl.cause() != causeNone })
	if errors.Is(err, regex.ErrTooDeep) {
		panic(r.errorOf("RangeError", "the regular expression backtracks too much on this string"))
	}
	return found // of a match that was stopped no instruction of the script sees anything
}

// matchResult makes the array that exec returns.
func (r *realm) matchResult(e *expression, text goja.String, match []int32) goja.Value {
	items := make([]any, e.prog.Groups)
	for i := range items {
		items[i] = goja.Undefined()
		if match[2*i] >= 0 {
			items[i] = text.Substring(int(match[2*i]), int(match[2*i+1]))
		}
	}
	result := r.vm.NewArray(items...)
	r.member(result, "index", r.vm.ToValue(match[0]))
	r.member(result, "input", text)
	r.member(result, "groups", r.matchGroups(e, match, func(i int) any { return items[i] }))
	if e.prog.Flags.HasIndices {
		indices := make([]any, e.prog.Groups)
		for i := range indices {
			indices[i] = goja.Undefined()
			if match[2*i] >= 0 {
				indices[i] = r.vm.NewArray(match[2*i], match[2*i+1])
			}
		}
		list := r.vm.NewArray(indices...)
		r.member(list, "groups", r.matchGroups(e, match, func(i int) any { return indices[i] }))
		r.member(result, "indices", list)
	}
	return result
}

// member defines a property of a new object as an assignment in a literal does.
func (r *realm) member(o *goja.Object, name string, v goja.Value) {
	must(o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
}

// matchGroups makes the object of the named groups, undefined where there are none.
func (r *realm) matchGroups(e *expression, match []int32, value func(int) any) goja.Value {
	if len(e.prog.Names) == 0 {
		return goja.Undefined()
	}
	groups := r.vm.CreateObject(nil)
	for _, name := range e.prog.Names {
		at := name.Indices[0]
		for _, i := range name.Indices {
			if match[2*i] >= 0 {
				at = i
			}
		}
		r.member(groups, name.Name, r.vm.ToValue(value(at)))
	}
	return groups
}

// regexpFlags returns the flags of an expression of ours, undefined for other values.
func regexpFlags(r *realm, call goja.FunctionCall) goja.Value {
	e, ok := stateOf[*expression](call.Argument(0))
	if !ok {
		return goja.Undefined()
	}
	return r.vm.ToValue(e.prog.Flags.String())
}

// regexpSource returns the source of an expression of ours as its literal would have it,
// undefined for other values.
func regexpSource(r *realm, call goja.FunctionCall) goja.Value {
	e, ok := stateOf[*expression](call.Argument(0))
	if !ok {
		return goja.Undefined()
	}
	units := unitsOf(e.source)
	if len(units) == 0 {
		return r.vm.ToValue("(?:)")
	}
	out := make([]uint16, 0, len(units)+8)
	class, escaped := false, false
	for _, c := range units {
		text, special := map[uint16]string{'\n': `n`, '\r': `r`, 0x2028: `u2028`, 0x2029: `u2029`}[c]
		switch {
		case special:
			if !escaped {
				out = append(out, '\\')
			}
			for _, t := range text {
				out = append(out, uint16(t))
			}
		case c == '/' && !class && !escaped:
			out = append(out, '\\', '/')
		default:
			out = append(out, c)
		}
		if !escaped && c == '[' {
			class = true
		} else if !escaped && c == ']' {
			class = false
		}
		escaped = c == '\\' && !escaped
	}
	return goja.StringFromUTF16(out)
}

// plainExpression reports whether goja runs a pattern as the language demands. All other
// patterns run on package regex.
func plainExpression(pattern, flags string) bool {
	if strings.Trim(flags, "gimsy") != "" {
		return false
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c >= 0x80:
			return false
		case c == '\\':
			i++
			if i < len(pattern) && strings.IndexByte("pPkuc123456789", pattern[i]) >= 0 {
				return false
			}
		case c == '(' && strings.HasPrefix(pattern[i:], "(?") && !strings.HasPrefix(pattern[i:], "(?:"):
			return false
		}
	}
	return true
}

// regexpEscape is RegExp.escape of a string.
func regexpEscape(_ *realm, call goja.FunctionCall) goja.Value {
	text, ok := call.Argument(0).(goja.String)
	if !ok {
		return goja.Undefined()
	}
	return goja.StringFromUTF16(regex.Escape(unitsOf(text)))
}
