package bundler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	esbuild "github.com/evanw/esbuild/pkg/api"
)

// reach is the set of files that a bundle may contain: a function's folder may be someone
// else's work, and a bundle is published. All paths are free of symbolic links.
type reach struct {
	any     bool     // Folder.AllowOutside
	private string   // Folder.Private, "" for none
	home    string   // the user's, "" if it is not known
	root    string   // of the repository: see repository
	folders []string // of packages, and each node_modules of a folder above the function
}

// newReach returns the reach of the function f, whose folder is root.
func newReach(f Folder, root string) *reach {
	r := &reach{any: f.AllowOutside, private: resolved(f.Private)}
	if home, err := os.UserHomeDir(); err == nil {
		r.home = resolved(home)
	}
	r.root = r.repository(root)
	above(root, func(dir string) bool {
		r.folders = append(r.folders, resolved(filepath.Join(dir, packagesFolder)))
		return false
	})
	return r
}

// repository returns the folder that the function in dir belongs to: the nearest one that has
// .git, workspaces or pnpm-workspace.yaml, else the nearest one with a package.json, else dir
// itself. The user's home folder and those above it are none.
func (r *reach) repository(dir string) string {
	found, nearest := "", dir
	manifested := false
	above(dir, func(at string) bool {
		if r.home != "" && within(at, r.home) {
			return true
		}
		if !manifested && exists(filepath.Join(at, "package.json")) {
			nearest, manifested = at, true
		}
		if exists(filepath.Join(at, ".git")) || exists(filepath.Join(at, "pnpm-workspace.yaml")) || hasWorkspaces(at) {
			found = at
		}
		return found != ""
	})
	if found != "" {
		return found
	}
	return nearest
}

// addPackage adds the folder of the package that an import of name in a module of the folder
// from means. It may be a link to a folder elsewhere, such as one of npm link or of a store of
// pnpm; that folder must be a package itself.
func (r *reach) addPackage(name, from string) {
	if name == "" || !filepath.IsLocal(filepath.FromSlash(name)) {
		return
	}
	above(from, func(dir string) bool {
		at, err := filepath.EvalSymlinks(filepath.Join(dir, packagesFolder, filepath.FromSlash(name)))
		if err != nil {
			return false
		}
		if exists(filepath.Join(at, "package.json")) && (r.home == "" || !within(at, r.home)) {
			r.folders = append(r.folders, at)
		}
		return true
	})
}

// refusal returns why a bundle may not contain the file at path, "" if it may.
func (r *reach) refusal(path string) string {
	path = resolved(path)
	switch {
	case r.private != "" && within(r.private, path):
		return "leads to the settings of sous, which no function may contain"
	case r.any || within(r.root, path):
		return ""
	}
	for _, folder := range r.folders {
		if within(folder, path) {
			return ""
		}
	}
	return fmt.Sprintf("leads to %s, which is outside of %s: move the file there, or allow it by --allow-outside", path, r.root)
}

// refused is the Detail of a message of esbuild about a file that a bundle may not contain.
type refused string

// refuse returns the error of an import that leads to such a file.
func refuse(why string) esbuild.OnLoadResult {
	return esbuild.OnLoadResult{Errors: []esbuild.Message{{Text: why, Detail: refused(why)}}}
}

// text returns the message with the import as the source has it; at is nil for an entry.
func (r refused) text(at *esbuild.Location) string {
	if at == nil || at.File == stdin {
		return "the entry " + string(r)
	}
	name := "of line " + fmt.Sprint(at.Line)
	if end := at.Column + at.Length; at.Column >= 0 && at.Length > 0 && end <= len(at.LineText) {
		name = at.LineText[at.Column:end]
	}
	return "the import " + name + " " + string(r)
}

// resolved returns path without symbolic links; a path of no file stays as it is.
func resolved(path string) string {
	if path == "" {
		return ""
	}
	if plain, err := filepath.EvalSymlinks(path); err == nil {
		return plain
	}
	return filepath.Clean(path)
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && (rel == "." || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)))
}

// hasWorkspaces reports whether the package.json of dir names workspaces.
func hasWorkspaces(dir string) bool {
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return false
	}
	var m struct {
		Workspaces json.RawMessage `json:"workspaces"`
	}
	return json.Unmarshal(raw, &m) == nil && len(m.Workspaces) > 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
