package child

import (
	"errors"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/regex"
	"github.com/codesous/sous/invoker/sandbox/child/urlpattern"
)

// urlPatternClass describes URLPattern (https://urlpattern.spec.whatwg.org/#urlpattern-class).
func urlPatternClass() *class[*urlpattern.Pattern] {
	members := []member[*urlpattern.Pattern]{
		{name: "hasRegExpGroups", get: func(r *realm, p *urlpattern.Pattern) goja.Value { return r.vm.ToValue(p.HasRegexpGroups()) }},
		{name: "test", call: func(r *realm, p *urlpattern.Pattern, call goja.FunctionCall) goja.Value {
			_, m := r.matchPattern(p, call)
			return r.vm.ToValue(m != nil)
		}},
		{name: "exec", call: execPattern},
	}
	for f := urlpattern.Protocol; f < urlpattern.BaseURL; f++ {
		members = append(members, member[*urlpattern.Pattern]{
			name: f.String(),
			get:  func(r *realm, p *urlpattern.Pattern) goja.Value { return r.vm.ToValue(p.Component(f)) },
		})
	}
	return &class[*urlpattern.Pattern]{name: "URLPattern", construct: newURLPattern, members: members}
}

// newURLPattern is the constructor, with (input, baseURL, options) or (input, options): the
// second of two arguments is the base URL unless it is an object, null or undefined.
func newURLPattern(r *realm, call goja.ConstructorCall) *urlpattern.Pattern {
	second, options := call.Argument(1), call.Argument(2)
	hasBase := len(call.Arguments) > 2
	if !hasBase {
		_, isObject := second.(*goja.Object)
		hasBase = !isObject && !goja.IsUndefined(second) && !goja.IsNull(second)
	}
	if !hasBase {
		options = second
	}
	in := r.patternInput(call.Argument(0))
	if hasBase {
		in.HasBase, in.Base = true, r.text(second).String()
	}
	o := urlpattern.Options{Stop: r.stopped()}
	if object, ok := options.(*goja.Object); ok {
		o.IgnoreCase = truthy(object, "ignoreCase")
	} else if !goja.IsUndefined(options) && !goja.IsNull(options) {
		panic(r.vm.NewTypeError("URLPattern: the options must be an object"))
	}
	p, err := urlpattern.New(in, o)
	r.patternError(err)
	return p
}

// stopped returns the function by which Go code learns that the script was stopped.
func (r *realm) stopped() func() bool {
	ctl := r.ctl
	return func() bool { return ctl.cause() != causeNone }
}

// patternError throws the exception for an error of package urlpattern. A script that was
// stopped may run some instructions more until the interrupt reaches it: these see no match,
// and no pattern that was not compiled to its end.
func (r *realm) patternError(err error) {
	switch {
	case err == nil:
	case errors.Is(err, regex.ErrTooDeep):
		panic(r.errorOf("RangeError", "URLPattern: the regular expression backtracks too much on this URL"))
	default:
		panic(r.vm.NewTypeError("URLPattern: %s", err))
	}
}

// patternFields are the members of a URLPatternInit, in the order in which a dictionary is
// read and made.
func patternFields() []urlpattern.Field {
	return []urlpattern.Field{
		urlpattern.BaseURL, urlpattern.Hash, urlpattern.Hostname, urlpattern.Password, urlpattern.Pathname,
		urlpattern.Port, urlpattern.Protocol, urlpattern.Search, urlpattern.Username,
	}
}

// patternInput converts a URLPatternInput, a string or a URLPatternInit.
func (r *realm) patternInput(v goja.Value) urlpattern.Input {
	object, ok := v.(*goja.Object)
	if !ok && !goja.IsUndefined(v) && !goja.IsNull(v) {
		return urlpattern.Input{Text: r.text(v).String()}
	}
	in := urlpattern.Input{Init: urlpattern.Init{}}
	if !ok {
		return in
	}
	for _, f := range patternFields() {
		if value := object.Get(f.String()); value != nil && !goja.IsUndefined(value) {
			in.Init[f] = r.text(value).String()
		}
	}
	return in
}

// matchPattern matches the arguments of test and exec. The match is nil for none.
func (r *realm) matchPattern(p *urlpattern.Pattern, call goja.FunctionCall) (urlpattern.Input, *urlpattern.Match) {
	in := r.patternInput(call.Argument(0))
	if base := call.Argument(1); !goja.IsUndefined(base) {
		in.HasBase, in.Base = true, r.text(base).String()
	}
	m, err := p.Match(in, r.stopped())
	r.patternError(err)
	return in, m
}

// execPattern is URLPattern.exec. It makes the members of its result in the order that Web
// IDL has for dictionaries.
func execPattern(r *realm, p *urlpattern.Pattern, call goja.FunctionCall) goja.Value {
	in, m := r.matchPattern(p, call)
	if m == nil {
		return goja.Null()
	}
	result := r.vm.NewObject()
	for _, f := range patternFields()[1:] {
		if f == urlpattern.Password { // the member that follows in the alphabet
			r.member(result, "inputs", r.patternInputs(in))
		}
		groups := r.vm.NewObject()
		for _, g := range m[f].Groups {
			value := goja.Undefined()
			if g.Matched {
				value = r.vm.ToValue(g.Value)
			}
			r.member(groups, g.Name, value)
		}
		c := r.vm.NewObject()
		r.member(c, "groups", groups)
		r.member(c, "input", r.vm.ToValue(m[f].Input))
		r.member(result, f.String(), c)
	}
	return result
}

// patternInputs makes the arguments as they were understood.
func (r *realm) patternInputs(in urlpattern.Input) goja.Value {
	if in.Init == nil {
		list := []any{in.Text}
		if in.HasBase {
			list = append(list, in.Base)
		}
		return r.vm.NewArray(list...)
	}
	init := r.vm.NewObject()
	for _, f := range patternFields() {
		if value, ok := in.Init[f]; ok {
			r.member(init, f.String(), r.vm.ToValue(value))
		}
	}
	return r.vm.NewArray(init)
}
