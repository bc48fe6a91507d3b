package cadenceworker

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
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
		t.Errorf("got reason %q of %d bytes, want its first %d bytes", long, len(long), maxReason-1)
	}
}

// What the tenant is not told, the log says.
func TestRefusalIsLogged(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.ErrorLevel)
	a := (&task{logger: zap.New(core)}).refusal(errors.New("the disk is gone"))
	if logs.Len() != 1 || logs.All()[0].ContextMap()["error"] != "the disk is gone" || a.status != taskFailed {
		t.Errorf("refusal: got %+v and log %+v, want status failed and one line with the error", a, logs.All())
	}
}
