package functions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/bundler"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// deployment is a folder to publish, and the function and alias to publish it as. The names
// are valid; the folder is read when run is called, so one deployment can be run repeatedly.
type deployment struct {
	source *sourceDir
	name   string
	alias  string
	config json.RawMessage // nil: the manifest's
	bundle bool            // where the function needs it
}

// deployed is the JSON form of the output of deploy.
type deployed struct {
	Function string `json:"function"`
	Version  int64  `json:"version"`
	Alias    string `json:"alias"`
	SHA256   string `json:"sha256"`
	Created  bool   `json:"created"` // false: the latest version was the same
	URL      string `json:"url"`
	// Bundle is nil if the folder was uploaded as it is.
	Bundle   *bundleJSON `json:"bundle,omitempty"`
	needsKey bool
}

func (d deployed) text() string {
	var b strings.Builder
	state := "published"
	if !d.Created {
		state = "unchanged"
	}
	fmt.Fprintf(&b, "%s version %d %s (sha256 %s), alias %s\n\n", d.Function, d.Version, state, command.ShortDigest(d.SHA256), d.Alias)
	header := ""
	if d.needsKey {
		header = `-H "Authorization: Bearer $SOUS_KEY" ` // the shell fills it in: keys are not printed
	}
	fmt.Fprintf(&b, "  curl %s%s\n", header, d.URL)
	return b.String()
}

func (a commands) fnDeployCommand() *cobra.Command {
	var name, alias, config string
	var watch, noBundle bool
	cmd := &cobra.Command{
		Use:   "deploy DIR",
		Short: "Publish a folder as a function's next version and set an alias to it",
		Long: `Publish a folder as a function's next version and set an alias to it.

The function is created if it does not exist. Files that .sousignore names (in
.gitignore's syntax) are left out, and always .git, node_modules and .sous. A folder
equal to the latest version publishes no new version.

A function that imports packages is bundled with them, from node_modules, into one
module; the packages and their sizes are printed.`,
		Example: `  sous fn deploy ./hello
  sous fn deploy . --name hello --alias staging --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := newDeployment(args[0], name, alias)
			if err != nil {
				return err
			}
			d.bundle = !noBundle
			d.config, err = command.ReadJSONArg("config", config, a.Stdin, api.MaxRequestBytes)
			if err != nil {
				return err
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			if watch {
				return a.watchAndDeploy(cmd.Context(), t, d)
			}
			return a.deploy(cmd.Context(), t, d)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "the function's name (default: the folder's)")
	flags.StringVar(&alias, "alias", api.DefaultAlias, "alias to set to the version")
	flags.StringVar(&config, "config", "", "JSON, @FILE or -: settings of the version that override the manifest, such as {\"timeout_ms\": 500}")
	flags.BoolVar(&noBundle, "no-bundle", false, "upload the files of the folder as they are, without packages")
	flags.BoolVar(&watch, "watch", false, "deploy again whenever a file changes, until interrupted")
	return cmd
}

// newDeployment opens the folder dir. For name "" the function has the name of the folder, in
// lower case. It fails if dir is no folder, or if a name is not valid.
func newDeployment(dir, name, alias string) (deployment, error) {
	source, err := openSource(dir)
	if err != nil {
		return deployment{}, err
	}
	if name == "" {
		name, err = source.name()
		if err != nil {
			return deployment{}, fmt.Errorf("give --name: %w", err)
		}
	}
	err = cmp.Or(api.ValidateName("function", name), api.ValidateAlias(alias))
	return deployment{source: source, name: name, alias: alias}, err
}

// deploy publishes the folder once and prints the URL of the function. It succeeds for a
// folder that is unchanged: the alias then points at the version that exists.
func (a commands) deploy(ctx context.Context, t *command.Target, d deployment) error {
	out, err := a.publish(ctx, t, d, "deploying")
	if err != nil {
		return err
	}
	return a.Print(out, out.text())
}

// publish bundles the folder if necessary, uploads it and publishes it under the alias. The
// progress calls that step by the verb. A run that is interrupted leaves at most a function
// without versions and a draft, which expires after a day; the alias moves with the
// publication, in the last request. CodeValidationSource, CodeValidationManifest,
// CodeValidationBundle and CodeBodyLimit are about the files.
func (a commands) publish(ctx context.Context, t *command.Target, d deployment, verb string) (deployed, error) {
	var files map[string][]byte
	var bundled *bundler.Bundle
	err := a.Working("bundling "+d.name, func() (err error) {
		files, bundled, err = d.source.upload(d.bundle)
		return err
	})
	if err != nil {
		return deployed{}, err
	}
	if bundled != nil {
		for _, warning := range bundled.Warnings {
			a.Note("warning: %s", warning)
		}
		a.Note("%s", bundleText(d.source.root, bundled))
	}
	tar, err := bundle.Pack(files)
	if err != nil {
		return deployed{}, tooLarge(bundled, err)
	}
	var out deployed
	err = a.Working(verb+" "+d.name, func() (err error) {
		out, err = d.run(ctx, t, tar)
		return err
	})
	if err != nil {
		return deployed{}, original(bundled, err)
	}
	out.Bundle = newBundleJSON(bundled)
	return out, nil
}

// run uploads a tar and publishes it under the alias.
func (d deployment) run(ctx context.Context, t *command.Target, tar []byte) (deployed, error) {
	fn, err := t.Function(d.name)
	if err != nil {
		return deployed{}, err
	}
	if err := ensureFunction(ctx, t, fn, d.name); err != nil {
		return deployed{}, err
	}
	draft, err := fn.UploadTar(ctx, tar)
	if err != nil {
		return deployed{}, err
	}
	version, err := fn.Publish(ctx, client.Publish{DraftID: draft.DraftID, Config: d.config, Alias: d.alias})
	if err != nil {
		return deployed{}, err
	}
	return deployed{
		Function: d.name, Version: version.Version, Alias: d.alias, SHA256: version.SHA256,
		Created: version.Created, URL: fn.WebURL(api.Ref{Alias: d.alias}),
		needsKey: t.HasKey && !opensEndpoint(d.config),
	}, nil
}

// opensEndpoint reports whether the endpoint of a version with that config is open to
// callers without a key. The server has validated the config by then.
func opensEndpoint(config json.RawMessage) bool {
	var c struct {
		Authz api.Authz `json:"authz"`
	}
	return json.Unmarshal(config, &c) == nil && slices.Contains(c.Authz.InvokeHTTPRoles, "*")
}

// ensureFunction creates the function if it does not exist. Another deployment may create
// it at the same time. A deleted function is created again and has its earlier versions.
func ensureFunction(ctx context.Context, t *command.Target, fn *client.Function, name string) error {
	_, err := fn.Get(ctx)
	if api.ErrorCode(err) != api.CodeFunctionNotFound {
		return err
	}
	_, err = t.Namespace.CreateFunction(ctx, client.NewFunction{Name: name})
	if api.ErrorCode(err) == api.CodeFunctionExists {
		return nil
	}
	return err
}
