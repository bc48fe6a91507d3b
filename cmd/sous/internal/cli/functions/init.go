package functions

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
)

// templates holds the files that init writes. types.d.ts declares everything that a function
// can use; a test compares it with the globals of the sandbox child.
//
//go:embed template
var templates embed.FS

// The templates with files of their own in the folder template. The files beside these
// folders belong to every function.
const (
	templateJS = "js" // the default
	templateTS = "ts"
)

func templateNames() []string {
	return []string{templateJS, templateTS, "hono", "api", "cron", "queue-worker", "mcp", "agent"}
}

func (a commands) fnInitCommand() *cobra.Command {
	var typescript bool
	var kind string
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write the files of a new function",
		Long: `Write the files of a new function: its source, its manifest, its settings (sous.json),
.sousignore and README.md, and for editors types.d.ts with its tsconfig.json or jsconfig.json. Existing files are not
overwritten. Templates:

  js, ts         a function that answers requests, in JavaScript or TypeScript
  hono           a web application with Hono
  api            a JSON API with validated input
  cron           a function for a schedule
  queue-worker   a function for jobs, with progress and checkpoints
  mcp            a server for the Model Context Protocol
  agent          a model that calls tools

All but js have a package.json with pinned versions.`,
		Example: `  sous fn init hello
  sous fn init shop --template hono`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if typescript {
				if cmd.Flags().Changed("template") && kind != templateTS {
					return fmt.Errorf("--ts and --template %s exclude each other", kind)
				}
				kind = templateTS
			}
			if !slices.Contains(templateNames(), kind) {
				return fmt.Errorf("--template %q: want one of %s", kind, strings.Join(templateNames(), ", "))
			}
			name, err := (&sourceDir{root: args[0]}).name()
			if err != nil {
				return fmt.Errorf("name the folder as the function: %w", err)
			}
			files, err := initialFiles(name, kind)
			if err != nil {
				return err
			}
			if err := writeNew(args[0], files); err != nil {
				return err
			}
			next := "sous fn deploy " + args[0]
			if strings.Contains(files["package.json"], `"dependencies"`) {
				next = "npm install --prefix " + args[0] + ", then " + next
			}
			a.Note("wrote %s; next: %s", args[0], next)
			return nil
		},
	}
	cmd.Flags().BoolVar(&typescript, "ts", false, "the same as --template ts")
	cmd.Flags().StringVar(&kind, "template", templateJS, "what to begin with: "+strings.Join(templateNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templateNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// initialFiles returns the files of a new function, by name: those of the template, and the
// common ones that it does not replace.
func initialFiles(name, kind string) (map[string]string, error) {
	from := map[string]string{
		"types.d.ts":          "template/types.d.ts",
		bundle.ManifestFile:   "template/" + bundle.ManifestFile,
		ignoreFile:            "template/sousignore",
		"README.md":           "template/README.md",
		manifest.SettingsFile: "template/sous.json",
	}
	if kind != templateJS {
		from["tsconfig.json"] = "template/" + templateTS + "/tsconfig.json"
	}
	own, err := templates.ReadDir("template/" + kind)
	if err != nil {
		return nil, err
	}
	for _, f := range own {
		from[f.Name()] = "template/" + kind + "/" + f.Name()
	}
	values := struct{ Name, Entry string }{name, bundle.EntryTS}
	if kind == templateJS {
		values.Entry = bundle.EntryJS
	}
	out := map[string]string{schemaFile: string(manifest.SettingsSchema(true))}
	for to, path := range from {
		if to == "README.md" || to == "package.json" || to == manifest.SettingsFile {
			out[to], err = filled(path, values)
		} else {
			var raw []byte
			raw, err = templates.ReadFile(path)
			out[to] = string(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// schemaFile is the schema of sous.json, for editors. Its folder is no part of a bundle.
const schemaFile = ".sous/sous.schema.json"

// filled returns the file at path with values in place of its actions.
func filled(path string, values any) (string, error) {
	t, err := template.ParseFS(templates, path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, values)
	return b.String(), err
}

// writeNew writes files to dir, or none of them if one exists. It creates dir if necessary.
// It does not remove the files that it wrote before an error such as a full disk.
func writeNew(dir string, files map[string]string) error {
	for name := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s exists already; nothing was written", path)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := writeExclusive(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// writeExclusive creates the file at path. It fails if path exists.
func writeExclusive(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}
