package functions

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
)

// fnTestCommand returns sous fn test. It uses no App.Target: the function can reach neither the
// user's server nor its data.
func (a commands) fnTestCommand() *cobra.Command {
	var event, config string
	var egressAllow []string
	var noBundle bool
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run a folder's function in the sandbox on this machine, without a server",
		Long: `Run a folder's function in the sandbox on this machine, without a server.

It is bundled with the packages that it imports, as by sous fn deploy, and runs with the
limits and capabilities of its manifest, as a deployed function does, on an empty store of
its own that is deleted afterwards. Its log is printed on stderr.
The exit code is 3 if the function failed.`,
		Example: `  sous fn test ./hello --event '{"name": "Ada"}'
  sous fn test ./hello --event @event.json --egress-allow 127.0.0.0/8`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := command.ReadJSONArg("event", event, a.Stdin, api.MaxEventBytes)
			if err != nil {
				return err
			}
			d, err := newDeployment(args[0], tryoutName, api.DefaultAlias)
			if err != nil {
				return err
			}
			d.bundle = !noBundle
			d.config, err = command.ReadJSONArg("config", config, a.Stdin, api.MaxRequestBytes)
			if err != nil {
				return err
			}
			return server.WithTryout(cmd.Context(), egressAllow, func(transport http.RoundTripper) error {
				c, err := client.New("http://localhost", client.Config{Transport: transport})
				if err != nil {
					return err
				}
				return a.tryOut(cmd.Context(), command.NewTarget(c, command.DefaultTenant, command.DefaultNamespace), d, raw)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&event, "event", "", "JSON, @FILE or - for stdin (default null)")
	flags.StringVar(&config, "config", "", "JSON, @FILE or -: settings of the version that override the manifest")
	flags.BoolVar(&noBundle, "no-bundle", false, "run the files of the folder as they are, without packages")
	flags.StringSliceVar(&egressAllow, "egress-allow", nil, "private address ranges (CIDR) that fetch may reach")
	return cmd
}

// tryoutName is the name of the function, whose folder may have a name that no function can
// have: no URL needs it.
const tryoutName = "function"

// tryOut publishes d on the server of t and runs it once, with its log.
func (a commands) tryOut(ctx context.Context, t *command.Target, d deployment, event []byte) error {
	if _, err := a.publish(ctx, t, d, "preparing"); err != nil {
		return err
	}
	o := client.InvokeOptions{Ref: api.Ref{Alias: d.alias}, Event: event}
	return a.invoke(ctx, t, t.Namespace.Function(d.name), d.name, o, true)
}
