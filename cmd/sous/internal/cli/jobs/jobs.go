// Package jobs holds the commands about jobs, queues, batches, tasks and workers.
package jobs

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about jobs, queues, batches, tasks and workers.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.jobCommand(), c.queueCommand(), c.batchCommand(), c.taskCommand(), c.workerCommand()}
}
