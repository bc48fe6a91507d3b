package child

import (
	"cmp"
	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

func localeClass() *intlClass {
	const class = "Locale"
	type state = *intl.Locale
	c := &intlClass{name: class, length: 1, construct: newLocale}
	get := func(name string, of func(t *intl.Tag) string) {
		c.getters = append(c.getters, method(class, name, 0, func(r *realm, l state, _ goja.FunctionCall) goja.Value {
			if s := of(&l.Tag); s != "" {
				return r.vm.ToValue(s)
			}
			return goja.Undefined()
		}))
	}
	get("baseName", (*intl.Tag).Base)
	get("language", func(t *intl.Tag) string { return t.Language })
	get("script", func(t *intl.Tag) string { return t.Script })
	get("region", func(t *intl.Tag) string { return t.Region })
	for name, key := range map[string]string{"calendar": "ca", "caseFirst": "kf", "collation": "co", "hourCycle": "hc", "numberingSystem": "nu"} {
		get(name, func(t *intl.Tag) string {
			v, _ := t.Keyword(key)
			return v
		})
	}
	c.getters = append(c.getters, method(class, "numeric", 0, func(r *realm, l state, _ goja.FunctionCall) goja.Value {
		v, ok := l.Tag.Keyword("kn")
		return r.vm.ToValue(ok && v == "")
	}))
	list := func(name string, of func(l state) []string) {
		c.methods = append(c.methods, method(class, name, 0, func(r *realm, l state, _ goja.FunctionCall) goja.Value {
			values := of(l)
			if values == nil {
				return goja.Undefined()
			}
			return r.strings(values)
		}))
	}
	list("getCalendars", func(l state) []string { return []string{cmp.Or(keywordOf(l, "ca"), "gregory")} })
	list("getCollations", func(l state) []string { return []string{cmp.Or(keywordOf(l, "co"), "default")} })
	list("getHourCycles", (*intl.Locale).HourCycles)
	list("getNumberingSystems", func(l state) []string { return []string{l.NumberingSystem()} })
	list("getTimeZones", func(l state) []string {
		if l.Tag.Region == "" {
			return nil
		}
		return append([]string{}, l.TimeZones()...)
	})
	other := func(name string, of func(t *intl.Tag) intl.Tag) {
		c.methods = append(c.methods, method(class, name, 0, func(r *realm, l state, _ goja.FunctionCall) goja.Value {
			o := r.vm.CreateObject(r.defineIntl(localeClass()).proto)
			r.attach(o, &intl.Locale{Tag: of(&l.Tag)})
			return o
		}))
	}
	other("maximize", (*intl.Tag).Maximize)
	other("minimize", (*intl.Tag).Minimize)
	c.methods = append(
		c.methods,
		method(class, "toString", 0, func(r *realm, l state, _ goja.FunctionCall) goja.Value { return r.vm.ToValue(l.Tag.String()) }),
		method(class, "getTextInfo", 0, func(r *realm, l state, _ goja.FunctionCall) goja.Value { return r.record("direction", l.Direction()) }),
		method(class, "getWeekInfo", 0, weekInfo),
	)
	return c
}

// weekInfo is Intl.Locale.prototype.getWeekInfo.
func weekInfo(r *realm, l *intl.Locale, _ goja.FunctionCall) goja.Value {
	first, weekend, least := l.Week()
	days := make([]any, len(weekend))
	for i, d := range weekend {
		days[i] = d
	}
	return r.record("firstDay", first, "weekend", r.vm.NewArray(days...), "minimalDays", least)
}

func keywordOf(l *intl.Locale, key string) string {
	v, _ := l.Tag.Keyword(key)
	return v
}

// newLocale is the constructor of Intl.Locale.
func newLocale(r *realm, call goja.ConstructorCall) any {
	arg := call.Argument(0)
	_, isObject := arg.(*goja.Object)
	if !isObject && !goja.IsString(arg) {
		panic(r.vm.NewTypeError("First argument to Intl.Locale constructor can't be empty or missing"))
	}
	tag := r.localeTag(arg)
	b := r.intlOptions(call.Argument(1), true, "Locale")
	language, script, region := b.text("language"), b.text("script"), b.text("region")
	tag, ok := tag.Replace(language, script, region)
	if !ok {
		r.rangeError("Incorrect locale information provided")
	}
	set := func(key, value string) {
		if value != "" {
			tag.SetKeyword(key, value, true)
		}
	}
	set("ca", intl.CanonicalCalendar(b.name("calendar")))
	set("co", b.name("collation"))
	set("hc", b.text("hourCycle", "h11", "h12", "h23", "h24"))
	set("kf", b.text("caseFirst", "upper", "lower", "false"))
	if numeric := b.boolean("numeric"); numeric != nil {
		set("kn", map[bool]string{true: "true", false: "false"}[*numeric])
	}
	set("nu", b.name("numberingSystem"))
	return &intl.Locale{Tag: tag}
}

func (r *realm) localeTag(v goja.Value) intl.Tag {
	if l, ok := stateOf[*intl.Locale](v); ok {
		return l.Tag
	}
	return r.tag(r.toText(v))
}

// collator is the state of an Intl.Collator.
type collator struct {
	*intl.Collator
	bound goja.Value // the function that the getter compare returns
}

func collatorClass() *intlClass {
	const class = "Collator"
	type state = *collator
	return &intlClass{
		name: class, plain: true, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			return &collator{Collator: r.newCollator(call.Argument(0), call.Argument(1))}
		},
		methods: []intlMember{method(class, "resolvedOptions", 0, func(r *realm, c state, _ goja.FunctionCall) goja.Value {
			return r.record("locale", c.Locale, "usage", c.Usage, "sensitivity", c.Sensitivity, "ignorePunctuation", c.IgnorePunctuation,
				"collation", "default", "numeric", c.Numeric, "caseFirst", c.CaseFirst)
		})},
		getters: []intlMember{method(class, "compare", 0, func(r *realm, c state, _ goja.FunctionCall) goja.Value {
			if c.bound == nil {
				c.bound = r.newFunction("", 2, func(call goja.FunctionCall) goja.Value {
					return r.vm.ToValue(c.Compare(r.toText(call.Argument(0)), r.toText(call.Argument(1))))
				})
			}
			return c.bound
		})},
	}
}

func (r *realm) newCollator(locales, options goja.Value) *intl.Collator {
	tags := r.localeList(locales)
	b := r.intlOptions(options, true, "Collator")
	c := intl.Collator{Usage: cmp.Or(b.text("usage", "sort", "search"), "sort")}
	b.text("localeMatcher", "lookup", "best fit")
	b.name("collation")
	numeric := b.boolean("numeric")
	c.CaseFirst = b.text("caseFirst", "upper", "lower", "false")
	c.Sensitivity = cmp.Or(b.text("sensitivity", "base", "accent", "case", "variant"), "variant")
	if ignore := b.boolean("ignorePunctuation"); ignore != nil {
		c.IgnorePunctuation = *ignore
	}
	return intl.NewCollator(tags, c, numeric)
}

// segments is the state of the result of Intl.Segmenter.prototype.segment.
type segments struct {
	words bool
	text  goja.String
	list  []intl.Segment
}

func segmenterClass() *intlClass {
	const class = "Segmenter"
	type state = *intl.Segmenter
	return &intlClass{
		name: class, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			tags := r.localeList(call.Argument(0))
			b := r.intlOptions(call.Argument(1), false, class)
			b.text("localeMatcher", "lookup", "best fit")
			return intl.NewSegmenter(tags, cmp.Or(b.text("granularity", "grapheme", "word", "sentence"), "grapheme"))
		},
		methods: []intlMember{
			method(class, "segment", 1, func(r *realm, s state, call goja.FunctionCall) goja.Value {
				text := r.text(call.Argument(0))
				o := r.vm.CreateObject(r.segmentsProto())
				r.attach(o, &segments{s.Granularity == "word", text, s.Split(text.String())})
				return o
			}),
			method(class, "resolvedOptions", 0, func(r *realm, s state, _ goja.FunctionCall) goja.Value {
				return r.record("locale", s.Locale, "granularity", s.Granularity)
			}),
		},
	}
}

// segmentsProto returns the prototype of segments, made once in a realm.
func (r *realm) segmentsProto() *goja.Object {
	const key = "Intl.Segments"
	if b, ok := r.classes[key]; ok {
		return b.proto
	}
	proto := r.vm.NewObject()
	containing := method("Segments", "containing", 1, func(r *realm, s *segments, call goja.FunctionCall) goja.Value {
		at := call.Argument(0).ToInteger()
		for i, x := range s.list {
			if at >= int64(x.From) && at < int64(x.To) {
				return s.data(r, i)
			}
		}
		return goja.Undefined()
	})
	r.hidden(proto, "containing", r.newFunction("containing", 1, func(call goja.FunctionCall) goja.Value { return containing.call(r, call) }))
	each := method("Segments", "[Symbol.iterator]", 0, func(r *realm, s *segments, _ goja.FunctionCall) goja.Value {
		values := make([]any, len(s.list))
		for i := range s.list {
			values[i] = s.data(r, i)
		}
		list := r.vm.NewArray(values...)
		iterate, ok := goja.AssertFunction(list.GetSymbol(goja.SymIterator))
		if !ok { // the script replaced the iterator of arrays
			panic(r.vm.NewTypeError("arrays have no iterator"))
		}
		v, err := iterate(list)
		if err != nil {
			panic(err)
		}
		return v
	})
	f := r.newFunction("[Symbol.iterator]", 0, func(call goja.FunctionCall) goja.Value { return each.call(r, call) })
	must(proto.DefineDataPropertySymbol(goja.SymIterator, f, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	r.classes[key] = built{proto: proto}
	return proto
}

// data makes the object of one segment.
func (s *segments) data(r *realm, i int) goja.Value {
	x := s.list[i]
	o := r.vm.NewObject()
	must(o.Set("segment", s.text.Substring(x.From, x.To)))
	must(o.Set("index", x.From))
	must(o.Set("input", s.text))
	if s.words {
		must(o.Set("isWordLike", x.WordLike))
	}
	return o
}
