package child

import (
	"math"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

// localeMethods installs the toLocale… methods, whose results the language leaves to
// engines without Intl, and to ECMA-402 with it.
func localeMethods(r *realm, _ goja.FunctionCall) goja.Value {
	r.dateMethods()
	r.numberMethods()
	r.stringMethods()
	return goja.Undefined()
}

// prototypeOf returns the prototype of one of the language's classes, nil if the script has
// replaced the class by something else.
func (r *realm) prototypeOf(class string) *goja.Object {
	ctor, ok := r.vm.GlobalObject().Get(class).(*goja.Object)
	if !ok {
		return nil
	}
	proto, _ := ctor.Get("prototype").(*goja.Object)
	return proto
}

// dateMethods installs those of Date.
func (r *realm) dateMethods() {
	proto := r.prototypeOf("Date")
	getTime, ok := goja.AssertFunction(proto.Get("getTime"))
	if !ok {
		return
	}
	for _, m := range []struct{ name, required, defaults string }{
		{"toLocaleString", "any", "all"}, {"toLocaleDateString", "date", "date"}, {"toLocaleTimeString", "time", "time"},
	} {
		r.hidden(proto, m.name, r.newFunction(m.name, 0, func(call goja.FunctionCall) goja.Value {
			v, err := getTime(call.This)
			if err != nil {
				panic(err)
			}
			ms := v.ToFloat()
			if math.IsNaN(ms) {
				return r.vm.ToValue("Invalid Date")
			}
			f := r.newDateFormat(call.Argument(0), call.Argument(1), m.required, m.defaults)
			return r.vm.ToValue(f.Format(ms))
		}))
	}
}

// numberMethods installs toLocaleString of Number and BigInt.
func (r *realm) numberMethods() {
	for _, class := range []string{"Number", "BigInt"} {
		proto := r.prototypeOf(class)
		if proto == nil {
			continue
		}
		valueOf, ok := goja.AssertFunction(proto.Get("valueOf"))
		if !ok {
			continue
		}
		r.hidden(proto, "toLocaleString", r.newFunction("toLocaleString", 0, func(call goja.FunctionCall) goja.Value {
			v, err := valueOf(call.This)
			if err != nil {
				panic(err)
			}
			return r.vm.ToValue(r.newNumberFormat(call.Argument(0), call.Argument(1)).Format(r.decimal(v)))
		}))
	}
}

// stringMethods installs those of String. A comparison without options uses one collator
// for the realm.
func (r *realm) stringMethods() {
	proto := r.prototypeOf("String")
	var usual *intl.Collator
	receiver := func(v goja.Value) goja.String {
		if goja.IsUndefined(v) || goja.IsNull(v) {
			panic(r.vm.NewTypeError("String.prototype method called on null or undefined"))
		}
		return r.text(v)
	}
	r.hidden(proto, "localeCompare", r.newFunction("localeCompare", 1, func(call goja.FunctionCall) goja.Value {
		a, b := receiver(call.This).String(), r.toText(call.Argument(0))
		c := usual
		if c == nil || !goja.IsUndefined(call.Argument(1)) || !goja.IsUndefined(call.Argument(2)) {
			c = r.newCollator(call.Argument(1), call.Argument(2))
			if goja.IsUndefined(call.Argument(1)) && goja.IsUndefined(call.Argument(2)) {
				usual = c
			}
		}
		return r.vm.ToValue(c.Compare(a, b))
	}))
	for name, upper := range map[string]bool{"toLocaleUpperCase": true, "toLocaleLowerCase": false} {
		usual, _ := goja.AssertFunction(proto.Get(strings.Replace(name, "Locale", "", 1)))
		r.hidden(proto, name, r.newFunction(name, 0, func(call goja.FunctionCall) goja.Value {
			s := receiver(call.This)
			tags := r.localeList(call.Argument(0))
			if len(tags) == 0 || !slices.Contains([]string{"az", "el", "lt", "tr"}, tags[0].Language) {
				v, err := usual(s)
				if err != nil {
					panic(err)
				}
				return v
			}
			return r.vm.ToValue(intl.Case(tags, s.String(), upper))
		}))
	}
}
