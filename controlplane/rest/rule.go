package rest

import (
	"math"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// humaBounds are the beginnings of huma's messages about bounds, which a number ends, and the
// words that replace them. noun is what the number counts, "" for the value itself.
var humaBounds = []struct{ theirs, ours, noun string }{
	{"expected number >= ", "must be at least ", ""},
	{"expected number <= ", "must be at most ", ""},
	{"expected number > ", "must be more than ", ""},
	{"expected number < ", "must be less than ", ""},
	{"expected length >= ", "must have at least ", "character"},
	{"expected length <= ", "must have at most ", "character"},
	{"expected array length >= ", "must have at least ", "item"},
	{"expected array length <= ", "must have at most ", "item"},
}

// withRule returns a field error of huma in the words and with the numbers of all other
// messages: "must be at most 1,000" in place of "expected number <= 1000".
func withRule(f api.FieldError) api.FieldError {
	if list, ok := strings.CutPrefix(f.Message, `expected value to be one of "`); ok {
		f.Message = "must be one of " + strings.TrimSuffix(list, `"`)
		return f
	}
	for _, b := range humaBounds {
		text, ok := strings.CutPrefix(f.Message, b.theirs)
		n, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			continue
		}
		switch {
		case b.noun == "":
			f.Message = b.ours + api.AmountText(f.Path, int64(n))
		case n == 1:
			f.Message = b.ours + "1 " + b.noun
		default:
			f.Message = b.ours + api.GroupDigits(int64(n)) + " " + b.noun + "s"
		}
		return f
	}
	return f
}
