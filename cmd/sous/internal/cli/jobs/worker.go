package jobs

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) workerCommand() *cobra.Command {
	return a.RemoteGroup("worker", "Show the worker processes of queues", a.workerListCommand())
}

// workerListCommand returns sous worker list. The server keeps a worker for five minutes
// after it was last seen, so one that has ended stays in the list for that time.
func (a commands) workerListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenant's workers that fetched or sent a heartbeat in the last five minutes", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Tenant.Workers, *limit, []string{"WORKER", "HOST", "QUEUES", "VERSION", "STARTED", "LAST SEEN"}, func(w api.Worker) []string {
			return []string{w.ID, w.Hostname, queuesText(&w), w.Version, command.TimeText(w.StartedAtMS), command.TimeText(w.LastHeartbeatMS)}
		})
	}
	return cmd
}

// queuesText returns the queues of a worker as NS/QUEUE,QUEUE NS/….
func queuesText(w *api.Worker) string {
	var out []string
	for _, n := range w.Namespaces {
		out = append(out, n.Namespace+"/"+strings.Join(n.Queues, ","))
	}
	return strings.Join(out, " ")
}
