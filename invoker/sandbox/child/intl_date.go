package child

import (
	"errors"
	"fmt"
	"math"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

func (r *realm) rangeError(format string, args ...any) {
	panic(r.newNamedError("RangeError", fmt.Sprintf(format, args...)))
}

// throwIntl panics with the error of package intl as an exception of the script.
func (r *realm) throwIntl(err error) {
	var bad intl.RangeError
	if errors.As(err, &bad) {
		r.rangeError("%s", string(bad))
	}
	panic(r.vm.NewTypeError("%s", err.Error()))
}

// dateTimeFormat is the state of an Intl.DateTimeFormat.
type dateTimeFormat struct {
	*intl.DateFormat
	bound goja.Value // the function that the getter format returns
}

func dateTimeClass() *intlClass {
	const class = "DateTimeFormat"
	type state = *dateTimeFormat
	return &intlClass{
		name: class, plain: true, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			return &dateTimeFormat{DateFormat: r.newDateFormat(call.Argument(0), call.Argument(1), "any", "date")}
		},
		methods: []intlMember{
			method(class, "formatToParts", 1, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.parts(f.Parts(r.timeArgument(call.Argument(0))))
			}),
			method(class, "formatRange", 2, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				from, to := r.rangeArguments(call)
				return r.vm.ToValue(intl.Text(f.Range(from, to)))
			}),
			method(class, "formatRangeToParts", 2, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				from, to := r.rangeArguments(call)
				return r.parts(f.Range(from, to))
			}),
			method(class, "resolvedOptions", 0, resolvedDateOptions),
		},
		getters: []intlMember{method(class, "format", 0, func(r *realm, f state, _ goja.FunctionCall) goja.Value {
			if f.bound == nil {
				f.bound = r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
					return r.vm.ToValue(f.Format(r.timeArgument(call.Argument(0))))
				})
			}
			return f.bound
		})},
	}
}

func resolvedDateOptions(r *realm, f *dateTimeFormat, _ goja.FunctionCall) goja.Value {
	o := r.record("locale", f.Locale, "calendar", f.Calendar, "numberingSystem", f.Numbering, "timeZone", f.TimeZone())
	if f.HourCycle != "" {
		must(o.Set("hourCycle", f.HourCycle))
		must(o.Set("hour12", f.HourCycle == "h11" || f.HourCycle == "h12"))
	}
	if f.DateStyle == "" && f.TimeStyle == "" {
		for _, x := range f.Fields() {
			if x[0] == "fractionalSecondDigits" {
				must(o.Set(x[0], int(x[1][0]-'0')))
				continue
			}
			must(o.Set(x[0], x[1]))
		}
	}
	if f.DateStyle != "" {
		must(o.Set("dateStyle", f.DateStyle))
	}
	if f.TimeStyle != "" {
		must(o.Set("timeStyle", f.TimeStyle))
	}
	return o
}

// timeArgument reads the date of format: a Date, a number, or now.
func (r *realm) timeArgument(v goja.Value) float64 {
	if goja.IsUndefined(v) {
		return float64(r.now().UnixMilli())
	}
	return r.timeClip(v.ToFloat())
}

func (r *realm) timeClip(ms float64) float64 {
	if math.IsNaN(ms) || math.Abs(ms) > 8.64e15 {
		r.rangeError("Invalid time value")
	}
	return math.Trunc(ms)
}

func (r *realm) rangeArguments(call goja.FunctionCall) (from, to float64) {
	a, b := call.Argument(0), call.Argument(1)
	if goja.IsUndefined(a) || goja.IsUndefined(b) {
		panic(r.vm.NewTypeError("startDate or endDate cannot be undefined"))
	}
	from, to = a.ToFloat(), b.ToFloat()
	return r.timeClip(from), r.timeClip(to)
}

// newDateFormat reads the options of a DateTimeFormat and makes it. required and defaults
// are those of CreateDateTimeFormat.
func (r *realm) newDateFormat(locales, options goja.Value, required, defaults string) *intl.DateFormat {
	tags := r.localeList(locales)
	b := r.intlOptions(options, true, "DateTimeFormat")
	o := intl.DateOptions{Required: required, Defaults: defaults}
	b.text("localeMatcher", "lookup", "best fit")
	o.Calendar = b.name("calendar")
	o.NumberingSystem = b.name("numberingSystem")
	o.Hour12 = b.boolean("hour12")
	o.HourCycle = b.text("hourCycle", "h11", "h12", "h23", "h24")
	if v := b.get("timeZone"); v != nil {
		o.TimeZone = r.toText(v)
		if o.TimeZone == "" {
			r.rangeError("Invalid time zone specified: ")
		}
	}
	names, numbers := []string{"narrow", "short", "long"}, []string{"2-digit", "numeric"}
	o.Weekday = b.text("weekday", names...)
	o.Era = b.text("era", names...)
	o.Year = b.text("year", numbers...)
	o.Month = b.text("month", append(numbers, names...)...)
	o.Day = b.text("day", numbers...)
	o.DayPeriod = b.text("dayPeriod", names...)
	o.Hour = b.text("hour", numbers...)
	o.Minute = b.text("minute", numbers...)
	o.Second = b.text("second", numbers...)
	o.FractionalSecondDigits = b.integer("fractionalSecondDigits", 1, 3, 0)
	o.TimeZoneName = b.text("timeZoneName", "short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric")
	b.text("formatMatcher", "basic", "best fit")
	o.DateStyle = b.text("dateStyle", "full", "long", "medium", "short")
	o.TimeStyle = b.text("timeStyle", "full", "long", "medium", "short")
	if o.DateStyle+o.TimeStyle != "" {
		if o.Weekday+o.Era+o.Year+o.Month+o.Day+o.DayPeriod+o.Hour+o.Minute+o.Second+o.TimeZoneName != "" || o.FractionalSecondDigits > 0 {
			panic(r.vm.NewTypeError("Can't set option for a single field when dateStyle or timeStyle is used"))
		}
		if required == "date" && o.TimeStyle != "" || required == "time" && o.DateStyle != "" {
			panic(r.vm.NewTypeError("Invalid option : dateStyle or timeStyle"))
		}
	}
	f, err := intl.NewDateFormat(tags, o)
	if err != nil {
		r.throwIntl(err)
	}
	return f
}
