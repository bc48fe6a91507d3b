package api_test

import (
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// FuzzNames parses what callers send as names, ids, versions and keys. What a text without keys
// hides must be gone from it, and a text that is accepted must not be able to leave its place in a
// path or in a key of the store.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"prod", "7", "007", "-1", "9223372036854775808", "t_acme01", "sous_", "sous_" + strings.Repeat("A", 60), "key_01M7Z2CRKP8HHD15CCTVQJTHWY",
		"a/b", "a:b", "{a}", "..", "", "\xff", "a\x00b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ref, err := api.ParseRef(text); err == nil && ref.Validate() != nil {
			t.Errorf("ParseRef(%q) = %+v, want an error or a valid ref", text, ref)
		}
		for name, check := range map[string]func(string) error{
			"tenant": api.ValidateTenant, "alias": api.ValidateAlias, "task id": api.ValidateTaskID, "task type": api.ValidateTaskType,
			"name": func(s string) error { return api.ValidateName("name", s) },
		} {
			if check(text) == nil && (text == "" || strings.ContainsAny(text, "/:{}*\x00\r\n %")) {
				t.Errorf("%q is accepted as a %s, want a refusal", text, name)
			}
		}
		if hidden := api.WithoutKeys(text); api.ContainsKey(hidden) {
			t.Errorf("WithoutKeys(%q) = %q, want a text without a key", text, hidden)
		}
		_, _ = api.KeyTimeMS(text) // must not panic
		_, _ = api.DraftTimeMS(text)
	})
}
