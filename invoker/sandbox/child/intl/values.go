package intl

import (
	"slices"
	"strings"

	"github.com/codesous/sous/invoker/sandbox/child/intl/cldr"
)

// Locale is an Intl.Locale.
type Locale struct{ Tag Tag }

// SupportedValues returns the values of Intl.supportedValuesOf, sorted. ok is false for an
// unknown key.
func SupportedValues(key string) (values []string, ok bool) {
	switch key {
	case "calendar":
		values = slices.Clone(calendars)
	case "collation":
		values = []string{"default"}
	case "currency":
		seen := map[string]bool{}
		cldr.Of("currency", "en").Each("", func(rest, _ string) {
			code, _, _ := strings.Cut(rest, "/")
			if len(code) == 3 && !seen[code] {
				seen[code] = true
				values = append(values, code)
			}
		})
	case "numberingSystem":
		for name := range cldr.Table("digits") {
			values = append(values, name)
		}
	case "timeZone":
		values = Zones()
	case "unit":
		values = slices.Clone(Units)
	default:
		return nil, false
	}
	slices.Sort(values)
	return values, true
}

// Units are the units that ECMA-402 allows.
var Units = strings.Fields("acre bit byte celsius centimeter day degree fahrenheit fluid-ounce foot gallon gigabit " +
	"gigabyte gram hectare hour inch kilobit kilobyte kilogram kilometer liter megabit megabyte meter microsecond mile " +
	"mile-scandinavian milliliter millimeter millisecond minute month nanosecond ounce percent petabyte pound second " +
	"stone terabit terabyte week yard year")
