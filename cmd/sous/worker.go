package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func (a *app) workerCommand() *cobra.Command {
	return a.remoteCommand("worker", "Look at the processes that do the jobs of queues", a.workerListCommand())
}

func (a *app) workerListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenant's workers that fetched or sent a heartbeat in the last five minutes", Args: cobra.NoArgs}
	limit := registerLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.target()
		if err != nil {
			return err
		}
		items, more, err := collect(client.All(cmd.Context(), t.tenant.Workers, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		a.noteMore(more)
		return printList(a, items, []string{"WORKER", "HOST", "NAMESPACE", "QUEUES", "VERSION", "STARTED", "LAST SEEN"}, func(w api.Worker) []string {
			return []string{w.ID, w.Hostname, w.Namespace, strings.Join(w.Queues, ","), w.Version, timeText(w.StartedAtMS), timeText(w.LastHeartbeatMS)}
		})
	}
	return cmd
}
