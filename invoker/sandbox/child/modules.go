package child

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/invoker/sandbox/child/node"
)

// namespace is how esbuild knows the modules of a bundle from files, which it
// must never look for.
//
// Paths in this namespace are names in the bundle, without a leading "./".
const namespace = "bundle"

// modules resolves and loads imports from a bundle's files alone: it is a plugin of esbuild
// that answers for every path, so esbuild never reads a file.
type modules struct {
	files map[string][]byte
	graph *imports // records the static imports
}

func (m modules) plugin() api.Plugin {
	return api.Plugin{Name: namespace, Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `.*`}, m.resolve)
		build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: namespace}, m.load)
		build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: missing}, loadMissing)
		build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: builtinNamespace}, loadBuiltin)
		// esbuild looks for a pattern such as import("./" + name) on the disk.
		build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: "file"}, loadMissing)
	}}
}

// extensions are tried in turn for an import without one, as bundlers do.
func extensions() []string { return []string{".ts", ".mts", ".js", ".mjs", ".json"} }

// resolve finds what an import names: a module of Node.js, or a file of the bundle relative to
// the importing module. Packages and unknown names are refused at the position of the import.
// A dynamic import that would be refused rejects when it runs.
func (m modules) resolve(args api.OnResolveArgs) (api.OnResolveResult, error) {
	result, err := m.resolveStatic(args)
	if args.Kind != api.ResolveJSDynamicImport && len(result.Errors) == 0 {
		m.graph.add(args.Importer, result.Path)
	}
	if args.Kind == api.ResolveJSDynamicImport && len(result.Errors) > 0 {
		return api.OnResolveResult{Path: args.Path, Namespace: missing, PluginData: result.Errors[0].Text}, nil
	}
	return result, err
}

// missing is the namespace of modules that only dynamic imports name.
const missing = "missing"

// loadMissing makes a module that throws.
func loadMissing(args api.OnLoadArgs) (api.OnLoadResult, error) {
	why, ok := args.PluginData.(string)
	if !ok {
		why = "the bundle has no such file"
	}
	text, err := json.Marshal(why)
	contents := fmt.Sprintf("throw new TypeError(%s);\nexport {};", text)
	return api.OnLoadResult{Contents: &contents, Loader: api.LoaderJS}, err
}

func (m modules) resolveStatic(args api.OnResolveArgs) (api.OnResolveResult, error) {
	if args.Kind == api.ResolveEntryPoint {
		return api.OnResolveResult{}, nil
	}
	for key, value := range args.With {
		if key != "type" || value != "json" {
			return refuse("the import attribute %q with the value %q is not supported", key, value)
		}
	}
	if name, ok := node.Resolve(args.Path); ok {
		return resolveBuiltin(name, args.Kind), nil
	}
	if strings.HasPrefix(args.Path, "node:") {
		return refuse("%q is not a module of Node.js that functions know", args.Path)
	}
	relative := strings.HasPrefix(args.Path, "./") || strings.HasPrefix(args.Path, "../") ||
		args.Path == "." || args.Path == ".."
	if !relative {
		return refuse("the package %q is not in the bundle; only relative imports are supported, so bundle it first", args.Path)
	}
	dir := "."
	if args.Namespace == namespace {
		dir = path.Dir(args.Importer)
	}
	name, ok := m.find(path.Join(dir, args.Path))
	if !ok {
		return refuse("the bundle has no file for the import %q", args.Path)
	}
	return api.OnResolveResult{Path: name, Namespace: namespace}, nil
}

// refuse returns a problem that esbuild reports at the import.
func refuse(format string, args ...any) (api.OnResolveResult, error) {
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf(format, args...)}}}, nil
}

// find returns the file that an import of name means: itself, with an extension, TypeScript
// under its emitted name, or a folder's index. For ./lib it tries
//
//	lib, lib.ts, lib.mts, lib.js, lib.mjs, lib.json, lib/index.ts, … lib/index.json
//
// and ./lib.js also stands for lib.ts.
func (m modules) find(name string) (string, bool) {
	candidates := []string{name}
	for _, ext := range extensions() {
		candidates = append(candidates, name+ext)
	}
	if stem, ok := strings.CutSuffix(name, ".js"); ok {
		candidates = append(candidates, stem+".ts")
	}
	if stem, ok := strings.CutSuffix(name, ".mjs"); ok {
		candidates = append(candidates, stem+".mts")
	}
	for _, ext := range extensions() {
		candidates = append(candidates, path.Join(name, "index"+ext))
	}
	for _, c := range candidates {
		if _, ok := m.files[c]; ok {
			return c, true
		}
	}
	return "", false
}

// load returns a module's text and its language, by its extension.
func (m modules) load(args api.OnLoadArgs) (api.OnLoadResult, error) {
	contents := string(m.files[args.Path])
	loader, ok := loaderOf(path.Ext(args.Path))
	if !ok {
		return api.OnLoadResult{Errors: []api.Message{{
			Text: fmt.Sprintf("%s cannot be imported: modules end in .js, .mjs, .ts, .mts or .json", args.Path),
		}}}, nil
	}
	if loader != api.LoaderJSON && !marked(contents) {
		contents += "\nexport {};"
	}
	if strings.Contains(contents, "import.meta") {
		contents, loader = withMeta(args.Path, contents, loader)
	}
	return api.OnLoadResult{Contents: &contents, Loader: loader, Errors: checkExpressions(args.Path, contents, loader)}, nil
}

// marked reports whether a file's text may identify it as an ES or CommonJS module. esbuild
// treats other files as CommonJS: their top level would be that of a function.
func marked(source string) bool {
	for _, word := range []string{"import", "export", "require", "module", "this"} { // exports, too
		if strings.Contains(source, word) {
			return true
		}
	}
	return false
}

// withMeta replaces import.meta.url by the URL of the file, and keeps all else: esbuild
// makes an empty object of the remaining import.meta.
func withMeta(file, source string, loader api.Loader) (string, api.Loader) {
	location := url.URL{Scheme: "file", Path: "/" + file}
	result := api.Transform(source, api.TransformOptions{
		Loader: loader, LogLevel: api.LogLevelSilent, Target: api.ESNext, TsconfigRaw: "{}",
		Define:    map[string]string{"import.meta.url": strconv.Quote(location.String())},
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, Sourcefile: file, Charset: api.CharsetUTF8,
	})
	if len(result.Errors) > 0 {
		return source, loader // the build reports them
	}
	return string(result.Code), api.LoaderJS
}

// loaderOf returns the language of an extension; ok is false for one that cannot be
// imported.
func loaderOf(ext string) (api.Loader, bool) {
	switch ext {
	case ".js", ".mjs":
		return api.LoaderJS, true
	case ".ts", ".mts":
		return api.LoaderTS, true
	case ".json":
		return api.LoaderJSON, true
	}
	return api.LoaderNone, false
}
