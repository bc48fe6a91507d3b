package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// healthTimeout bounds the request. The server bounds its own check of the store by less.
const healthTimeout = 5 * time.Second

// healthAnswer is the JSON form of the output of sous health. Ready is always true: a server
// that is not ready is an error.
type healthAnswer struct {
	URL   string `json:"url"`
	Ready bool   `json:"ready"`
}

// healthCommand returns sous health. It does not use App.Target: a probe must not depend on
// the profile file of a user, and needs neither key nor tenant.
func (a commands) healthCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it is ready",
		Long: `Ask a server whether it is ready, once, for health checks of containers.

The exit code is 0 if /readyz answers 200, and 2 if it answers anything else or
does not answer within 5 seconds. Saved profiles are not used.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			c, err := client.New(cmp.Or(url, os.Getenv("SOUS_URL"), command.DefaultURL), client.Config{UserAgent: "sous/" + build.Version()})
			if err != nil {
				return err
			}
			if err := c.Ready(ctx); err != nil {
				return command.ServerFailure(fmt.Errorf("not ready: %w", err))
			}
			return a.Print(healthAnswer{c.URL(), true}, "ready\n")
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "server (SOUS_URL, default "+command.DefaultURL+")")
	return cmd
}
