package functions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// deployment is a folder to publish, and the function and aliases to publish it as. The
// folder is read when plan is called, so one deployment can be run repeatedly.
type deployment struct {
	source *sourceDir
	name   string          // "": that of sous.json, else that of the folder
	alias  string          // "": those of sous.json, else api.DefaultAlias
	config json.RawMessage // nil: none beside sous.json
	bundle bool            // where the function needs it
	// local replaces env by that of sous.json and config with the values of localFiles.
	local bool
	// outside permits imports that lead out of the repository of the folder.
	outside bool
	// unverified publishes modules that may fail when they are loaded.
	unverified bool
}

// deployed is the JSON form of the output of deploy.
type deployed struct {
	Function string `json:"function"`
	Version  int64  `json:"version"`
	Alias    string `json:"alias"`
	SHA256   string `json:"sha256"`
	Created  bool   `json:"created"` // false: the latest version was the same
	URL      string `json:"url"`
	// Changes are the differences from the version that ran before.
	Changes []change `json:"changes"`
	// Schedules are the names of the schedules that were created or changed.
	Schedules []string `json:"schedules,omitempty"`
	// Triggers are the queues whose triggers were created or changed.
	Triggers []string `json:"triggers,omitempty"`
	// Bundle is nil if the folder was uploaded as it is.
	Bundle   *bundleJSON `json:"bundle,omitempty"`
	needsKey bool
	aliases  []string
}

func (d deployed) text() string {
	var b strings.Builder
	state := "published"
	if !d.Created {
		state = "unchanged"
	}
	fmt.Fprintf(&b, "%s version %d %s (sha256 %s), alias %s\n\n", d.Function, d.Version, state, command.ShortDigest(d.SHA256), strings.Join(d.aliases, ", "))
	header := ""
	if d.needsKey {
		header = `-H "Authorization: Bearer $SOUS_KEY" ` // the shell fills it in: keys are not printed
	}
	fmt.Fprintf(&b, "  curl %s%s\n", header, d.URL)
	return b.String()
}

func (a commands) fnDeployCommand() *cobra.Command {
	var name, alias, config string
	var watch, noBundle, noVerify, dryRun, outside bool
	cmd := &cobra.Command{
		Use:   "deploy DIR",
		Short: "Publish a folder as a function's next version and set an alias to it",
		Long: `Publish a folder as a function's next version and set an alias to it.

The function is created if it does not exist. Its modules are loaded once before the
publication, which is refused if they fail. Files that .sousignore names (in
.gitignore's syntax) are left out, and always .git, node_modules, .sous, .env,
.dev.vars, sous.json and .sousignore. A folder equal to the latest version publishes
no new version.

Settings such as env, authz and limits come from sous.json in the folder, and --config.
Those that neither names stay as they are in the version that runs; null returns one to
its default. The command prints what changes.

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
			d.bundle, d.unverified, d.outside = !noBundle, noVerify, outside
			d.config, err = command.ReadJSONArg("config", config, a.Stdin, api.MaxRequestBytes)
			if err != nil {
				return err
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			switch {
			case dryRun && watch:
				return errors.New("--dry-run and --watch exclude each other")
			case dryRun:
				return a.showPlan(cmd.Context(), t, d)
			case watch:
				return a.watchAndDeploy(cmd.Context(), t, d)
			}
			return a.deploy(cmd.Context(), t, d)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "the function's name (default: that of sous.json, else the folder's)")
	flags.StringVar(&alias, "alias", "", "alias to set to the version (default: those of sous.json, else prod)")
	flags.StringVar(&config, "config", "", "JSON, @FILE or -: settings of the version that override those of the files, such as {\"timeout_ms\": 500}")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would change, and publish nothing")
	flags.BoolVar(&noBundle, "no-bundle", false, "upload the files of the folder as they are, without packages")
	RegisterAllowOutside(flags, &outside)
	flags.BoolVar(&noVerify, "no-verify", false, "publish also if the modules fail when they are loaded")
	flags.BoolVar(&watch, "watch", false, "deploy again whenever a file changes, until interrupted")
	return cmd
}

// RegisterAllowOutside adds --allow-outside to a command that bundles.
func RegisterAllowOutside(flags *pflag.FlagSet, outside *bool) {
	flags.BoolVar(outside, "allow-outside", false, "bundle also files outside of the repository of the folder, if imports lead there")
}

// undoWithin is the time for deleting a function whose first deployment failed.
const undoWithin = 10 * time.Second

// newDeployment opens the folder dir. It fails if dir is no folder, or if a name is not valid.
func newDeployment(dir, name, alias string) (deployment, error) {
	source, err := openSource(dir)
	if err != nil {
		return deployment{}, err
	}
	if name != "" {
		err = api.ValidateName("function", name)
	}
	if alias != "" {
		err = cmp.Or(err, api.ValidateAlias(alias))
	}
	return deployment{source: source, name: name, alias: alias}, err
}

// deploy publishes the folder once and prints the URL of the function. It succeeds for a
// folder that is unchanged: the alias then points at the version that exists.
func (a commands) deploy(ctx context.Context, t *command.Target, d deployment) error {
	out, err := a.publish(ctx, t, d, "deploying")
	if err != nil {
		return err
	}
	for _, line := range shownChanges(out.Changes) {
		a.Note("%s", line)
	}
	return a.Print(out, out.text())
}

// publish bundles the folder if necessary, uploads it and publishes it under the aliases. The
// progress calls that step by the verb. A run that fails or is interrupted leaves at most a
// draft, which expires after a day, unless this program is killed: then a function that it
// created may have no version. The first alias moves with the publication. CodeValidationSource, CodeValidationManifest, CodeValidationBundle and
// CodeBodyLimit are about the files.
func (a commands) publish(ctx context.Context, t *command.Target, d deployment, verb string) (deployed, error) {
	p, err := a.plan(ctx, t, d)
	if err != nil {
		return deployed{}, err
	}
	var out deployed
	err = a.Working(verb+" "+p.name, func() (err error) {
		out, err = p.run(ctx, t)
		return err
	})
	if err != nil {
		return deployed{}, original(p.bundled, d.source.root, err)
	}
	out.Bundle = newBundleJSON(p.bundled)
	return out, nil
}

// run uploads the tar, publishes it, and sets the aliases and schedules. If it creates the
// function and cannot publish, it deletes the function again.
func (p *plan) run(ctx context.Context, t *command.Target) (deployed, error) {
	fn, err := t.Function(p.name)
	if err != nil {
		return deployed{}, err
	}
	undo, err := ensureFunction(ctx, t, fn, p.name)
	if err != nil {
		return deployed{}, err
	}
	version, err := p.publish(ctx, fn)
	if err != nil {
		return deployed{}, undo(err)
	}
	for _, alias := range p.aliases[1:] {
		if _, err := fn.SetAlias(ctx, alias, version.Version, client.AliasGuard{}); err != nil {
			return deployed{}, fmt.Errorf("version %d is published, but alias %s was not set: %w", version.Version, alias, err)
		}
	}
	schedules, err := applySchedules(ctx, t, p.name, p.aliases[0], p.schedules)
	if err != nil {
		return deployed{}, fmt.Errorf("version %d is published, but: %w", version.Version, err)
	}
	triggers, err := applyTriggers(ctx, t, p.name, p.aliases[0], p.triggers)
	if err != nil {
		return deployed{}, fmt.Errorf("version %d is published, but: %w", version.Version, err)
	}
	return deployed{
		Function: p.name, Version: version.Version, Alias: p.aliases[0], aliases: p.aliases, SHA256: version.SHA256,
		Created: version.Created, URL: fn.WebURL(api.Ref{Alias: p.aliases[0]}), Changes: p.changes, Schedules: schedules, Triggers: triggers,
		needsKey: t.HasKey && !opensEndpoint(p.config),
	}, nil
}

// publish uploads the tar and publishes it under the first alias.
func (p *plan) publish(ctx context.Context, fn *client.Function) (client.Published, error) {
	draft, err := fn.UploadTar(ctx, p.tar)
	if err != nil {
		return client.Published{}, err
	}
	request := client.Publish{DraftID: draft.DraftID, Config: p.config, Alias: p.aliases[0]}
	if p.unverified {
		verify := false
		request.Verify = &verify
	}
	return fn.Publish(ctx, request)
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
// undo deletes what ensureFunction created, and returns the error that it is called with.
func ensureFunction(ctx context.Context, t *command.Target, fn *client.Function, name string) (undo func(error) error, err error) {
	keep := func(err error) error { return err }
	_, err = fn.Get(ctx)
	if api.ErrorCode(err) != api.CodeFunctionNotFound {
		return keep, err
	}
	created, err := t.Namespace.CreateFunction(ctx, client.NewFunction{Name: name})
	switch {
	case api.ErrorCode(err) == api.CodeFunctionExists:
		return keep, nil
	case err != nil:
		return keep, err
	}
	before, err := fn.Get(ctx)
	if err != nil {
		return keep, err
	}
	return func(failed error) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin) // an interrupt is a reason to undo, too
		defer cancel()
		if err := deleteUnpublished(ctx, fn, created.CreatedAtMS, before.LatestVersion); err != nil {
			return fmt.Errorf("%w\nfunction %s, which this deployment created, was not deleted again: %s", failed, name, command.ErrorText(err))
		}
		return failed
	}, nil
}

// deleteUnpublished deletes a function if it still is the one that was created at createdMS
// and has no later version than latest. A publication whose answer was lost, or one of another
// deployment, keeps it. One that comes between the check and the deletion does not: its
// version can be restored by creating the function again.
func deleteUnpublished(ctx context.Context, fn *client.Function, createdMS int64, latest *int64) error {
	now, err := fn.Get(ctx)
	if err == nil && (now.CreatedAtMS != createdMS || versionOr0(now.LatestVersion) != versionOr0(latest)) {
		return nil
	}
	if err == nil {
		err = fn.Delete(ctx)
	}
	if api.ErrorCode(err) == api.CodeFunctionNotFound {
		return nil // deleted meanwhile
	}
	return err
}

func versionOr0(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
