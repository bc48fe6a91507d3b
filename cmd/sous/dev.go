package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole platform in this process, with a store of its own",
		Long: `Run the whole platform in this process, with a store of its own.

The store keeps its data in --data-dir, in a snapshot that is written every
second when something changed and when the process ends: it is for one process
on one machine. Settings come from flags, SOUS_* variables and a YAML file as for
sous serve.`,
		Example: `  sous dev
  sous dev --listen 127.0.0.1:9000 --data-dir /tmp/play`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings(cmd.Flags())
			if err != nil {
				return err
			}
			if s.Auth == authKeys && s.Store == "" {
				return errKeysEmbedded
			}
			s.Roles = allRoles // whatever a file that serve reads too says
			if err := s.makeSecretsKey(); err != nil {
				return err
			}
			logger, stop, err := newLogger(a.stderr, s)
			if err != nil {
				return err
			}
			defer stop()
			return runServer(cmd.Context(), s, logger, func(url string) {
				_, _ = fmt.Fprint(a.stdout, banner(url, s)) // the log has the address too
			})
		},
	}
	flags := cmd.Flags()
	registerServer(flags, logConsole, authOff)
	flags.String("data-dir", defaultDataDir, "folder of the embedded store")
	flags.String("store", "", "use this server instead of the embedded store: "+storeHelp)
	flags.StringSlice("roles", allRoles, "what this process does")
	flags.Lookup("roles").Hidden = true
	return cmd
}

func banner(url string, s settings) string {
	place := "an embedded store in " + s.DataDir + " (one process, one machine: for development)"
	if s.Store != "" {
		place = "the store server of --store"
	}
	where := ""
	if url != defaultURL {
		where = fmt.Sprintf("  export SOUS_URL=%s\n", url)
	}
	return fmt.Sprintf(`
sous is ready at %s, with %s.
Try, in another terminal:

%s  sous fn init hello
  sous fn deploy hello
  sous fn logs hello --follow

API documentation: %s/docs
Ctrl-C stops it.

`, url, place, where, url)
}
