package api_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// ValidateSecretName matches names without a regular expression; it must agree with SecretPattern.
func TestSecretNames(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile("^" + api.SecretPattern + "$")
	names := []string{"", "a", "_", "A.b-c_9", "9a", ".a", "-a", "a:b", "a/b", "a b", "a\x00", "ä", "a\n", "*", "a{b}", "\x7f", "@", "[", "`", "a@", "a[", "a`", "a{", "aK",
		strings.Repeat("a", 64), strings.Repeat("a", 65), "__proto__", "a..b", "P", "p\x10"}
	for c := range 256 {
		names = append(names, string([]byte{byte(c)}), string([]byte{'a', byte(c)}))
	}
	for _, name := range names {
		if err := api.ValidateSecretName(name); (err == nil) != pattern.MatchString(name) || err != nil && api.ErrorCode(err) != api.CodeValidationName {
			t.Errorf("ValidateSecretName(%q): got error %v, want CodeValidationName unless the name matches SecretPattern", name, err)
		}
	}
}

func TestSecretValues(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{
		"": false, "x": true, "\x00": true, "ü\n": true, "\xff": false,
		strings.Repeat("s", api.MaxSecretBytes): true, strings.Repeat("s", api.MaxSecretBytes+1): false,
	} {
		err := api.ValidateSecretValue(value)
		if (err == nil) != ok {
			t.Errorf("ValidateSecretValue(%.20q): got error %v, want success: %v", value, err, ok)
		}
		if err != nil && len(value) > 0 && strings.Contains(err.Error(), value) {
			t.Errorf("ValidateSecretValue: got error %q, want one without the value", err)
		}
	}
}
