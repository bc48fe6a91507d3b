// Package activations holds the commands about the runs of functions: sous activation, sous
// tail and sous fn logs.
//
//	activation.go, activation_id.go  list, get, cancel, logs
//	search.go                        search, stats
//	logs.go                          sous tail, sous fn logs
//	tail.go                          the activations of both, as they happen
package activations

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns sous activation and sous tail.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.activationCommand(), c.tailCommand()}
}

// LogsCommand returns sous fn logs.
func LogsCommand(a *command.App) *cobra.Command { return commands{a}.fnLogsCommand() }
