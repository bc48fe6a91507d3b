package bundler

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	esbuild "github.com/evanw/esbuild/pkg/api"
)

// The namespaces of the modules that stand for others.
const (
	requiredBuiltin = "require" // for a built-in module of Node.js, in a call of require
	importedBuiltin = "import"  // for a built-in module of Node.js, in a call of import
	missingPackage  = "missing" // for a package that is not installed, in a call of require
)

// A build is one run of esbuild, or two, and the observations of its plugin.
type build struct {
	folder Folder
	root   string

	mu        sync.Mutex // esbuild calls the plugin concurrently
	manifests manifests
	needed    bool // the folder cannot be uploaded as it is
	// required has the packages that were imported through require although their "module"
	// is an ES module: the path of that module to the path of their CommonJS main.
	required map[string]string
	useMain  map[string]string // required of the run before
	reach    *reach
}

func (b *build) run() esbuild.BuildResult { return esbuild.Build(b.options()) }

// A probe marks a resolution that the plugin asked for, which it leaves to esbuild.
type probe struct{}

func (b *build) setup(p esbuild.PluginBuild) {
	p.OnResolve(esbuild.OnResolveOptions{Filter: ".*"}, func(args esbuild.OnResolveArgs) (esbuild.OnResolveResult, error) {
		if _, ours := args.PluginData.(probe); ours || args.Kind == esbuild.ResolveEntryPoint {
			return esbuild.OnResolveResult{}, nil
		}
		return b.resolve(p, args), nil
	})
	p.OnLoad(esbuild.OnLoadOptions{Filter: ".*", Namespace: "file"}, b.load)
	p.OnLoad(esbuild.OnLoadOptions{Filter: ".*", Namespace: requiredBuiltin}, func(args esbuild.OnLoadArgs) (esbuild.OnLoadResult, error) {
		return module("import * as m from %q;\nmodule.exports = \"default\" in m ? m.default : m;\n", args.Path), nil
	})
	p.OnLoad(esbuild.OnLoadOptions{Filter: ".*", Namespace: importedBuiltin}, func(args esbuild.OnLoadArgs) (esbuild.OnLoadResult, error) {
		return module("export * from %[1]q;\nexport { default } from %[1]q;\n", args.Path), nil
	})
	p.OnLoad(esbuild.OnLoadOptions{Filter: ".*", Namespace: missingPackage}, func(args esbuild.OnLoadArgs) (esbuild.OnLoadResult, error) {
		return module("module.exports = undefined;\nthrow Object.assign(new Error(\"Cannot find module \" + %q), { code: \"MODULE_NOT_FOUND\" });\n",
			"'"+args.Path+"': it was not installed when the function was bundled"), nil
	})
}

// module returns a module whose text contains text, such as the name of a built-in module.
func module(format, text string) esbuild.OnLoadResult {
	contents := fmt.Sprintf(format, text)
	return esbuild.OnLoadResult{Contents: &contents, Loader: esbuild.LoaderJS}
}

// resolve notes whether an import needs bundling, and answers those that esbuild would
// resolve otherwise. It leaves the others to esbuild.
func (b *build) resolve(p esbuild.PluginBuild, args esbuild.OnResolveArgs) esbuild.OnResolveResult {
	path := args.Path
	switch {
	case strings.HasPrefix(path, "./"), strings.HasPrefix(path, "../"), path == ".", path == "..":
		return esbuild.OnResolveResult{Path: b.restored(args)}
	case strings.HasPrefix(path, "http://"), strings.HasPrefix(path, "https://"), strings.HasPrefix(path, "//"):
		b.need()
		return esbuild.OnResolveResult{Errors: []esbuild.Message{{
			Text: fmt.Sprintf("%q is a URL; install the package with npm and import it by its name", path),
		}}}
	}
	if name, ok := builtin(path); ok && !b.remapped(args) {
		if path != name && args.Namespace == "file" {
			b.need() // the sandbox knows the module by its name with the prefix
		}
		return resolveBuiltin(name, args.Kind)
	}
	b.need()
	b.mu.Lock()
	b.reach.addPackage(packageName(path), args.ResolveDir)
	b.mu.Unlock()
	if b.optional(args) {
		return esbuild.OnResolveResult{Path: path, Namespace: missingPackage}
	}
	return b.preferMain(p, args)
}

// optional reports whether a package requires another one that is not installed. As in Node.js,
// such a call throws when it is reached: packages choose one of several drivers that way, for
// example one for each database. An import statement has no such form, and stays an error.
func (b *build) optional(args esbuild.OnResolveArgs) bool {
	return args.Kind == esbuild.ResolveJSRequireCall && args.Namespace == "file" && inPackages(args.Importer) &&
		!isPrivatePath(args.Path) && !b.remapped(args) && !installed(packageName(args.Path), args.ResolveDir)
}

// resolveBuiltin keeps the import of a built-in module. esbuild turns other forms than the
// import statement into calls that fail in the sandbox, so a module stands between.
func resolveBuiltin(name string, kind esbuild.ResolveKind) esbuild.OnResolveResult {
	switch kind {
	case esbuild.ResolveJSRequireCall:
		return esbuild.OnResolveResult{Path: name, Namespace: requiredBuiltin}
	case esbuild.ResolveJSDynamicImport:
		return esbuild.OnResolveResult{Path: name, Namespace: importedBuiltin}
	}
	return esbuild.OnResolveResult{Path: name, External: true, SideEffects: esbuild.SideEffectsFalse}
}

// remapped reports whether the package of the importer replaces the built-in module in the
// "browser" map of its package.json. esbuild follows the map.
func (b *build) remapped(args esbuild.OnResolveArgs) bool {
	if args.Namespace != "file" {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.manifests.around(args.ResolveDir)
	return m != nil && m.replaces(args.Path)
}

// preferMain resolves the import of a package whose package.json has a "module", an ES
// module, and a "main", a CommonJS module, but no "exports". The ES module is used unless a
// require demands the package anywhere: a CommonJS caller expects what main exports, and
// with both in one bundle the package would have its state twice.
func (b *build) preferMain(p esbuild.PluginBuild, args esbuild.OnResolveArgs) esbuild.OnResolveResult {
	if len(b.useMain) == 0 && args.Kind != esbuild.ResolveJSRequireCall {
		return esbuild.OnResolveResult{}
	}
	o := esbuild.ResolveOptions{
		Importer: args.Importer, Namespace: args.Namespace, ResolveDir: args.ResolveDir, Kind: args.Kind, PluginData: probe{}, With: args.With,
	}
	found := p.Resolve(args.Path, o)
	if len(found.Errors) > 0 || found.Namespace != "file" || !inPackages(found.Path) {
		return esbuild.OnResolveResult{}
	}
	if main, ok := b.useMain[found.Path]; ok {
		return esbuild.OnResolveResult{Path: main}
	}
	if args.Kind != esbuild.ResolveJSRequireCall {
		return esbuild.OnResolveResult{}
	}
	b.mu.Lock()
	m := b.manifests.around(filepath.Dir(found.Path))
	b.mu.Unlock()
	if m == nil || !m.isModule(found.Path) {
		return esbuild.OnResolveResult{}
	}
	main := p.Resolve(m.mainPath(), o)
	if len(main.Errors) > 0 || main.Namespace != "file" {
		return esbuild.OnResolveResult{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.required == nil {
		b.required = map[string]string{}
	}
	b.required[found.Path] = main.Path
	return esbuild.OnResolveResult{Path: main.Path}
}

// restored returns the path of a module that the map "browser" of its package leaves out, "" for
// another one: if the importer asks whether it runs in Node.js, the sandbox says so, and the
// importer then calls what the module exports. iconv-lite 0.4 is such a package, through which
// express 4 and koa read text.
func (b *build) restored(args esbuild.OnResolveArgs) string {
	if args.Namespace != "file" || !inPackages(args.Importer) {
		return ""
	}
	b.mu.Lock()
	m := b.manifests.around(args.ResolveDir)
	b.mu.Unlock()
	if m == nil {
		return ""
	}
	path, ok := m.leavesOut(filepath.Join(args.ResolveDir, filepath.FromSlash(args.Path)))
	if !ok {
		return ""
	}
	importer, err := os.ReadFile(args.Importer)
	if err != nil || !bytes.Contains(importer, []byte("process.versions")) {
		return ""
	}
	return path
}

func (b *build) need() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.needed = true
}

// load notes whether a file needs bundling, refuses one that is not part of the function,
// and drops the comments by which files of packages refer to source maps: their maps often
// name files that are not installed. esbuild loads the others.
func (b *build) load(args esbuild.OnLoadArgs) (esbuild.OnLoadResult, error) {
	if why := b.refusal(args.Path); why != "" {
		b.need()
		return refuse(why), nil
	}
	if inPackages(args.Path) {
		if filepath.Ext(args.Path) == ".wasm" {
			return loadWasm(args.Path), nil
		}
		return b.loadPackaged(args.Path), nil
	}
	rel, inside := b.inRoot(args.Path)
	if !inside || !uploads(filepath.Ext(args.Path)) {
		b.need()
	}
	if inside && b.folder.Ignored != nil && b.folder.Ignored(rel) {
		return esbuild.OnLoadResult{Errors: []esbuild.Message{{
			Text: fmt.Sprintf("%s is imported, but not part of the function: .sousignore names it", rel),
		}}}, nil
	}
	if filepath.Ext(args.Path) == ".wasm" {
		return loadWasm(args.Path), nil
	}
	return esbuild.OnLoadResult{}, nil
}

// loadWasm loads a .wasm file as a module whose default export is the WebAssembly.Module, as
// Workers have it. It is compiled when the function's modules are evaluated.
func loadWasm(path string) esbuild.OnLoadResult {
	raw, err := os.ReadFile(path)
	if err != nil {
		return esbuild.OnLoadResult{} // esbuild reports it, or can read it
	}
	contents := fmt.Sprintf("import { Buffer } from \"node:buffer\";\nexport default /* @__PURE__ */ new WebAssembly.Module(Buffer.from(%q, \"base64\"));\n",
		base64.StdEncoding.EncodeToString(raw))
	return esbuild.OnLoadResult{Contents: &contents, Loader: esbuild.LoaderJS}
}

// loadPackaged loads a module of a package without its reference to a source map.
func (b *build) loadPackaged(path string) esbuild.OnLoadResult {
	if !slices.Contains([]string{".js", ".mjs", ".cjs"}, filepath.Ext(path)) {
		return esbuild.OnLoadResult{}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		// esbuild reports it, or can read it: it also reads archives.
		return esbuild.OnLoadResult{}
	}
	if twin := withoutDocument(path, raw); twin != "" {
		if why := b.refusal(twin); why != "" {
			return refuse(why)
		}
		raw, err = os.ReadFile(twin)
		if err != nil {
			return esbuild.OnLoadResult{} // as above
		}
	}
	text := strings.ReplaceAll(string(raw), "//# sourceMappingURL=", "// source map: ")
	return esbuild.OnLoadResult{Contents: &text, Loader: esbuild.LoaderDefault}
}

// refusal is reach.refusal.
func (b *build) refusal(path string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reach.refusal(path)
}

// withoutDocument returns the path of the module x.js beside the module x.browser.js at path, if that
// one needs a browser's DOMParser, which the sandbox lacks: its twin is for runtimes without
// one. The map "browser" of a package leads to such modules, for example in the packages of
// AWS that read XML. It returns "" for other modules.
func withoutDocument(path string, raw []byte) string {
	ext := filepath.Ext(path)
	stem, ok := strings.CutSuffix(strings.TrimSuffix(path, ext), ".browser")
	if !ok || !bytes.Contains(raw, []byte("new DOMParser")) {
		return ""
	}
	if !exists(stem + ext) {
		return ""
	}
	return stem + ext
}

// inRoot returns the slash-separated path of a file below the root of the folder.
func (b *build) inRoot(path string) (string, bool) {
	rel, err := filepath.Rel(b.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// inPackages reports whether the file at path belongs to an installed package.
func inPackages(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/"+packagesFolder+"/")
}
