// Package bundler joins the modules of a function's folder and the packages of
// node_modules that they import into one module for the upload.
//
// The module keeps its imports of Node.js built-in modules, under names with the prefix
// "node:", and syntax that the sandbox has to lower: the sandbox compiles it as it compiles
// any uploaded module. A source map at the end of the module leads from there to the files
// of the folder and of the packages, so that stacks name those.
package bundler

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	esbuild "github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/api"
)

// Output is the name of the bundled module in an upload.
const Output = "bundled.js"

// A Folder is a function's folder and the module in it to start from.
type Folder struct {
	Root    string
	Entry   string // slash-separated, below Root
	Handler string // the export to keep if it is not the default export
	// Ignored reports whether the file of that slash-separated path below Root is not part
	// of the function. It is not called for files of packages.
	Ignored func(path string) bool
	// AllowOutside permits files outside of the repository of the folder: see reach.
	AllowOutside bool
	// Private is a folder whose files are always refused, "" for none.
	Private string
}

// A Bundle is a bundled module and its contents.
type Bundle struct {
	Code     []byte    // the module, with its source map in the last line
	Bytes    int64     // of the module without its source map
	OwnBytes int64     // of those, from the folder itself
	Packages []Package // largest first
	Warnings []string  // about the folder's own files
	mapping  []byte
}

// Make bundles f. It returns nil without an error if f needs no bundling: if no package, no
// other file than modules and JSON, and no file outside of the folder is reachable from the
// entry. Such a folder is uploaded as it is, also if it has errors, which the server
// reports. Other errors are CodeValidationSource with a field for each place.
func Make(f Folder) (*Bundle, error) {
	root, err := realPath(f.Root)
	if err != nil {
		return nil, err
	}
	b := &build{folder: f, root: root, manifests: manifests{}, useMain: map[string]string{}, reach: newReach(f, root)}
	result := b.run()
	if len(b.required) > 0 && len(result.Errors) == 0 {
		// Some packages are also used through require: see build.preferMain.
		b.useMain, b.required = b.required, nil
		result = b.run()
	}
	if !b.needed {
		return nil, nil
	}
	if len(result.Errors) > 0 {
		return nil, b.problems(result.Errors)
	}
	out, err := b.bundle(result)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", f.Entry, err)
	}
	return out, nil
}

// realPath returns the absolute path of dir without symbolic links: esbuild names files so,
// and their names are made relative to it.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// options are those of esbuild. Lowering syntax is left to the sandbox, which knows what it
// lacks. Names are not shortened: stacks and Function.name show them.
func (b *build) options() esbuild.BuildOptions {
	o := esbuild.BuildOptions{
		Bundle:            true,
		Write:             false,
		Metafile:          true,
		AbsWorkingDir:     b.root,
		Outfile:           filepath.Join(b.root, Output),
		AllowOverwrite:    true, // nothing is written
		LogLevel:          esbuild.LogLevelSilent,
		LogLimit:          20,
		Format:            esbuild.FormatESModule,
		Target:            esbuild.ESNext,
		Supported:         map[string]bool{"from-base64": false}, // of binary files; the sandbox cannot lower a call
		Platform:          esbuild.PlatformBrowser,               // for the "browser" maps of package.json
		Conditions:        conditions(),
		MainFields:        []string{"module", "browser", "main"},
		ResolveExtensions: []string{".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".cjs", ".json"},
		Loader:            loaders(),
		JSX:               esbuild.JSXAutomatic,
		Define:            map[string]string{"process.env.NODE_ENV": `"production"`},
		Charset:           esbuild.CharsetUTF8,
		Sourcemap:         esbuild.SourceMapExternal,
		SourcesContent:    esbuild.SourcesContentExclude,
		Plugins:           []esbuild.Plugin{{Name: "sous", Setup: b.setup}},
	}
	if b.folder.Handler == "" || b.folder.Handler == api.DefaultHandler {
		o.EntryPoints = []string{"./" + b.folder.Entry}
		return o
	}
	// A named export of a CommonJS module exists only if an import names it.
	o.Stdin = &esbuild.StdinOptions{
		Contents:   fmt.Sprintf("export { %s } from %q;", b.folder.Handler, "./"+b.folder.Entry),
		ResolveDir: b.root,
	}
	return o
}

// conditions are those of package.json's "exports" that hold, beside "import" in an import,
// "require" in a require, and "default". The order in a package's own list decides.
func conditions() []string { return []string{"workerd", "worker", "browser"} }

// loaders returns how a file is imported, by its extension: modules as such, text as a
// string and binary data as a Uint8Array. esbuild's own table has the rest.
func loaders() map[string]esbuild.Loader {
	out := map[string]esbuild.Loader{".js": esbuild.LoaderJSX, ".mjs": esbuild.LoaderJSX, ".cjs": esbuild.LoaderJSX}
	for _, ext := range []string{
		".txt", ".text", ".html", ".htm", ".css", ".md", ".sql", ".graphql", ".gql", ".xml", ".svg", ".csv", ".tsv",
		".yaml", ".yml", ".toml", ".hbs", ".handlebars", ".mustache", ".ejs", ".njk", ".liquid", ".tmpl", ".pem", ".prompt",
	} {
		out[ext] = esbuild.LoaderText
	}
	for _, ext := range []string{
		".bin", ".dat", ".gz", ".br", ".zip", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico",
		".woff", ".woff2", ".ttf", ".otf",
	} {
		out[ext] = esbuild.LoaderBinary
	}
	return out
}

// uploads reports whether the sandbox itself imports files of that extension.
func uploads(ext string) bool {
	switch ext {
	case ".js", ".mjs", ".ts", ".mts", ".json":
		return true
	}
	return false
}

// bundle makes the Bundle of a build that succeeded.
func (b *build) bundle(result esbuild.BuildResult) (*Bundle, error) {
	var meta metafile
	if err := json.Unmarshal([]byte(result.Metafile), &meta); err != nil {
		return nil, fmt.Errorf("metafile: %w", err)
	}
	out := &Bundle{Warnings: b.warnings(result.Warnings)}
	out.OwnBytes, out.Packages = b.contents(meta)
	var code []byte
	for _, file := range result.OutputFiles {
		if filepath.Ext(file.Path) == ".map" {
			mapping, err := plainMap(file.Contents)
			if err != nil {
				return nil, err
			}
			out.mapping = mapping
		} else {
			code = file.Contents
		}
	}
	out.Bytes = int64(len(code))
	out.Code = withMap(code, out.mapping)
	return out, nil
}
