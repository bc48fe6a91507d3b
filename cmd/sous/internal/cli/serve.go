package cli

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/server"
)

// serveCommand returns sous serve, which runs server.Serve until an interrupt. The log goes to
// stderr; stdout stays empty.
func (a commands) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the platform on a store server, for production",
		Long: `Run the platform on a store server, for production.

Any number of replicas may run on one store, each with any roles. Settings come
from flags, else from variables (SOUS_ and the flag's name in upper case with _
for -, such as SOUS_DRAIN_TIMEOUT), else from a YAML file whose keys are the
flags' names. The file is the one of --config, else of SOUS_CONFIG, else
./sous.yaml if it exists. A key that is no flag is refused.

Roles: api serves the REST API and the endpoints of functions, and runs their
sandboxes; invoker runs asynchronous invocations, in sandboxes of its own;
scheduler fires schedules, maintains the queues, and repairs the records of crashed
replicas; cadence runs functions as activities of the Cadence server of --cadence-addr,
in sandboxes of its own.

With --auth keys (the default) every call needs an API key; sous keys bootstrap
creates the first one. With --auth off every caller is an administrator, and the
server listens on loopback addresses only.

The first SIGINT or SIGTERM drains: /readyz answers 503, after --drain-delay the
server accepts no more connections, requests in progress finish and are recorded,
and sandboxes end. The second one ends the process immediately.`,
		Example: `  sous keys bootstrap --store redis://127.0.0.1:6666
  sous serve --store redis://127.0.0.1:6666 --listen :8080
  SOUS_STORE=redis-cluster://10.0.0.1:6379,10.0.0.2:6379 sous serve --roles api`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return server.Serve(cmd.Context(), cmd.Flags(), a.Stderr)
		},
	}
	server.RegisterServe(cmd.Flags())
	return cmd
}
