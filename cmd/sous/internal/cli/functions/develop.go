package functions

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// Development deploys the functions of folders to a server on this machine, and deploys each
// again when it changes.
type Development struct {
	commands
	// AllowOutside permits imports that lead out of the repository of a function's folder.
	AllowOutside bool

	target *command.Target
	roots  []string // absolute paths of the folders that the user named

	functions map[string]*sourceDir // by folder: those that were found last
	changed   map[string]bool       // the folders to deploy
}

// OpenDevelopment returns the development of the functions in and below the folders dirs. It
// fails if a folder does not exist or has no function.
func OpenDevelopment(a *command.App, dirs []string) (*Development, error) {
	d := &Development{commands: commands{a}, functions: map[string]*sourceDir{}, changed: map[string]bool{}}
	for _, dir := range dirs {
		if _, err := openSource(dir); err != nil {
			return nil, err
		}
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		path, err = filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		if functions, _ := functionsBelow(path); len(functions) == 0 {
			return nil, fmt.Errorf("%w; sous fn init %s writes one", noFunction(dir), filepath.Join(dir, "hello"))
		}
		d.roots = append(d.roots, path)
	}
	return d, nil
}

// Run deploys to the server at url until ctx ends. The tenant and the namespace are those of
// the environment, else the default ones. Run reports errors of deployments and goes on. It
// fails if a folder cannot be watched.
func (d *Development) Run(ctx context.Context, url string) error {
	var err error
	d.target, err = command.LocalTarget(url)
	if err != nil {
		return err
	}
	return watch{folders: d.folders, concerns: d.concerns, act: d.deployChanged}.run(ctx)
}

// folders finds the functions, and returns the folders to watch. The parent of a root is
// watched too: version control may remove a root and create it again.
func (d *Development) folders() ([]string, error) {
	found := map[string]*sourceDir{}
	var out []string
	for _, root := range d.roots {
		functions, folders := functionsBelow(root)
		out = append(append(out, filepath.Dir(root)), folders...)
		for _, source := range functions {
			found[source.root] = source
		}
	}
	for folder := range d.functions {
		if found[folder] == nil {
			d.Note("%s is gone; its function stays deployed", shownPath(folder))
			delete(d.changed, folder)
		}
	}
	for folder := range found {
		if d.functions[folder] == nil {
			d.changed[folder] = true
		}
	}
	d.functions = found
	return out, nil
}

// functionsBelow returns the functions in and below a folder, and all folders that may hold a
// file of one or become one. A folder without any is the function itself if it has a module
// with a usual name. A folder that is gone or cannot be read has no function.
func functionsBelow(root string) (functions []*sourceDir, folders []string) {
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // documented
		}
		if path != root && slices.Contains(alwaysIgnored, entry.Name()) {
			return fs.SkipDir
		}
		folders = append(folders, path)
		if !isFunctionFolder(path) {
			return nil
		}
		if source, err := openSource(path); err == nil {
			below, _ := source.folders()
			functions, folders = append(functions, source), append(folders, below...)
		}
		return fs.SkipDir
	})
	if len(functions) == 0 {
		if source, err := openSource(root); err == nil && source.entry("") != "" {
			functions = append(functions, source)
		}
	}
	return functions, folders
}

// concerns reports whether a change may change a function or the set of functions, and
// remembers the function.
func (d *Development) concerns(path string) bool {
	for folder, source := range d.functions {
		if _, inside := source.relative(path); inside {
			if source.concernsLocal(path) {
				d.changed[folder] = true
				return true
			}
			return false
		}
	}
	for _, root := range d.roots {
		rel, err := filepath.Rel(root, path)
		if err == nil && filepath.IsLocal(rel) {
			return true // a folder may have come, or become a function
		}
	}
	return false
}

// deployChanged deploys the functions that changed, deployAtOnce at a time, and prints a line
// for each.
func (d *Development) deployChanged(ctx context.Context) error {
	var folders []string
	for folder := range d.changed {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	all := slices.Sorted(maps.Keys(d.functions))
	clear(d.changed)
	start := time.Now()
	results := make([]treeResult, len(folders))
	quiet := commands{d.Silent()} // the steps of several functions would mix
	var workers errgroup.Group
	workers.SetLimit(deployAtOnce)
	for i, folder := range folders {
		workers.Go(func() error {
			results[i] = quiet.deployFolder(ctx, d.target, folder, folderOptions{local: true, outside: d.AllowOutside, among: all})
			return nil
		})
	}
	_ = workers.Wait() // the failures are in the results
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt ends the development; it is no error
	}
	for _, r := range results {
		if r.failure != nil {
			d.Report(fmt.Errorf("%s: %w", shownPath(r.Folder), r.failure))
			continue
		}
		_, _ = fmt.Fprint(d.Stdout, developedText(r, time.Since(start))) // a terminal that is gone is no failure of a function
	}
	return nil
}

// developedText returns the line of a deployed function, and the lines of its changes.
func developedText(r treeResult, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s version %d %s in %d ms  %s\n", r.Function, r.Version, r.Outcome, took.Milliseconds(), r.URL)
	if r.Outcome == treePublished {
		for _, c := range shownChanges(r.Changes) {
			b.WriteString(c + "\n")
		}
	}
	return command.PrintableLines(b.String())
}

// shownPath returns a path as the user would type it: from the working folder if it is below
// that, else as it is.
func shownPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}
