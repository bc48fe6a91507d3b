package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// pulled is the JSON form of the output of pull.
type pulled struct {
	Function string   `json:"function"`
	Version  int64    `json:"version"`
	Folder   string   `json:"folder"`
	Files    []string `json:"files"`
}

// pullCommand returns sous pull.
func (a commands) pullCommand() *cobra.Command {
	var ref string
	var force bool
	cmd := &cobra.Command{
		Use:   "pull NAME [DIR]",
		Short: "Write the source and the settings of a function to a folder",
		Long: `Write the source and the settings of a function to a folder, by default one of the
function's name: its files, and the settings of the version in sous.json, so that a
deployment of the folder changes nothing. Of a function that was bundled with packages
these are the files of its folder, without node_modules.`,
		Example: `  sous pull hello
  sous pull hello old --ref 3`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := command.ParseRef(ref)
			if err != nil {
				return err
			}
			t, fn, err := a.functionTarget(args[0])
			if err != nil {
				return err
			}
			folder := args[0]
			if len(args) == 2 {
				folder = args[1]
			}
			return a.pull(cmd.Context(), t, fn, args[0], version, folder, force)
		},
	}
	cmd.Flags().StringVar(&ref, "ref", api.DefaultAlias, "alias or version to write")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that exist")
	a.RegisterRemote(cmd.Flags())
	return cmd
}

// pull writes the version that ref names to folder.
func (a commands) pull(ctx context.Context, t *command.Target, fn *client.Function, name string, ref api.Ref, folder string, force bool) error {
	var now *running
	var by triggered
	err := a.Working("fetching "+name, func() error {
		detail, err := fn.Get(ctx)
		if err != nil {
			return err
		}
		number := ref.Version
		if ref.Alias != "" {
			alias, err := fn.Alias(ctx, ref.Alias)
			if err != nil {
				return err
			}
			number = alias.Version
		}
		now, err = versionOf(ctx, fn, detail.Function, number)
		if err != nil {
			return err
		}
		by.schedules, err = schedulesOf(ctx, t, name)
		if err != nil {
			return err
		}
		by.triggers, err = triggersOf(ctx, t, name)
		return err
	})
	if err != nil {
		return err
	}
	files, err := now.folder(name, ref, by)
	if err != nil {
		return err
	}
	if err := writeFolder(folder, files, force); err != nil {
		return err
	}
	out := pulled{Function: name, Version: now.version.Version, Folder: folder, Files: slices.Sorted(maps.Keys(files))}
	return a.Print(out, fmt.Sprintf("wrote version %d of %s to %s: %s\n", out.Version, name, folder, command.Plural(len(files), "file")))
}

// triggered is what invokes a function.
type triggered struct {
	schedules []api.NewSchedule
	triggers  manifest.Triggers
}

// folder returns the files of a folder whose deployment is the version.
func (r *running) folder(name string, ref api.Ref, by triggered) (map[string][]byte, error) {
	sources, _, err := sourcesOf(r.files)
	if err != nil {
		return nil, err
	}
	settings := map[string]any{"name": name}
	if ref.Alias != "" && ref.Alias != api.DefaultAlias {
		settings["aliases"] = []string{ref.Alias}
	}
	limits := map[string]json.RawMessage{}
	for field, value := range r.overrides {
		if slices.Contains([]string{"timeout_ms", "cpu_ms", "memory_mb", "max_concurrency"}, field) {
			limits[field] = value
		} else {
			settings[field] = value
		}
	}
	if len(limits) > 0 {
		settings["limits"] = limits
	}
	if len(by.schedules) > 0 {
		settings["schedules"] = by.schedules
	}
	if len(by.triggers.Queues) > 0 {
		settings["triggers"] = by.triggers
	}
	raw, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return nil, err
	}
	out := maps.Clone(sources)
	out[manifest.SettingsFile] = append(raw, '\n')
	return out, nil
}

// schedulesOf returns the schedules that invoke a function, as sous.json has them.
func schedulesOf(ctx context.Context, t *command.Target, function string) ([]api.NewSchedule, error) {
	var out []api.NewSchedule
	for s, err := range client.All(ctx, t.Namespace.Schedules, client.PageOptions{}) {
		if err != nil {
			return nil, err
		}
		if s.Ref == nil || s.Ref.Function != function {
			continue
		}
		n := api.NewSchedule{
			Name: s.Name, EverySeconds: s.EverySeconds, Cron: s.Cron, Timezone: s.Timezone, OverlapPolicy: s.OverlapPolicy,
			QueueLimit: s.QueueLimit, Catchup: s.Catchup, MaxCatchupTicks: s.MaxCatchupTicks, Payload: s.Payload,
		}
		if !s.Enabled {
			n.Enabled = &s.Enabled
		}
		out = append(out, n)
	}
	return out, nil
}

// writeFolder writes files below folder, or none of them if one exists with another content,
// unless force is set. Paths that lead out of the folder are refused.
func writeFolder(folder string, files map[string][]byte, force bool) error {
	for name, content := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("the bundle has the path %q, which leads out of the folder", name)
		}
		// No deployment uploads such a file: it would be a trap, such as a hook of git.
		for part := range strings.SplitSeq(name, "/") {
			if slices.Contains(alwaysIgnored, part) && name != manifest.SettingsFile && name != ignoreFile {
				return fmt.Errorf("the bundle has the path %q, which a function cannot have: nothing was written", name)
			}
		}
		old, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && (force || string(old) == string(content)):
		case err == nil:
			return fmt.Errorf("%s exists and differs; nothing was written (--force replaces it)", filepath.Join(folder, name))
		default:
			return err
		}
	}
	root, err := openFolder(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only a handle
	for name, content := range files {
		if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(name)), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(filepath.FromSlash(name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// openFolder opens a folder, which it creates if necessary. Nothing outside can be written
// through it, not even by a symbolic link in it.
func openFolder(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(folder)
}
