package intl

import "cmp"

// RawDigits are the options for digits as they were given: nil is none.
type RawDigits struct {
	MinimumIntegerDigits, MinimumFractionDigits, MaximumFractionDigits *int
	MinimumSignificantDigits, MaximumSignificantDigits                 *int
	RoundingIncrement                                                  int
	RoundingMode, RoundingPriority, TrailingZeroDisplay                string
}

// Resolve is SetNumberFormatDigitOptions of ECMA-402, for options that are valid each by
// itself. least and most are the usual digits after the decimal point.
func (r *RawDigits) Resolve(notation string, least, most int) (DigitOptions, error) {
	o := DigitOptions{
		MinimumInteger: 1, MinimumFraction: -1, MaximumFraction: -1, Increment: max(r.RoundingIncrement, 1),
		Mode: cmp.Or(r.RoundingMode, "halfExpand"), Priority: cmp.Or(r.RoundingPriority, "auto"), TrailingZeros: cmp.Or(r.TrailingZeroDisplay, "auto"),
	}
	if r.MinimumIntegerDigits != nil {
		o.MinimumInteger = *r.MinimumIntegerDigits
	}
	if o.Increment > 1 {
		most = least
	}
	hasSignificant := r.MinimumSignificantDigits != nil || r.MaximumSignificantDigits != nil
	hasFraction := r.MinimumFractionDigits != nil || r.MaximumFractionDigits != nil
	significant, fraction := true, true
	if o.Priority == "auto" {
		significant = hasSignificant
		fraction = !significant && (hasFraction || notation != "compact")
	}
	if significant {
		o.MinimumSignificant, o.MaximumSignificant = 1, 21
		if r.MinimumSignificantDigits != nil {
			o.MinimumSignificant = *r.MinimumSignificantDigits
		}
		if r.MaximumSignificantDigits != nil {
			o.MaximumSignificant = *r.MaximumSignificantDigits
		}
		if o.MinimumSignificant > o.MaximumSignificant {
			return o, RangeError("maximumSignificantDigits value is out of range.")
		}
	}
	if fraction {
		if err := r.resolveFraction(&o, least, most); err != nil {
			return o, err
		}
	}
	switch {
	case !significant && !fraction:
		o.MinimumFraction, o.MaximumFraction, o.MinimumSignificant, o.MaximumSignificant = 0, 0, 1, 2
		o.Rounding, o.Priority = "priority", "morePrecision"
	case o.Priority != "auto":
		o.Rounding = "priority"
	case hasSignificant:
		o.Rounding = "significant"
	default:
		o.Rounding = "fraction"
	}
	if o.Increment > 1 && (o.Rounding != "fraction" || o.MinimumFraction != o.MaximumFraction) {
		return o, RangeError("roundingIncrement value is out of range.")
	}
	return o, nil
}

// resolveFraction sets the bounds of the digits after the decimal point.
func (r *RawDigits) resolveFraction(o *DigitOptions, least, most int) error {
	switch {
	case r.MinimumFractionDigits != nil && r.MaximumFractionDigits != nil:
		o.MinimumFraction, o.MaximumFraction = *r.MinimumFractionDigits, *r.MaximumFractionDigits
		if o.MinimumFraction > o.MaximumFraction {
			return RangeError("maximumFractionDigits value is out of range.")
		}
	case r.MinimumFractionDigits != nil:
		o.MinimumFraction = *r.MinimumFractionDigits
		o.MaximumFraction = max(most, o.MinimumFraction)
	case r.MaximumFractionDigits != nil:
		o.MaximumFraction = *r.MaximumFractionDigits
		o.MinimumFraction = min(least, o.MaximumFraction)
	default:
		o.MinimumFraction, o.MaximumFraction = least, most
	}
	return nil
}
