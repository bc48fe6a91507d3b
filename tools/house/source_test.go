package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A source is one file of the repository that git tracks or would track.
type source struct {
	path string // relative to the root of the repository, with slashes
	text []byte
	file *ast.File // nil unless the file is Go
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// folder returns the folder of the file, "." for the root.
func (s *source) folder() string { return filepath.ToSlash(filepath.Dir(s.path)) }

var (
	positions = token.NewFileSet()           // of all sources
	readAll   = sync.OnceValues(readSources) // read once for all tests
)

// sources returns the Go, Lua and Markdown files of the repository.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := readAll()
	if err != nil {
		t.Fatalf("reading the repository: %v", err)
	}
	return all
}

// root is the root of the repository, from this folder.
const root = "../.."

func readSources() ([]*source, error) {
	// Files that are not ignored rather than tracked ones, so that a new file is
	// examined before it is committed.
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.go", "*.lua", "*.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	var all []*source
	for name := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		path := string(name)
		text, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) { // deleted, and the deletion is not committed yet
			continue
		}
		if err != nil {
			return nil, err
		}
		s := &source{path: path, text: text}
		if strings.HasSuffix(path, ".go") {
			s.file, err = parser.ParseFile(positions, path, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
		}
		all = append(all, s)
	}
	return all, nil
}
