package functions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// deployAtOnce is the number of functions that sous deploy publishes at the same time.
const deployAtOnce = 4

// deployCommand returns sous deploy.
func (a commands) deployCommand() *cobra.Command {
	var o folderOptions
	cmd := &cobra.Command{
		Use:   "deploy [DIR]",
		Short: "Deploy every function of a folder tree that changed",
		Long: `Deploy every function of a folder tree that changed, several at a time, and print a
summary. A function is a folder with a sous.json or a manifest.json; folders below it belong
to it. A DIR without any of these is a function if it has a function.js or a function.ts. Each
is deployed as by sous fn deploy. The command goes on after a failure, and then fails.`,
		Example: `  sous deploy
  sous deploy services --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := folderOf(args)
			folders, bare, err := functionFolders(root)
			if err != nil {
				return err
			}
			a.noteBare(bare)
			if len(folders) == 0 {
				return noFunction(root)
			}
			t, err := a.Target()
			if err != nil {
				return err
			}
			return a.deployTree(cmd.Context(), t, folders, o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would change, and publish nothing")
	RegisterAllowOutside(cmd.Flags(), &o.outside)
	a.RegisterRemote(cmd.Flags())
	return cmd
}

// functionFolders returns the folders of functions in and below root, in order. A root without
// any is the function itself if it has a module with a usual name. bare are the other folders
// that have such a module: they may be functions whose settings were forgotten.
func functionFolders(root string) (folders, bare []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path != root && slices.Contains(alwaysIgnored, d.Name()) {
			return fs.SkipDir
		}
		if isFunctionFolder(path) {
			folders = append(folders, path)
			return fs.SkipDir
		}
		if hasFile(path, bundle.EntryJS, bundle.EntryTS) {
			bare = append(bare, path)
		}
		return nil
	})
	if err != nil || len(folders) > 0 || len(bare) == 0 || bare[0] != root {
		return folders, bare, err
	}
	return bare[:1], bare[1:], nil
}

// noteBare names folders with a module of a function that are not deployed.
func (a commands) noteBare(bare []string) {
	if len(bare) == 0 {
		return
	}
	which, outcome := bare[0]+" has", "it is"
	if more := len(bare) - 1; more > 0 {
		which, outcome = fmt.Sprintf("%s and %s more have", bare[0], command.Plural(more, "folder")), "they are"
	}
	settings := filepath.Join(bare[0], manifest.SettingsFile)
	a.Note("%s a module of a function but neither a %s nor a %s, so %s not deployed; to deploy %s, write {} to %s",
		which, manifest.SettingsFile, bundle.ManifestFile, outcome, bare[0], settings)
}

// isFunctionFolder reports whether a folder has settings or a manifest.
func isFunctionFolder(path string) bool {
	return hasFile(path, manifest.SettingsFile, bundle.ManifestFile)
}

// hasFile reports whether a folder has a file with one of the names.
func hasFile(folder string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

// noFunction returns the error of a folder tree without functions.
func noFunction(root string) error {
	return fmt.Errorf("%s has no function: no folder in it has a %s or a %s, and it has neither %s nor %s", root, manifest.SettingsFile, bundle.ManifestFile, bundle.EntryJS, bundle.EntryTS)
}

// The outcomes of a folder in the summary.
const (
	treePublished = "published"
	treeUnchanged = "unchanged"
	treeWould     = "would change"
	treeFailed    = "failed"
)

// treeResult is the outcome of one folder.
type treeResult struct {
	Folder   string   `json:"folder"`
	Function string   `json:"function,omitempty"`
	Outcome  string   `json:"outcome"`
	Version  int64    `json:"version,omitempty"`
	Changes  []change `json:"changes,omitempty"`
	URL      string   `json:"url,omitempty"`
	Error    string   `json:"error,omitempty"`

	failure error // of Error
}

// failedWith sets the error of a folder.
func (r treeResult) failedWith(err error) treeResult {
	r.Error, r.failure = err.Error(), err
	return r
}

// deployTree deploys the folders, deployAtOnce at a time, and prints a table of the outcomes.
func (a commands) deployTree(ctx context.Context, t *command.Target, folders []string, o folderOptions) error {
	o.among = folders
	results := make([]treeResult, len(folders))
	quiet := commands{a.Silent()} // the steps of several functions would mix
	doing := "deploying "
	if o.dryRun {
		doing = "comparing "
	}
	_ = a.Counting(doing+command.Plural(len(folders), "function"), len(folders), func(done func() int64) error {
		var workers errgroup.Group
		workers.SetLimit(deployAtOnce)
		for i, folder := range folders {
			workers.Go(func() error {
				results[i] = quiet.deployFolder(ctx, t, folder, o)
				a.Note("[%d/%d] %s %s", done(), len(folders), folder, results[i].Outcome)
				return nil
			})
		}
		return workers.Wait()
	}) // the failures are in the results
	failed := 0
	for _, r := range results {
		if r.Outcome == treeFailed {
			failed++
		}
	}
	err := command.PrintList(a.App, results, []string{"FOLDER", "FUNCTION", "OUTCOME", "VERSION", "CHANGES"}, treeRow)
	switch {
	case err != nil:
		return err
	case failed > 0:
		return errors.Join(failures(results, len(folders), failed)...)
	}
	return nil
}

// failures returns an error for each folder that failed, behind one with their number.
func failures(results []treeResult, all, failed int) []error {
	out := []error{fmt.Errorf("%d of %s not deployed", failed, command.Plural(all, "function"))}
	for _, r := range results {
		if r.Outcome == treeFailed {
			out = append(out, fmt.Errorf("%s: %s", r.Folder, command.ErrorText(r.failure)))
		}
	}
	return out
}

func treeRow(r treeResult) []string {
	version := "-"
	if r.Version > 0 {
		version = fmt.Sprint(r.Version)
	}
	files, settings := 0, 0
	for _, c := range r.Changes {
		switch {
		case c.How == howKept:
		case c.Kind == changeFile:
			files++
		default:
			settings++
		}
	}
	changes := "-"
	if files+settings > 0 {
		changes = command.Plural(files, "file") + ", " + command.Plural(settings, "setting")
	}
	return []string{r.Folder, r.Function, r.Outcome, version, changes}
}

// folderOptions say how deployFolder deploys.
type folderOptions struct {
	dryRun  bool     // only compare
	local   bool     // as deployment.local
	outside bool     // as deployment.outside
	among   []string // all folders of the tree, sorted
}

// deployFolder deploys one folder if it differs from what runs.
func (a commands) deployFolder(ctx context.Context, t *command.Target, folder string, o folderOptions) treeResult {
	out := treeResult{Folder: folder, Outcome: treeFailed}
	d, err := newDeployment(folder, "", "")
	if err != nil {
		return out.failedWith(err)
	}
	if err := sameName(folder, o.among); err != nil {
		return out.failedWith(err)
	}
	d.bundle, d.local, d.outside = true, o.local, o.outside
	p, err := a.plan(ctx, t, d)
	if err != nil {
		return out.failedWith(err)
	}
	out.Function, out.Changes = p.name, p.changes
	if o.dryRun {
		out.Outcome = treeUnchanged
		if p.differs() {
			out.Outcome = treeWould
		}
		return out
	}
	published, err := p.run(ctx, t)
	if err != nil {
		return out.failedWith(original(p.bundled, d.source.root, err))
	}
	out.Version, out.URL, out.Outcome = published.Version, published.URL, treeUnchanged
	if published.Created {
		out.Outcome = treePublished
	}
	return out
}

// sameName fails for a function whose name an earlier one of the folders has, too: the two
// would replace each other. A folder that cannot be read has no name here.
func sameName(folder string, folders []string) error {
	name, err := functionName(folder)
	if err != nil {
		return nil //nolint:nilerr // the deployment reports it
	}
	for _, other := range folders {
		if other == folder {
			return nil
		}
		if same, err := functionName(other); err == nil && same == name {
			return fmt.Errorf("the function of %s has the name %s too; set \"name\" in %s", shownPath(other), name, manifest.SettingsFile)
		}
	}
	return nil
}

// functionName returns the name under which a folder is deployed.
func functionName(folder string) (string, error) {
	d, err := newDeployment(folder, "", "")
	if err != nil {
		return "", err
	}
	settings, err := d.source.settings()
	if err != nil {
		return "", err
	}
	name, _, err := d.names(settings)
	return name, err
}
