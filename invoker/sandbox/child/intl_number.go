package child

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/invoker/sandbox/child/intl"
)

// numberFormat is the state of an Intl.NumberFormat.
type numberFormat struct {
	*intl.NumberFormat
	bound goja.Value // the function that the getter format returns
}

func numberClass() *intlClass {
	const class = "NumberFormat"
	type state = *numberFormat
	return &intlClass{
		name: class, plain: true, locales: true,
		construct: func(r *realm, call goja.ConstructorCall) any {
			return &numberFormat{NumberFormat: r.newNumberFormat(call.Argument(0), call.Argument(1))}
		},
		methods: []intlMember{
			method(class, "formatToParts", 1, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.parts(f.Parts(r.decimal(call.Argument(0))))
			}),
			method(class, "formatRange", 2, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.vm.ToValue(intl.Text(r.numberRange(f, call)))
			}),
			method(class, "formatRangeToParts", 2, func(r *realm, f state, call goja.FunctionCall) goja.Value {
				return r.parts(r.numberRange(f, call))
			}),
			method(class, "resolvedOptions", 0, resolvedNumberOptions),
		},
		getters: []intlMember{method(class, "format", 0, func(r *realm, f state, _ goja.FunctionCall) goja.Value {
			if f.bound == nil {
				f.bound = r.newFunction("", 1, func(call goja.FunctionCall) goja.Value {
					return r.vm.ToValue(f.Format(r.decimal(call.Argument(0))))
				})
			}
			return f.bound
		})},
	}
}

func (r *realm) numberRange(f *numberFormat, call goja.FunctionCall) []intl.Part {
	a, b := call.Argument(0), call.Argument(1)
	if goja.IsUndefined(a) || goja.IsUndefined(b) {
		panic(r.vm.NewTypeError("start or end cannot be undefined"))
	}
	from, to := r.decimal(a), r.decimal(b)
	if from.IsNaN() || to.IsNaN() {
		r.rangeError("Invalid number value: NaN")
	}
	return f.Range(from, to)
}

// decimal reads a number: a Number, a BigInt, or a string, whose digits are kept unless it
// is beyond the range of Number: that is infinite or 0, and has no digits to write out.
func (r *realm) decimal(v goja.Value) intl.Decimal {
	if obj, ok := v.(*goja.Object); ok {
		v = r.toPrimitive(obj)
	}
	if n, ok := v.Export().(*big.Int); ok {
		d, _ := intl.ParseDecimal(n.String())
		return d
	}
	if goja.IsString(v) {
		if d, ok := intl.ParseDecimal(strings.TrimSpace(v.String())); ok {
			if f := v.ToFloat(); f != 0 && !math.IsInf(f, 0) {
				return d
			}
		}
	}
	return intl.NewDecimal(v.ToFloat())
}

// toPrimitive converts an object to a number, a BigInt or a string as a number is wanted.
func (r *realm) toPrimitive(obj *goja.Object) goja.Value {
	if n, ok := obj.Export().(*big.Int); ok && obj.ClassName() == "BigInt" {
		return r.vm.ToValue(n)
	}
	return obj.ToNumber()
}

func resolvedNumberOptions(r *realm, f *numberFormat, _ goja.FunctionCall) goja.Value {
	o := f.Options
	out := r.record("locale", f.Locale, "numberingSystem", f.Numbering, "style", o.Style)
	switch o.Style {
	case "currency":
		must(out.Set("currency", o.Currency))
		must(out.Set("currencyDisplay", o.CurrencyDisplay))
		must(out.Set("currencySign", o.CurrencySign))
	case "unit":
		must(out.Set("unit", o.Unit))
		must(out.Set("unitDisplay", o.UnitDisplay))
	}
	setDigits(out, &o.Digits)
	if o.UseGrouping == "false" {
		must(out.Set("useGrouping", false))
	} else {
		must(out.Set("useGrouping", o.UseGrouping))
	}
	must(out.Set("notation", o.Notation))
	if o.Notation == "compact" {
		must(out.Set("compactDisplay", o.CompactDisplay))
	}
	must(out.Set("signDisplay", o.SignDisplay))
	setRounding(out, &o.Digits)
	return out
}

// setDigits sets the members of resolvedOptions for digits.
func setDigits(out *goja.Object, d *intl.DigitOptions) {
	must(out.Set("minimumIntegerDigits", d.MinimumInteger))
	if d.MinimumFraction >= 0 && d.Rounding != "significant" {
		must(out.Set("minimumFractionDigits", d.MinimumFraction))
		must(out.Set("maximumFractionDigits", d.MaximumFraction))
	}
	if d.MaximumSignificant > 0 {
		must(out.Set("minimumSignificantDigits", d.MinimumSignificant))
		must(out.Set("maximumSignificantDigits", d.MaximumSignificant))
	}
}

func setRounding(out *goja.Object, d *intl.DigitOptions) {
	must(out.Set("roundingIncrement", d.Increment))
	must(out.Set("roundingMode", d.Mode))
	must(out.Set("roundingPriority", d.Priority))
	must(out.Set("trailingZeroDisplay", d.TrailingZeros))
}

// newNumberFormat reads the options of a NumberFormat and makes it.
func (r *realm) newNumberFormat(locales, options goja.Value) *intl.NumberFormat {
	tags := r.localeList(locales)
	b := r.intlOptions(options, true, "NumberFormat")
	var o intl.NumberOptions
	b.text("localeMatcher", "lookup", "best fit")
	o.NumberingSystem = b.name("numberingSystem")
	r.numberStyle(b, &o)
	o.Notation = b.text("notation", "standard", "scientific", "engineering", "compact")
	notation := o.Notation
	if notation == "" {
		notation = "standard"
	}
	raw := r.rawDigits(b)
	compact := b.text("compactDisplay", "short", "long")
	o.CompactDisplay = compact
	r.useGrouping(b, &o)
	o.SignDisplay = b.text("signDisplay", "auto", "never", "always", "exceptZero", "negative")
	o.Defaults()
	least, most := o.UsualDigits()
	digits, err := raw.Resolve(notation, least, most)
	if err != nil {
		r.throwIntl(err)
	}
	o.Digits = digits
	return intl.NewNumberFormat(tags, o)
}

// numberStyle is SetNumberFormatUnitOptions of ECMA-402.
func (r *realm) numberStyle(b *optionBag, o *intl.NumberOptions) {
	o.Style = b.text("style", "decimal", "percent", "currency", "unit")
	currency := b.get("currency")
	if currency != nil {
		o.Currency = strings.ToUpper(r.toText(currency))
		if len(o.Currency) != 3 || strings.Trim(o.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			r.rangeError("Invalid currency code : %s", r.toText(currency))
		}
	} else if o.Style == "currency" {
		panic(r.vm.NewTypeError("Currency code is required with currency style."))
	}
	o.CurrencyDisplay = b.text("currencyDisplay", "code", "symbol", "narrowSymbol", "name")
	o.CurrencySign = b.text("currencySign", "standard", "accounting")
	unit := b.get("unit")
	if unit != nil {
		o.Unit = r.toText(unit)
		if !intl.ValidUnit(o.Unit) {
			r.rangeError("Invalid unit argument for Intl.NumberFormat() '%s'", o.Unit)
		}
	} else if o.Style == "unit" {
		panic(r.vm.NewTypeError("Unit is required with unit style."))
	}
	o.UnitDisplay = b.text("unitDisplay", "short", "narrow", "long")
}

// rawDigits reads the options for digits, in the order of SetNumberFormatDigitOptions.
func (r *realm) rawDigits(b *optionBag) *intl.RawDigits {
	raw := &intl.RawDigits{}
	integer := b.integer("minimumIntegerDigits", 1, 21, 1)
	raw.MinimumIntegerDigits = &integer
	least, most := b.get("minimumFractionDigits"), b.get("maximumFractionDigits")
	leastSignificant, mostSignificant := b.get("minimumSignificantDigits"), b.get("maximumSignificantDigits")
	raw.RoundingIncrement = b.integer("roundingIncrement", 1, 5000, 1)
	if !slices.Contains([]int{1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000}, raw.RoundingIncrement) {
		r.rangeError("roundingIncrement value is out of range.")
	}
	raw.RoundingMode = b.text("roundingMode", "ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven")
	raw.RoundingPriority = b.text("roundingPriority", "auto", "morePrecision", "lessPrecision")
	raw.TrailingZeroDisplay = b.text("trailingZeroDisplay", "auto", "stripIfInteger")
	read := func(name string, v goja.Value, from, to int) *int {
		if v == nil {
			return nil
		}
		n := b.bounded(name, v, from, to)
		return &n
	}
	if leastSignificant != nil || mostSignificant != nil {
		raw.MinimumSignificantDigits = read("minimumSignificantDigits", leastSignificant, 1, 21)
		raw.MaximumSignificantDigits = read("maximumSignificantDigits", mostSignificant, 1, 21)
		if raw.RoundingPriority == "" || raw.RoundingPriority == "auto" {
			return raw
		}
	}
	raw.MinimumFractionDigits = read("minimumFractionDigits", least, 0, 100)
	raw.MaximumFractionDigits = read("maximumFractionDigits", most, 0, 100)
	return raw
}

func (r *realm) useGrouping(b *optionBag, o *intl.NumberOptions) {
	v := b.get("useGrouping")
	if v == nil {
		return
	}
	if _, isBool := v.Export().(bool); isBool {
		o.UseGrouping = map[bool]string{true: "always", false: "false"}[v.ToBoolean()]
		return
	}
	if !v.ToBoolean() {
		o.UseGrouping = "false"
		return
	}
	switch s := r.toText(v); s {
	case "true", "false":
	case "min2", "auto", "always":
		o.UseGrouping = s
	default:
		b.fail("Value %s out of range for Intl.NumberFormat options property useGrouping", s)
	}
}
