// Package functions holds the commands about functions and their activations (sous fn and
// sous activation).
package functions

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about functions and their activations.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.fnCommand(), c.activationCommand()}
}

func (a commands) fnCommand() *cobra.Command {
	return a.RemoteGroup("fn", "Write, publish, invoke and manage functions",
		a.fnInitCommand(), a.fnTestCommand(), a.fnDeployCommand(), a.fnInvokeCommand(),
		a.fnListCommand(), a.fnGetCommand(), a.fnVersionsCommand(), a.fnAliasCommand(),
		a.fnRollbackCommand(), a.fnDeleteCommand(), a.fnLogsCommand())
}

// functionTarget returns the target of a command about the function name, which it
// refuses here already if no function can have it.
func (a commands) functionTarget(name string) (*command.Target, *client.Function, error) {
	t, err := a.Target()
	if err != nil {
		return nil, nil, err
	}
	fn, err := t.Function(name)
	return t, fn, err
}
