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

func TestRefusalsSayTheRule(t *testing.T) {
	t.Parallel()
	_, version := api.ParseVersion("01")
	_, draft := api.DraftTimeMS("x")
	for want, err := range map[string]error{
		`tenant "x" must match t_[a-z0-9]{6,32}`:                               api.ValidateTenant("x"),
		`version "01" must be a positive integer without sign or leading zero`: version,
		`version "-1" must be a positive integer without sign or leading zero`: api.Ref{Version: -1}.Validate(),
		`activation_id "x" must be a UUID in lower case`:                       api.ValidateActivationID("x"),
		`draft_id "x" must be drf_ and a ULID`:                                 draft,
	} {
		if got := err.Error(); got != "CS_VALIDATION_NAME: "+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
