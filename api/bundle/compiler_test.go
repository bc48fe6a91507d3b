package bundle_test

import (
	"testing"

	"github.com/codesous/sous/api/bundle"
)

func TestMessagesOfTheCompilerLoseItsInternals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`No matching export in "bundle:lib.ts" for import "x"`:                                                                      `No matching export in "lib.ts" for import "x"`,
		`Transforming async generator functions to the configured target environment ("esnext" + 6 overrides) is not supported yet`: `the sandbox does not support async generator functions here`,
		`Transforming let to the configured target environment is not supported yet`:                                                `the sandbox does not support let here`,
		`Top-level await is not available in the configured target environment ("esnext" + 1 override)`:                             `Top-level await is not available in the sandbox`,
		`Unexpected "}"`: `Unexpected "}"`,
	} {
		if got := bundle.CompilerText(text, "bundle"); got != want {
			t.Errorf("CompilerText(%s): got %s, want %s", text, got, want)
		}
	}
}
