package bundler

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	esbuild "github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
)

// stdin is how esbuild names the module that exports a named handler: see build.options.
const stdin = "<stdin>"

// problems returns the errors of a build as one error with a field for each.
func (b *build) problems(messages []esbuild.Message) error {
	fields := make([]api.FieldError, 0, len(messages))
	for _, m := range messages {
		field := api.FieldError{Path: b.folder.Entry, Message: b.problem(m)}
		if m.Location != nil && m.Location.File != stdin {
			field.Path, field.Line, field.Column = plainSource(m.Location.File), m.Location.Line, column(m.Location)
			field.Excerpt = bundle.Excerpt(m.Location.LineText, field.Column)
		}
		fields = append(fields, field)
	}
	first := fields[0]
	return api.Errorf(api.CodeValidationSource, "%s: %s", place(first.Path, first.Line, first.Column), first.Message).WithFields(fields...)
}

// column returns the column of a position, which esbuild counts in bytes from 0.
func column(at *esbuild.Location) int { return bundle.Column(at.LineText, at.Column) }

// place names a position, or a file if line is 0.
func place(file string, line, column int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// problem returns the text of one error: for an import that was not found, with what to do.
func (b *build) problem(m esbuild.Message) string {
	if r, ok := m.Detail.(refused); ok {
		return r.text(m.Location)
	}
	if strings.HasPrefix(m.Text, "No matching export") && m.Location != nil && m.Location.File == stdin {
		return fmt.Sprintf("the module exports no handler: expected `export function %s(event, ctx) { … }`", b.folder.Handler)
	}
	quoted, ok := strings.CutPrefix(m.Text, "Could not resolve ")
	path := strings.Trim(quoted, `"`)
	switch {
	case !ok:
		return bundle.CompilerText(m.Text, "")
	case strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../"):
		return fmt.Sprintf("there is no file for the import %q", path)
	case isPrivatePath(path):
		return fmt.Sprintf("there is no file for the import %q; tsconfig.json (paths) or package.json (imports) may define such names", path)
	}
	importer := ""
	if m.Location != nil {
		importer = m.Location.File
	}
	if installed(packageName(path), filepath.Dir(filepath.Join(b.root, filepath.FromSlash(importer)))) {
		return fmt.Sprintf("the package %q has no module %q%s", packageName(path), path, reason(m.Notes))
	}
	return b.missing(packageName(path), importer)
}

// reason returns why a package that is installed has no such module, as esbuild found.
func reason(notes []esbuild.Note) string {
	for _, n := range notes {
		if text := strings.TrimSuffix(n.Text, ":"); text != "" && !strings.HasPrefix(text, "You can mark") {
			return ": " + text
		}
	}
	return ""
}

// missing says how to install a package.
func (b *build) missing(name, importer string) string {
	from := ""
	if packageFolder(importer) != "" {
		from = fmt.Sprintf(", which %s imports,", plainSource(importer))
	}
	own := manifests{}.around(b.root)
	switch {
	case own != nil && lists(own, name) && !b.hasPackages():
		return fmt.Sprintf("the package %q%s is not installed: there is no %s; run `npm install` in %s", name, from, packagesFolder, b.shown(own.dir))
	case own != nil && lists(own, name):
		return fmt.Sprintf("the package %q%s is not installed; run `npm install` in %s", name, from, b.shown(own.dir))
	}
	return fmt.Sprintf("the package %q%s is not installed; run `npm install %s` in %s", name, from, name, b.folder.Root)
}

// lists reports whether m names the package as a dependency.
func lists(m *manifest, name string) bool {
	_, one := m.Dependencies[name]
	_, other := m.DevDependencies[name]
	return one || other
}

// shown returns the path of dir as the user wrote that of the folder.
func (b *build) shown(dir string) string {
	if rel, err := filepath.Rel(b.root, dir); err == nil {
		return filepath.Join(b.folder.Root, rel)
	}
	return dir
}

// hasPackages reports whether the folder, or one above it, has packages installed.
func (b *build) hasPackages() bool {
	return above(b.root, func(dir string) bool { return isFolder(filepath.Join(dir, packagesFolder)) })
}

// isPrivatePath reports whether path is not one of a package: a project defines such names itself.
func isPrivatePath(path string) bool {
	return strings.HasPrefix(path, "@/") || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "#") || strings.HasPrefix(path, "/")
}

// installed reports whether modules in the folder from find the package.
func installed(name, from string) bool {
	return above(from, func(dir string) bool { return isFolder(filepath.Join(dir, packagesFolder, filepath.FromSlash(name))) })
}

// above reports whether holds is true for dir or a folder above it.
func above(dir string, holds func(string) bool) bool {
	for ; ; dir = filepath.Dir(dir) {
		if holds(dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// warnings returns esbuild's warnings about the folder's own files. Those about packages are
// for their authors.
func (b *build) warnings(messages []esbuild.Message) []string {
	var out []string
	for _, m := range messages {
		switch {
		case m.Location == nil:
			out = append(out, bundle.CompilerText(m.Text, ""))
		case packageFolder(m.Location.File) == "":
			out = append(out, place(m.Location.File, m.Location.Line, column(m.Location))+": "+bundle.CompilerText(m.Text, ""))
		}
	}
	return out
}
