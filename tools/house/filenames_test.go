package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileName finds the names of Go files and scripts in a comment, with the folders before
// them. A name with a placeholder, such as global_NAME.go, is no name of a file.
var fileName = regexp.MustCompile("(?:^|[\\s(\"`])([a-z0-9_][a-z0-9_/]*\\.(?:go|lua))\\b")

// TestPackageCommentsNameFiles requires that each file which the comment of a package names
// exists. A name without a folder is that of a file of the package, or of a script. A name
// with a folder is the end of a path: child/loop.go is invoker/sandbox/child/loop.go.
func TestPackageCommentsNameFiles(t *testing.T) {
	t.Parallel()
	paths, names := map[string]bool{}, 0
	for _, s := range sources(t) {
		paths[s.path] = true
		// The ends of the path too, but not the bare name, which does not tell the folder.
		for end := s.path; strings.Count(end, "/") > 0; {
			paths[end] = true
			_, end, _ = strings.Cut(end, "/")
		}
	}
	for _, s := range sources(t) {
		if s.file == nil || s.file.Doc == nil {
			continue
		}
		for _, found := range fileName.FindAllStringSubmatch(s.file.Doc.Text(), -1) {
			name := found[1]
			names++
			if !paths[path.Join(s.folder(), name)] && !paths[name] && !paths["lua/"+name] && !paths["lua/include/"+name] {
				t.Errorf("%s: the comment of the package names %s, want the name of a file of the package or a path from the root",
					s.path, name)
			}
		}
	}
	if names < 50 {
		t.Errorf("examined %d names of files, want at least 50", names)
	}
}

// pagePath finds the paths of files and folders that a page quotes.
var pagePath = regexp.MustCompile("`([a-z0-9_]+/[A-Za-z0-9_./-]*)`")

// symbol is the name in a package that follows its path, as in storage/statestore.Store.
var symbol = regexp.MustCompile(`\.[A-Z]\w*$`)

// weather is the example of a host call in CONTRIBUTING.md, which has no files.
var weather = regexp.MustCompile(`/(global_)?weather\.(go|js)$`)

// TestPagesNameFiles requires that each path exists which a page quotes and which begins with a
// folder of the repository.
func TestPagesNameFiles(t *testing.T) {
	t.Parallel()
	folders := map[string]bool{}
	for _, s := range sources(t) {
		if top, _, ok := strings.Cut(s.path, "/"); ok {
			folders[top] = true
		}
	}
	paths := 0
	for _, s := range sources(t) {
		if !strings.HasSuffix(s.path, ".md") || strings.Contains(s.path, "testdata/") {
			continue
		}
		for _, found := range pagePath.FindAllStringSubmatch(string(s.text), -1) {
			name := symbol.ReplaceAllString(found[1], "")
			top, _, _ := strings.Cut(name, "/")
			if !folders[top] || weather.MatchString(name) {
				continue
			}
			paths++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s: got %s, want a path that exists: %v", s.path, name, err)
			}
		}
	}
	if paths < 200 {
		t.Errorf("examined %d paths, want at least 200", paths)
	}
}
