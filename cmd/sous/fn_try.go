package main

import (
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func (a *app) fnTestCommand() *cobra.Command {
	var event, config string
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run a folder's function in the sandbox on this machine, without a server",
		Long: `Run a folder's function in the sandbox on this machine, without a server.

It runs with the limits and capabilities of its manifest, as it would once it is
deployed, against a store of its own that begins empty and is gone afterwards. Its
log goes to stderr. The exit code is 3 where the function failed.`,
		Example: `  sous fn test ./hello --event '{"name": "Ada"}'
  sous fn test ./hello --event @event.json --egress-allow 127.0.0.0/8`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := readJSONArg("event", event, a.stdin, api.MaxEventBytes)
			if err != nil {
				return err
			}
			name, err := (&sourceDir{root: args[0]}).name()
			if err != nil {
				name = tryoutName
			}
			d, err := newDeployment(args[0], name, defaultAlias)
			if err != nil {
				return err
			}
			if d.config, err = readJSONArg("config", config, a.stdin, api.MaxRequestBytes); err != nil {
				return err
			}
			s, err := tryoutSettings(cmd.Flags())
			if err != nil {
				return err
			}
			return withTryout(cmd.Context(), s, func(t *target) error { return a.tryOut(cmd.Context(), t, d, raw) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&event, "event", "", "JSON, @FILE or - for stdin (default null)")
	flags.StringVar(&config, "config", "", "JSON, @FILE or -: settings of the version that win over the manifest")
	flags.StringSlice("egress-allow", nil, "private address ranges (CIDR) that fetch may reach")
	return cmd
}

// tryoutName is what a function is called here whose folder is not named as one:
// no URL needs its name.
const tryoutName = "function"

// tryOut publishes d and runs it once.
func (a *app) tryOut(ctx context.Context, t *target, d deployment, event []byte) error {
	err := a.working("preparing "+d.name, func() error {
		_, err := d.run(ctx, t)
		return err
	})
	if err != nil {
		return err
	}
	o := client.InvokeOptions{Ref: api.Ref{Alias: d.alias}, Event: event}
	return a.invoke(ctx, t, t.namespace.Function(d.name), d.name, o, true)
}

// tryoutSettings are those of a server for one function, one call at a time.
func tryoutSettings(flags *pflag.FlagSet) (settings, error) {
	allow, err := flags.GetStringSlice("egress-allow")
	if err != nil {
		return settings{}, err
	}
	return settings{
		Listen: defaultListen, Auth: authOff, Roles: []string{roleAPI}, EgressAllow: allow, DrainTimeout: defaultDrainTimeout,
		LogLevel: zap.ErrorLevel.String(), LogFormat: logConsole, SandboxMax: 1, SandboxSpares: 1,
	}, nil
}

// withTryout runs use against a platform of its own, which no other process can
// reach: connections to it are made in memory.
func withTryout(ctx context.Context, s settings, use func(*target) error) (err error) {
	if err := s.validate(); err != nil {
		return err
	}
	if s.DataDir, err = os.MkdirTemp("", "sous-test-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.DataDir)) }()
	p, err := openPlatform(ctx, s, zap.NewNop())
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, p.close(bounded))
	}()
	inner := newPipeListener()
	server := &http.Server{Handler: p.handler(s), ReadHeaderTimeout: closeTimeout}
	go func() { _ = server.Serve(inner) }() // ends with Close below, and says only that
	defer func() { err = errors.Join(err, server.Close()) }()
	c, err := client.New("http://localhost", client.Config{Transport: &http.Transport{DialContext: inner.dial}})
	if err != nil {
		return err
	}
	return use(targetOf(c, defaultTenant, defaultNamespace))
}
