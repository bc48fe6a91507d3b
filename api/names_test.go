package api_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

// TestNamesMatchTheirPatterns holds the hand-written checks to the patterns that
// the API's document shows.
func TestNamesMatchTheirPatterns(t *testing.T) {
	t.Parallel()
	for field, tc := range map[string]struct {
		pattern  string
		validate func(string) error
	}{
		"tenant": {api.TenantPattern, api.ValidateTenant},
		"name":   {api.NamePattern, func(s string) error { return api.ValidateName("name", s) }},
		"alias":  {api.AliasPattern, api.ValidateAlias},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			pattern := regexp.MustCompile(`\A` + tc.pattern + `\z`)
			check := func(fatalf func(string, ...any), s string) {
				if err := tc.validate(s); (err == nil) != pattern.MatchString(s) {
					fatalf("%q: %v", s, err)
				} else if err != nil && api.ErrorCode(err) != api.CodeValidationName {
					fatalf("%q: code %s", s, api.ErrorCode(err))
				}
			}
			for _, head := range []string{"", "a", "z", "0", "_", "-", "A", "t_", "t_a", "T_"} {
				for n := range 70 {
					for _, tail := range []string{"a", "z", "0", "9", "_", "-", "A", "é", ":", "/", "{", "`", "\n"} {
						check(t.Errorf, head+strings.Repeat("b", n)+tail)
						check(t.Errorf, head+strings.Repeat(tail, n))
					}
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				check(t.Fatalf, rapid.OneOf(rapid.String(), rapid.StringMatching(tc.pattern)).Draw(t, "s"))
			})
		})
	}
}
