package schema

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/message"

	"github.com/codesous/sous/api"
)

// Rule says what a value that failed must be, and what it is, without the path of its field.
// path is that of a field whose name ends with its unit (api.AmountText), "" for another. p
// prints the failures that have no number.
//
//	must be at most 900,000 ms (15 min), got 5,000,000 ms
func Rule(path string, failure jsonschema.ErrorKind, p *message.Printer) string {
	number := func(rule string, want, got *big.Rat) string {
		return "must be " + rule + " " + ratText(path, want) + ", got " + ratText(path, got)
	}
	count := func(rule string, want int, noun string, got int) string {
		if want == 1 {
			noun = strings.TrimSuffix(noun, "s")
		}
		return fmt.Sprintf("must have at %s %s %s, got %s", rule, api.GroupDigits(int64(want)), noun, api.GroupDigits(int64(got)))
	}
	switch k := failure.(type) {
	case *kind.Minimum:
		return number("at least", k.Want, k.Got)
	case *kind.Maximum:
		return number("at most", k.Want, k.Got)
	case *kind.ExclusiveMinimum:
		return number("more than", k.Want, k.Got)
	case *kind.ExclusiveMaximum:
		return number("less than", k.Want, k.Got)
	case *kind.MultipleOf:
		return number("a multiple of", k.Want, k.Got)
	case *kind.MinLength:
		return count("least", k.Want, "characters", k.Got)
	case *kind.MaxLength:
		return count("most", k.Want, "characters", k.Got)
	case *kind.MinItems:
		return count("least", k.Want, "items", k.Got)
	case *kind.MaxItems:
		return count("most", k.Want, "items", k.Got)
	case *kind.MinProperties:
		return count("least", k.Want, "fields", k.Got)
	case *kind.MaxProperties:
		return count("most", k.Want, "fields", k.Got)
	}
	return failure.LocalizedString(p)
}

// ratText returns a number of the field at path.
func ratText(path string, n *big.Rat) string {
	if n.IsInt() && n.Num().IsInt64() {
		return api.AmountText(path, n.Num().Int64())
	}
	f, _ := n.Float64()
	return fmt.Sprintf("%v", f)
}
