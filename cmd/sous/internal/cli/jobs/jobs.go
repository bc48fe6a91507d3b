// Package jobs holds the commands about jobs, runs, queues and their triggers, batches, tasks,
// workers and events.
//
//	sous job     job.go             enqueue, get, list
//	             search.go          search
//	             job_transition.go  retry, cancel, approve, reject, hold, move, delete
//	sous run     run.go             get, send
//	sous queue   queue.go           list, get, set, pause, resume, drain, redrive, clear, delete
//	             queue_tail.go      tail
//	sous batch   batch.go
//	sous task    task.go
//	sous worker  worker.go
//	sous events  events.go
//	sous trigger trigger.go
//
// Queues and batches belong to a namespace; jobs and tasks have ids that are unique in the
// tenant. So a command about a job by its id ignores --namespace, and one about a queue does
// not. docs/queue.md and docs/tasks.md explain the states.
package jobs

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package. Each method builds one command, except for
// the few that run one.
type commands struct{ *command.App }

// Commands returns the commands about jobs, queues, batches, tasks, workers and events.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.jobCommand(), c.runCommand(), c.queueCommand(), c.batchCommand(), c.taskCommand(), c.workerCommand(), c.triggerCommand(), c.eventsCommand()}
}
