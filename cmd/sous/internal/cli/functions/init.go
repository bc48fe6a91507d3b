package functions

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/bundle"
)

// templates holds the files that init writes. types.d.ts declares everything that a function
// can use; a test compares it with the globals of the sandbox child.
//
//go:embed template
var templates embed.FS

func (a commands) fnInitCommand() *cobra.Command {
	var typescript bool
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write the files of a new function",
		Long:  "Write the files of a new function: its source, its manifest, .sousignore and README.md, and for editors types.d.ts with its tsconfig.json or jsconfig.json. Existing files are not overwritten.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			entry := bundle.EntryJS
			if typescript {
				entry = bundle.EntryTS
			}
			name, err := (&sourceDir{root: args[0]}).name()
			if err != nil {
				return fmt.Errorf("name the folder as the function: %w", err)
			}
			files, err := initialFiles(name, entry)
			if err != nil {
				return err
			}
			if err := writeNew(args[0], files); err != nil {
				return err
			}
			a.Note("wrote %s; next: sous fn deploy %s", args[0], args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&typescript, "ts", false, "TypeScript instead of JavaScript")
	return cmd
}

// initialFiles returns the files of a new function, by name. entry is bundle.EntryJS or
// bundle.EntryTS; its extension selects the language. .sousignore excludes the files that are
// for editors only, so that they are not part of the bundle.
func initialFiles(name, entry string) (map[string]string, error) {
	language := strings.TrimPrefix(filepath.Ext(entry), ".")
	config := language + "config.json" // what editors read
	from := map[string]string{
		entry:               "template/" + language + "/" + entry,
		config:              "template/" + language + "/" + config,
		"types.d.ts":        "template/types.d.ts",
		bundle.ManifestFile: "template/" + bundle.ManifestFile,
		ignoreFile:          "template/sousignore",
	}
	out := map[string]string{}
	for to, path := range from {
		raw, err := templates.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out[to] = string(raw)
	}
	readme, err := template.ParseFS(templates, "template/README.md")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := readme.Execute(&b, struct{ Name, Entry string }{name, entry}); err != nil {
		return nil, err
	}
	out["README.md"] = b.String()
	return out, nil
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
