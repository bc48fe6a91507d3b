package activations

import (
	"context"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// activationTarget returns the target of a command about an activation, and its id. text is
// the id or a part of it, as command.App.Resolve takes it.
func (a commands) activationTarget(ctx context.Context, text string) (t *command.Target, id string, err error) {
	if err := command.ActivationID.Check(text); err != nil {
		return nil, "", err
	}
	t, err = a.Target()
	if err != nil {
		return nil, "", err
	}
	id, err = a.Resolve(ctx, t, command.ActivationID, text)
	return t, id, err
}
