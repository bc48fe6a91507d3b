package hostcall

import (
	"context"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// secretCalls serves cs.secrets. The values are the activation's: see Scope.Secrets.
type secretCalls struct{}

func (c secretCalls) calls() map[string]call {
	return map[string]call{wire.SecretGet.Name: handle(wire.SecretGet, c.permit, c.get)}
}

// permit admits the names that the version declares, letter for letter: there is no "*", so
// that a manifest shows every secret that its function can read.
func (secretCalls) permit(s *Scope, a wire.SecretName) string {
	if slices.Contains(s.Capabilities.Secrets, a.Name) {
		return ""
	}
	return `{"secrets": [` + quoted(shortened(a.Name)) + `]}`
}

// get returns a value as the blob: it is text, not JSON.
func (secretCalls) get(ctx context.Context, s *Scope, a wire.SecretName, _ []byte) (none wire.None, value []byte, err error) {
	if s.Secrets == nil {
		return none, nil, api.Errorf(api.CodeHostSecretUnavailable, "this invocation has no secrets")
	}
	value, err = s.Secrets.Get(ctx, a.Name)
	return none, value, err
}
