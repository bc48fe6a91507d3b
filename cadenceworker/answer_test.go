package cadenceworker

import (
	"strings"
	"testing"
)

func TestReasonsAreCleaned(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"":                                  "CS_RUNTIME_EXCEPTION",
		"NoMoney":                           "NoMoney",
		" \tNo Money\n":                     "No Money",
		"cadenceInternal:Panic":             "Panic",
		"cadenceInternal: cadenceInternal:": "CS_RUNTIME_EXCEPTION",
		"\x01cadenceInternal:Timeout":       "Timeout",
		"a\x00b":                            "ab",
	} {
		if got := cleanReason(code); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
	if long := cleanReason(strings.Repeat("x", maxReason-1) + "é"); long != strings.Repeat("x", maxReason-1) {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
