package api_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

// TestPrincipalsAreEncodedAsByEncodingJSON: those that a sandbox is given.
func TestPrincipalsAreEncodedAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	principals := rapid.Make[api.Principal]()
	rapid.Check(t, func(t *rapid.T) {
		p := principals.Draw(t, "principal")
		want, err := api.EncodeJSON(p)
		if err != nil {
			t.Fatalf("api.EncodeJSON: %v", err)
		}
		if got := p.AppendJSON(nil); string(got) != string(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
