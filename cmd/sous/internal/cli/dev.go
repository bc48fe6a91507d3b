package cli

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/cli/functions"
	"github.com/codesous/sous/cmd/sous/internal/server"
)

// devCommand returns sous dev, which runs server.Dev until an interrupt.
func (a commands) devCommand() *cobra.Command {
	var quiet, reset, outside bool
	cmd := &cobra.Command{
		Use:   "dev [DIR…]",
		Short: "Run the whole platform in this process, with a store of its own",
		Long: `Run the whole platform in this process, with a store of its own.

Each DIR is the folder of a function, or holds such folders, which have a sous.json or a
manifest.json. Their functions are deployed, with the values of .env and .dev.vars in their
environment, and again whenever a file changes. The terminal shows their URLs. SOUS_TENANT
and SOUS_NAMESPACE name where they are deployed.

The store keeps its data in memory, with a snapshot and a journal in --data-dir: a
killed process loses no answered write, a power failure loses about a second. It is
for one process on one machine.

The terminal shows the log lines and the outcome of each activation; --quiet hides
them. The endpoints of functions answer with the messages of their errors, which
sous serve does not show to callers. Settings come from flags, SOUS_* variables and a YAML
file, as for sous serve.`,
		Example: `  sous dev
  sous dev ./hello ./services --egress-allow loopback
  sous dev --listen 127.0.0.1:9000 --data-dir /tmp/play`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			folders, err := functions.OpenDevelopment(a.App, dirs)
			if err != nil {
				return err
			}
			folders.AllowOutside = outside
			var running sync.WaitGroup
			defer running.Wait()
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel() // the server may fail
			return server.Dev(ctx, cmd.Flags(), a.Stderr, server.DevOptions{
				Observer: &devActivity{app: a.App, quiet: quiet}, Reset: reset,
				Ready: func(url, store string) {
					_, _ = fmt.Fprint(a.Stdout, banner(url, store, len(dirs) > 0)) // the log has the address too
					running.Go(func() {
						if err := folders.Run(ctx, url); err != nil {
							a.Report(err)
						}
					})
				},
			})
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not print what functions log and how they end")
	cmd.Flags().BoolVar(&reset, "reset", false, "remove all functions and data of the embedded store before the start")
	functions.RegisterAllowOutside(cmd.Flags(), &outside)
	server.RegisterDev(cmd.Flags())
	return cmd
}

// banner returns the text that dev prints once it accepts connections on url. Its commands
// can be pasted: for another address than the default one they set SOUS_URL first. With
// folders of its own, dev names no commands that deploy.
func banner(url, store string, deploys bool) string {
	try := "  sous fn init hello\n  sous fn deploy hello\n  sous fn logs hello --follow\n"
	if deploys {
		try = "  sous fn list\n  sous tail\n"
	}
	where := ""
	if url != command.DefaultURL {
		where = fmt.Sprintf("  export SOUS_URL=%s\n", url)
	}
	return fmt.Sprintf(`
sous is ready at %s, with %s.
Try, in another terminal:

%s%s
Documentation: %s/docs
Ctrl-C stops it.

`, url, store, where, try, url)
}
