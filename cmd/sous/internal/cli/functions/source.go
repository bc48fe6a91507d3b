package functions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	ignore "github.com/sabhiram/go-gitignore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// ignoreFile lists, in the syntax of .gitignore, the files that are left out of a bundle.
const ignoreFile = ".sousignore"

// alwaysIgnored lists names that are left out of every bundle; an ignore file cannot
// include them.
var alwaysIgnored = []string{".git", "node_modules", ".sous", ".env", ".dev.vars", manifest.SettingsFile, ignoreFile}

// sourceDir is a function's folder on this machine. It reads the folder at each call; only
// the ignore file is read once, by openSource.
type sourceDir struct {
	root    string
	ignored *ignore.GitIgnore // the patterns of ignoreFile
	outside bool              // imports may lead out of the repository of the folder
}

// openSource opens the folder root and reads its ignore file, if there is one.
func openSource(root string) (*sourceDir, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", root)
	}
	raw, err := os.ReadFile(filepath.Join(root, ignoreFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &sourceDir{root: root, ignored: ignore.CompileIgnoreLines(strings.Split(string(raw), "\n")...)}, nil
}

// name returns the folder's own name in lower case. It fails if no function can have it.
func (s *sourceDir) name() (string, error) {
	abs, err := filepath.Abs(s.root)
	if err != nil {
		return "", err
	}
	name := strings.ToLower(filepath.Base(abs))
	if err := api.ValidateName("function", name); err != nil {
		return "", fmt.Errorf("the folder's name is not a function name: %w", err)
	}
	return name, nil
}

// skips reports whether the file or folder at rel, slash-separated, is left out.
func (s *sourceDir) skips(rel string, isDir bool) bool {
	for part := range strings.SplitSeq(rel, "/") {
		for _, name := range alwaysIgnored {
			if part == name {
				return true
			}
		}
	}
	// A pattern such as "build/" is meant for folders only.
	return s.ignored.MatchesPath(rel) || isDir && s.ignored.MatchesPath(rel+"/")
}

// walk calls visit for each file and folder that is not left out, the root (".") first.
func (s *sourceDir) walk(visit func(rel string, d fs.DirEntry) error) error {
	return filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if rel != "." && s.skips(rel, d.IsDir()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return visit(rel, d)
	})
}

// files returns the files of the bundle by slash-separated path. It stops with
// CodeBodyLimit at the limits of a bundle, before it reads the file that exceeds them: the
// folder may be a home directory. It refuses symbolic links, which may lead out of the
// folder. CodeValidationBundle for a path or a file that a bundle cannot have.
func (s *sourceDir) files() (map[string][]byte, error) {
	out := map[string][]byte{}
	size := int64(0)
	err := s.walk(func(rel string, d fs.DirEntry) error {
		if d.IsDir() {
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			return api.Errorf(api.CodeValidationBundle, "%s is a symbolic link; name it in %s or replace it with the file", rel, ignoreFile)
		}
		if !d.Type().IsRegular() {
			return api.Errorf(api.CodeValidationBundle, "%s is not a regular file; name it in %s or replace it", rel, ignoreFile)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		if size > api.MaxBundleBytes || len(out) >= api.MaxBundleFiles {
			return api.Errorf(api.CodeBodyLimit, "%s holds more than %s or %d files; name in %s what does not belong to the function",
				s.root, command.SizeText(api.MaxBundleBytes), api.MaxBundleFiles, ignoreFile)
		}
		out[rel], err = os.ReadFile(filepath.Join(s.root, filepath.FromSlash(rel)))
		return err
	})
	usual := hasFile(s.root, bundle.EntryJS, bundle.EntryTS) || isFunctionFolder(s.root)
	if err != nil && usual {
		return nil, err
	}
	if err != nil || len(out) == 0 { // without a module, the folder is probably the wrong one
		return nil, api.Errorf(api.CodeValidationBundle, "%s has no file of a function: write %s or %s, or run sous fn init %s", s.root, bundle.EntryJS, bundle.EntryTS, s.root)
	}
	return out, bundle.Validate(out)
}
