package child

import (
	"cmp"
	"math"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

func pluralClass() *intlClass {
	const class = "PluralRules"
	type state = *intl.PluralRules
	return &intlClass{
		name: class, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			tags := r.localeList(call.Argument(0))
			b := r.intlOptions(call.Argument(1), true, class)
			b.text("localeMatcher", "lookup", "best fit")
			kind := cmp.Or(b.text("type", "cardinal", "ordinal"), "cardinal")
			digits, err := r.rawDigits(b).Resolve("standard", 0, 3)
			if err != nil {
				r.throwIntl(err)
			}
			return intl.NewPluralRules(tags, kind, digits)
		},
		methods: []intlMember{
			method(class, "select", 1, func(r *realm, p state, call goja.FunctionCall) goja.Value {
				return r.vm.ToValue(p.Select(intl.NewDecimal(call.Argument(0).ToFloat())))
			}),
			method(class, "selectRange", 2, func(r *realm, p state, call goja.FunctionCall) goja.Value {
				from, to := call.Argument(0).ToFloat(), call.Argument(1).ToFloat()
				if goja.IsUndefined(call.Argument(0)) || goja.IsUndefined(call.Argument(1)) {
					panic(r.vm.NewTypeError("start or end cannot be undefined"))
				}
				if math.IsNaN(from) || math.IsNaN(to) {
					r.rangeError("Invalid number value: NaN")
				}
				return r.vm.ToValue(p.SelectRange(intl.NewDecimal(from), intl.NewDecimal(to)))
			}),
			method(class, "resolvedOptions", 0, func(r *realm, p state, _ goja.FunctionCall) goja.Value {
				o := r.record("locale", p.Locale, "type", p.Type)
				setDigits(o, &p.Digits)
				must(o.Set("pluralCategories", r.strings(p.Categories())))
				setRounding(o, &p.Digits)
				return o
			}),
		},
	}
}

func listClass() *intlClass {
	const class = "ListFormat"
	type state = *intl.ListFormat
	return &intlClass{
		name: class, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			tags := r.localeList(call.Argument(0))
			b := r.intlOptions(call.Argument(1), false, class)
			b.text("localeMatcher", "lookup", "best fit")
			kind := cmp.Or(b.text("type", "conjunction", "disjunction", "unit"), "conjunction")
			return intl.NewListFormat(tags, kind, cmp.Or(b.text("style", "long", "short", "narrow"), "long"))
		},
		methods: []intlMember{
			method(class, "format", 1, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.vm.ToValue(intl.Text(f.Parts(r.stringList(call.Argument(0)))))
			}),
			method(class, "formatToParts", 1, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.parts(f.Parts(r.stringList(call.Argument(0))))
			}),
			method(class, "resolvedOptions", 0, func(r *realm, f state, _ goja.FunctionCall) goja.Value {
				return r.record("locale", f.Locale, "type", f.Type, "style", f.Style)
			}),
		},
	}
}

// stringList reads an iterable of strings.
func (r *realm) stringList(v goja.Value) []string {
	if goja.IsUndefined(v) {
		return nil
	}
	var out []string
	r.vm.ForOf(v, func(item goja.Value) bool {
		if !goja.IsString(item) {
			panic(r.vm.NewTypeError("Iterable yielded %s which is not a string", describe(item)))
		}
		out = append(out, item.String())
		return true
	})
	return out
}

func relativeClass() *intlClass {
	const class = "RelativeTimeFormat"
	type state = *intl.RelativeTimeFormat
	parts := func(r *realm, f state, call goja.FunctionCall) []intl.Part {
		value := call.Argument(0).ToFloat()
		unit := r.toText(call.Argument(1))
		if math.IsNaN(value) || math.IsInf(value, 0) {
			r.rangeError("The value of RelativeTimeFormat must be finite")
		}
		out, ok := f.Parts(value, unit)
		if !ok {
			r.rangeError("Invalid unit argument for format() '%s'", unit)
		}
		return out
	}
	return &intlClass{
		name: class, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			tags := r.localeList(call.Argument(0))
			b := r.intlOptions(call.Argument(1), true, class)
			b.text("localeMatcher", "lookup", "best fit")
			numbering := b.name("numberingSystem")
			style := cmp.Or(b.text("style", "long", "short", "narrow"), "long")
			return intl.NewRelativeTimeFormat(tags, style, cmp.Or(b.text("numeric", "always", "auto"), "always"), numbering)
		},
		methods: []intlMember{
			method(class, "format", 2, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.vm.ToValue(intl.Text(parts(r, f, call)))
			}),
			method(class, "formatToParts", 2, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.parts(parts(r, f, call))
			}),
			method(class, "resolvedOptions", 0, func(r *realm, f state, _ goja.FunctionCall) goja.Value {
				return r.record("locale", f.Locale, "style", f.Style, "numeric", f.Numeric, "numberingSystem", f.Number.Numbering)
			}),
		},
	}
}

func namesClass() *intlClass {
	const class = "DisplayNames"
	type state = *intl.DisplayNames
	return &intlClass{
		name: class, length: 2, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			tags := r.localeList(call.Argument(0))
			if goja.IsUndefined(call.Argument(1)) {
				panic(r.vm.NewTypeError("Required option \"type\" must not be undefined"))
			}
			b := r.intlOptions(call.Argument(1), false, class)
			b.text("localeMatcher", "lookup", "best fit")
			d := intl.DisplayNames{Style: cmp.Or(b.text("style", "narrow", "short", "long"), "long")}
			d.Type = b.text("type", "language", "region", "script", "currency", "calendar", "dateTimeField")
			if d.Type == "" {
				panic(r.vm.NewTypeError("Required option \"type\" must not be undefined"))
			}
			d.Fallback = cmp.Or(b.text("fallback", "code", "none"), "code")
			d.LanguageDisplay = cmp.Or(b.text("languageDisplay", "dialect", "standard"), "dialect")
			return intl.NewDisplayNames(tags, d)
		},
		methods: []intlMember{
			method(class, "of", 1, func(r *realm, d state, call goja.FunctionCall) goja.Value {
				name, err := d.Of(r.toText(call.Argument(0)))
				if err != nil {
					r.throwIntl(err)
				}
				if name == "" {
					return goja.Undefined()
				}
				return r.vm.ToValue(name)
			}),
			method(class, "resolvedOptions", 0, func(r *realm, d state, _ goja.FunctionCall) goja.Value {
				display := ""
				if d.Type == "language" {
					display = d.LanguageDisplay
				}
				return r.record("locale", d.Locale, "style", d.Style, "type", d.Type, "fallback", d.Fallback, "languageDisplay", display)
			}),
		},
	}
}
