package child

import (
	"strconv"

	"github.com/dop251/goja"
)

func (r *realm) regexpExecFunction() goja.Value {
	r.regexpExec = r.newFunction("exec", 1, func(c goja.FunctionCall) goja.Value { return regexpExec(r, c) })
	return r.regexpExec
}

// regexpPristine reports whether a value is an expression of ours to which the script has
// added nothing, so that its methods need not look up what it could have replaced.
func regexpPristine(r *realm, call goja.FunctionCall) goja.Value {
	obj, ok := call.Argument(0).(*goja.Object)
	if ok {
		_, ok = stateOf[*expression](obj)
	}
	return r.vm.ToValue(ok && len(obj.GetOwnPropertyNames()) == 1 && r.regexpExec.SameAs(obj.Get("exec")))
}

// receiverOf returns the RegExp object and the text of the methods for strings.
func (r *realm) receiverOf(call goja.FunctionCall) (*goja.Object, *expression, goja.String) {
	e, ok := stateOf[*expression](call.Argument(0))
	if !ok {
		panic(r.vm.NewTypeError("the receiver is not a RegExp"))
	}
	return call.Argument(0).(*goja.Object), e, r.text(call.Argument(1))
}

// matches returns the matches that a global expression finds, or the first one that another
// finds, and leaves lastIndex as these do.
func (r *realm) matches(this *goja.Object, e *expression, text goja.String) [][]int32 {
	if !e.prog.Flags.Global {
		if match := r.search(e, this, text); match != nil {
			return [][]int32{match}
		}
		return nil
	}
	must(this.Set("lastIndex", 0))
	var all [][]int32
	for at := 0; at <= text.Length(); {
		match := r.match(e, text, at)
		if match == nil {
			break
		}
		all = append(all, match)
		at = int(match[1])
		if match[0] == match[1] {
			at = r.advance(e, text, at)
		}
	}
	return all
}

// advance returns the index of the next character.
func (r *realm) advance(e *expression, text goja.String, at int) int {
	if e.prog.Flags.Full() && at+1 < text.Length() {
		if c, d := text.CharAt(at), text.CharAt(at+1); c >= 0xD800 && c < 0xDC00 && d >= 0xDC00 && d < 0xE000 {
			return at + 2
		}
	}
	return at + 1
}

// regexpMatch is RegExp.prototype[Symbol.match] of a pristine expression.
func regexpMatch(r *realm, call goja.FunctionCall) goja.Value {
	this, e, text := r.receiverOf(call)
	found := r.matches(this, e, text)
	switch {
	case len(found) == 0:
		return goja.Null()
	case !e.prog.Flags.Global:
		return r.matchResult(e, text, found[0])
	}
	items := make([]any, len(found))
	for i, match := range found {
		items[i] = text.Substring(int(match[0]), int(match[1]))
	}
	return r.vm.NewArray(items...)
}

// regexpReplace is RegExp.prototype[Symbol.replace] of a pristine expression.
func regexpReplace(r *realm, call goja.FunctionCall) goja.Value {
	this, e, text := r.receiverOf(call)
	replacer, functional := goja.AssertFunction(call.Argument(2))
	var template goja.String
	if !functional {
		template = r.text(call.Argument(2))
	}
	found := r.matches(this, e, text)
	if len(found) == 0 {
		return text
	}
	var out goja.StringBuilder
	done := 0
	for _, match := range found {
		out.WriteSubstring(text, done, int(match[0]))
		done = int(match[1])
		if !functional {
			r.substitute(&out, e, text, match, template)
			continue
		}
		args := make([]goja.Value, 0, e.prog.Groups+3)
		for i := range e.prog.Groups {
			args = append(args, groupText(text, match, i))
		}
		args = append(args, r.vm.ToValue(match[0]), text)
		if len(e.prog.Names) > 0 {
			args = append(args, r.matchGroups(e, match, func(i int) any { return groupText(text, match, i) }))
		}
		v, err := replacer(goja.Undefined(), args...)
		must(err)
		out.WriteString(r.text(v))
	}
	out.WriteSubstring(text, done, text.Length())
	return out.String()
}

// groupText returns the text of a group, undefined where it did not match.
func groupText(text goja.String, match []int32, i int) goja.Value {
	if match[2*i] < 0 {
		return goja.Undefined()
	}
	return text.Substring(int(match[2*i]), int(match[2*i+1]))
}

// substitute writes a replacement text with its references filled in (GetSubstitution).
func (r *realm) substitute(out *goja.StringBuilder, e *expression, text goja.String, match []int32, template goja.String) {
	group := func(i int) {
		if match[2*i] >= 0 {
			out.WriteSubstring(text, int(match[2*i]), int(match[2*i+1]))
		}
	}
	n := template.Length()
	for i := 0; i < n; i++ {
		next := uint16(0)
		if template.CharAt(i) == '$' && i+1 < n {
			next = template.CharAt(i + 1)
		}
		switch {
		case next == '$':
			out.WriteRune('$')
			i++
		case next == '&':
			group(0)
			i++
		case next == '`':
			out.WriteSubstring(text, 0, int(match[0]))
			i++
		case next == '\'':
			out.WriteSubstring(text, int(match[1]), text.Length())
			i++
		case next >= '0' && next <= '9':
			index, length := groupReference(template, i+1, e.prog.Groups)
			if length == 0 {
				out.WriteRune('$')
				continue
			}
			group(index)
			i += length
		case next == '<' && len(e.prog.Names) > 0:
			end := i + 2
			for end < n && template.CharAt(end) != '>' {
				end++
			}
			if end == n {
				out.WriteRune('$')
				continue
			}
			name := template.Substring(i+2, end).String()
			for _, known := range e.prog.Names {
				if known.Name != name {
					continue
				}
				for _, index := range known.Indices {
					group(index)
				}
			}
			i = end
		default:
			out.WriteSubstring(template, i, i+1)
		}
	}
}

// groupReference reads one or two digits that are the number of a group.
func groupReference(template goja.String, at, groups int) (index, length int) {
	for n := 2; n >= 1; n-- {
		if at+n > template.Length() {
			continue
		}
		v, err := strconv.Atoi(template.Substring(at, at+n).String())
		if err == nil && v >= 1 && v < groups {
			return v, n
		}
	}
	return 0, 0
}

// regexpSplit is RegExp.prototype[Symbol.split] of a pristine expression.
func regexpSplit(r *realm, call goja.FunctionCall) goja.Value {
	_, e, text := r.receiverOf(call)
	limit := int(call.Argument(2).ToInteger())
	size := text.Length()
	var parts []any
	if limit == 0 {
		return r.vm.NewArray()
	}
	if size == 0 {
		if r.matchAt(e, text, 0, true) != nil {
			return r.vm.NewArray()
		}
		return r.vm.NewArray(text)
	}
	begun := 0
	for at := 0; at < size; {
		match := r.matchAt(e, text, at, false)
		if match == nil || int(match[0]) >= size {
			break
		}
		if int(match[1]) == begun {
			at = r.advance(e, text, int(match[0]))
			continue
		}
		parts = append(parts, text.Substring(begun, int(match[0])))
		begun = int(match[1])
		for i := 1; i < e.prog.Groups && len(parts) < limit; i++ {
			parts = append(parts, groupText(text, match, i))
		}
		if len(parts) >= limit {
			return r.vm.NewArray(parts...)
		}
		at = begun
	}
	return r.vm.NewArray(append(parts, text.Substring(begun, size))...)
}
