package platformtest

import (
	"strings"
	"testing"
)

// What the cleanup of every Server looks for is found, and nothing else.
func TestLeak(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("aB3-_", 9)[:43]
	key := "sous_01M7ZB25VFXKTMZ96KH5K4K52H_" + secret
	other := "sous_01M7ZB25VFXKTMZ96KH5K4K52J_" + strings.Repeat("x", 43)
	for output, want := range map[string]bool{
		"":                                      false,
		"first line\nkey_01M7ZB25VFXKTMZ96KH5K": false,
		"sous_01M7ZB25VFXKTMZ96KH5K4K52H_[cut]": false,
		"a line\n{\"got\":\"" + key + "\"}\n":   true,
		"Bearer " + other:                       true,
		"only the secret: " + secret + ".":      true,
	} {
		err := leak(output, key)
		if (err != nil) != want {
			t.Errorf("leak(%q) = %v, want one: %v", output, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("leak: got error %q, want one without the secret", err)
		}
	}
}
