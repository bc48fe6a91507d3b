// Package functions holds the commands about functions: sous fn, deploy, diff and pull.
//
//	sous fn          init.go                    init, from the files in template/
//	                 source.go                  the folder of a function: which files belong to it
//	                 deploy.go, watch.go        deploy
//	                 try.go, try_watch.go       test
//	                 invoke.go, invoke_async.go invoke
//	                 records.go, alias.go       list, get, versions, rollback, delete, alias
//	sous deploy      deploy_tree.go
//	sous dev DIR     develop.go
//
// A deployment packs the folder into a canonical tar, uploads it as a draft, and publishes the
// draft under an alias. test does the same on a server inside this process, which no other
// process can reach, and so refuses the sources that deploy would refuse.
package functions

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/activations"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about functions and their activations.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.fnCommand(), c.deployCommand(), c.diffCommand(), c.pullCommand()}
}

func (a commands) fnCommand() *cobra.Command {
	return a.RemoteGroup("fn", "Write, publish, invoke and manage functions",
		a.fnInitCommand(), a.fnTestCommand(), a.fnDeployCommand(), a.fnInvokeCommand(),
		a.fnListCommand(), a.fnGetCommand(), a.fnVersionsCommand(), a.fnAliasCommand(),
		a.fnRollbackCommand(), a.fnDeleteCommand(), activations.LogsCommand(a.App))
}

// functionTarget returns the target of a command about the function name, and the function.
// It refuses a name that no function can have, and sends no request.
func (a commands) functionTarget(name string) (*command.Target, *client.Function, error) {
	t, err := a.Target()
	if err != nil {
		return nil, nil, err
	}
	fn, err := t.Function(name)
	return t, fn, err
}
