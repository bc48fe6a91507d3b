package functions

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/server"
)

// fnTestCommand returns sous fn test. It uses no App.Target: the function can reach neither the
// user's server nor its data.
func (a commands) fnTestCommand() *cobra.Command {
	var f tryFlags
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run a folder's function in the sandbox on this machine, without a server",
		Long: `Run a folder's function in the sandbox on this machine, without a server.

It is bundled with the packages that it imports, as by sous fn deploy, and runs with the
limits and capabilities of its manifest, as a deployed function does, on an empty store of
its own that is deleted afterwards. Its log is printed on stderr.
The exit code is 3 if the function failed.

Values in .env and .dev.vars of the folder, one NAME=value on each line, replace those of
the environment. --secrets names a file of that form with the secrets. --http sends a
request to the function's endpoint instead of an event. --watch runs it again whenever a
file of the folder, or a file that a flag names, changes.`,
		Example: `  sous fn test ./hello --event '{"name": "Ada"}'
  sous fn test ./hello --event @event.json --egress-allow loopback
  sous fn test ./shop --http 'POST /orders?dry=1' --header 'content-type: application/json' --body '{"id": 1}'
  sous fn test ./shop --secrets test.secrets --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.watch {
				return a.watchAndTry(cmd.Context(), args[0], f)
			}
			return a.tryFolder(cmd.Context(), args[0], f)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// tryFolder runs the function of the folder dir once, on a new server.
func (a commands) tryFolder(ctx context.Context, dir string, f tryFlags) error {
	event, err := command.ReadJSONArg("event", f.event, a.Stdin, api.MaxEventBytes)
	if err != nil {
		return err
	}
	request, err := parseTryRequest(f.http, f.headers, f.body)
	if err != nil {
		return err
	}
	if request != nil && f.event != "" {
		return errors.New("--http and --event exclude each other")
	}
	d, err := newDeployment(dir, tryoutName, api.DefaultAlias)
	if err != nil {
		return err
	}
	d.bundle, d.local, d.outside = !f.noBundle, true, f.outside
	d.config, err = command.ReadJSONArg("config", f.config, a.Stdin, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	d.config, err = recordAll(d.config)
	if err != nil {
		return err
	}
	secrets, err := f.readSecrets()
	if err != nil {
		return err
	}
	return server.WithTryout(ctx, f.egressAllow, func(transport http.RoundTripper) error {
		return a.tryOut(ctx, transport, d, secrets, event, request)
	})
}

// tryFlags are the flags of fn test.
type tryFlags struct {
	event, config, secrets, http, body string
	egressAllow, headers               []string
	noBundle, watch, outside           bool
}

func (f *tryFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.event, "event", "", "JSON, @FILE or - for stdin (default null)")
	flags.StringVar(&f.http, "http", "", "send a request, such as 'POST /orders', to the endpoint and print the answer")
	flags.StringArrayVar(&f.headers, "header", nil, "with --http, a header such as 'accept: text/html'; may be repeated")
	flags.StringVar(&f.body, "body", "", "with --http, the body: text or @FILE")
	flags.StringVar(&f.secrets, "secrets", "", "file of NAME=value lines with the secrets that the function may read")
	flags.StringVar(&f.config, "config", "", "JSON, @FILE or -: settings of the version that override those of the files")
	flags.BoolVar(&f.noBundle, "no-bundle", false, "run the files of the folder as they are, without packages")
	RegisterAllowOutside(flags, &f.outside)
	flags.BoolVar(&f.watch, "watch", false, "run again whenever a file changes, until interrupted")
	flags.StringSliceVar(&f.egressAllow, "egress-allow", nil, "private address ranges (CIDR) that fetch may reach, and loopback for this machine")
}

// readSecrets returns the secrets of the file that --secrets names, nil without one.
func (f *tryFlags) readSecrets() (map[string]string, error) {
	if f.secrets == "" {
		return nil, nil
	}
	return readValues(f.secrets)
}

// tryOut publishes d on the server that transport reaches, and runs it once: with request if
// that is not nil, else with the event.
func (a commands) tryOut(ctx context.Context, transport http.RoundTripper, d deployment, secrets map[string]string, event []byte, request *tryRequest) error {
	c, err := client.New("http://localhost", client.Config{Transport: transport})
	if err != nil {
		return err
	}
	t := command.NewTarget(c, command.DefaultTenant, command.DefaultNamespace)
	url, err := a.prepareTry(ctx, t, d, secrets)
	if err != nil {
		return err
	}
	if request != nil {
		return a.tryRequest(ctx, t, transport, url, request)
	}
	o := client.InvokeOptions{Ref: api.Ref{Alias: d.alias}, Event: event}
	return a.invoke(ctx, t, t.Namespace.Function(d.name), d.name, o, true, readableResult)
}

// recordAll returns a config with which all activations are recorded: the log of a test is read
// from its record.
func recordAll(config json.RawMessage) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(config) > 0 && json.Unmarshal(config, &fields) != nil {
		return config, nil //nolint:nilerr // the server explains what a config must be
	}
	fields["record"] = json.RawMessage("null")
	return json.Marshal(fields)
}

// tryoutName is the name of the function, whose folder may have a name that no function can
// have: no URL needs it.
const tryoutName = "function"

// prepareTry publishes d on the server of t, with secrets, and returns the URL of its endpoint.
func (a commands) prepareTry(ctx context.Context, t *command.Target, d deployment, secrets map[string]string) (url string, err error) {
	for name, value := range secrets {
		if _, err := t.Namespace.Secret(name).Set(ctx, value, client.SecretCondition{}); err != nil {
			return "", fmt.Errorf("secret %s: %w", name, err)
		}
	}
	out, err := a.publish(ctx, t, d, "preparing")
	return out.URL, err
}

// readableResult returns the result of a test. The body of a response that is text in base64, as
// adapters of web frameworks encode all bodies, is shown as text.
func readableResult(raw json.RawMessage) string {
	var response struct {
		Body    string `json:"body"`
		Encoded bool   `json:"isBase64Encoded"`
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &response) != nil || !response.Encoded || json.Unmarshal(raw, &fields) != nil {
		return command.IndentJSON(raw)
	}
	body, err := base64.StdEncoding.DecodeString(response.Body)
	if err != nil || !utf8.Valid(body) {
		return command.IndentJSON(raw)
	}
	delete(fields, "body")
	delete(fields, "isBase64Encoded")
	head, err := json.Marshal(fields)
	if err != nil {
		return command.IndentJSON(raw)
	}
	return command.IndentJSON(head) + "\n" + strings.TrimSuffix(string(body), "\n") + "\n"
}
