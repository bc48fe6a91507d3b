package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the platform on a store server, for production",
		Long: `Run the platform on a store server, for production.

Any number of replicas may run on one store, each with any roles. Settings come
from flags, else from variables (SOUS_ and the flag's name in upper case with _
for -, such as SOUS_DRAIN_TIMEOUT), else from a YAML file whose keys are the
flags' names. The file is the one of --config, else of SOUS_CONFIG, else
./sous.yaml where it exists. A key that is no flag is refused.

Roles: api answers the REST API and the functions' endpoints and runs their
sandboxes; invoker runs asynchronous invocations, in sandboxes of its own;
scheduler fires schedules, looks after the queues, and mends what crashes left; cadence
runs functions as activities of the Cadence server of --cadence-addr, in sandboxes
of its own.

With --auth keys (the default) every call needs an API key; the first one is made
by sous keys bootstrap. With --auth off whoever reaches the server is an
administrator, and it answers on loopback addresses only.

A first SIGINT or SIGTERM drains: /readyz answers 503, after --drain-delay no
connection is accepted any more, requests in hand finish and are recorded,
sandboxes end. A second one ends the process at once.`,
		Example: `  sous keys bootstrap --store redis://127.0.0.1:6666
  sous serve --store redis://127.0.0.1:6666 --listen :8080
  SOUS_STORE=redis-cluster://10.0.0.1:6379,10.0.0.2:6379 sous serve --roles api`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings(cmd.Flags())
			if err != nil {
				return err
			}
			if s.Store == "" {
				return errors.New("store: serve needs a store server (--store redis://…); sous dev has one of its own")
			}
			logger, stop, err := newLogger(a.stderr, s)
			if err != nil {
				return err
			}
			defer stop()
			return runServer(cmd.Context(), s, logger, func(url string) {
				logger.Info("serving", zap.String("url", url), zap.Strings("roles", s.Roles), zap.String("auth", s.Auth), zap.String("version", buildVersion()))
			})
		},
	}
	flags := cmd.Flags()
	registerServer(flags, logJSON, authKeys)
	flags.String("store", "", storeHelp)
	flags.StringSlice("roles", allRoles, "what this replica does, of "+strings.Join(allRoles, ","))
	return cmd
}
