// Package node is the part of Node.js' standard library that functions can import: its
// modules, written in JavaScript, and the functions in Go that they are made with.
//
// It knows nothing of realms and activations. The functions that do, such as the clock of
// node:process, are in the package child.
package node

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/dop251/goja"
)

//go:embed *.js */*.js names.txt
var sources embed.FS

// Prefix begins the names under which modules are stacked and, in an import, those that
// only exist with it.
const Prefix = "node:"

// Resolve returns the module that an import of name means, without its prefix. A name
// without the prefix means a module as in Node: "fs" does, "test" does not.
func Resolve(name string) (module string, ok bool) {
	bare, prefixed := strings.CutPrefix(name, Prefix)
	if internal, legacy := legacyNames()[bare]; legacy {
		return internal, true
	}
	for module := range table() {
		if module == bare && (prefixed || !prefixOnly(bare)) {
			return bare, true
		}
	}
	return "", false
}

// prefixOnly reports whether a module exists under the prefix only.
func prefixOnly(module string) bool {
	switch module {
	case "test", "test/reporters", "sqlite", "sea":
		return true
	}
	return false
}

// legacyNames are modules of Node under which parts of others are found.
func legacyNames() map[string]string {
	return map[string]string{
		"_http_agent": "http", "_http_client": "http", "_http_common": "http",
		"_http_incoming": "http", "_http_outgoing": "http", "_http_server": "http",
		"_stream_duplex": "stream/duplex", "_stream_passthrough": "stream/passthrough",
		"_stream_readable": "stream/readable", "_stream_transform": "stream/transform",
		"_stream_writable": "stream/writable", "_stream_wrap": "net", "_tls_common": "tls", "_tls_wrap": "tls",
	}
}

// table yields each module and the names that Node's module of that name exports.
func table() func(yield func(module, names string) bool) {
	text, err := sources.ReadFile("names.txt")
	if err != nil { // it is embedded
		panic(err)
	}
	return func(yield func(module, names string) bool) {
		for line := range strings.Lines(string(text)) {
			module, names, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if !yield(module, names) {
				return
			}
		}
	}
}

// Modules returns the names of all modules, without prefix.
func Modules() []string {
	var out []string
	for module := range table() {
		out = append(out, module)
	}
	return out
}

// Names returns the names that Node's module exports. Those that this package lacks throw
// at use.
func Names(module string) []string {
	for m, names := range table() {
		if m == module {
			return strings.Fields(names)
		}
	}
	return nil
}

// Program compiles a module: a function of exports, require, module and natives. A module
// of Node that this package has no source of is empty: all its names throw at use.
func Program(module string) (*goja.Program, error) {
	source, err := sources.ReadFile(module + ".js")
	if err != nil {
		source = nil
	}
	return goja.Compile(Prefix+module, "(function (exports, require, module, natives) {\"use strict\"; "+string(source)+"\n})", true)
}

// Require is the name of the function through which a script gets a module.
const Require = "__cs_node"

// ImportStub is the source of the module that an import statement resolves to: it exports
// what Node's module exports, so that an unknown name is refused when the script is compiled.
func ImportStub(module string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "const m = /* @__PURE__ */ %s(%q);\nexport default m;\n", Require, module)
	for _, name := range Names(module) {
		if reserved(name) {
			fmt.Fprintf(&b, "const $%s = /* @__PURE__ */ (() => m.%s)();\nexport { $%s as %s };\n", name, name, name, name)
			continue
		}
		fmt.Fprintf(&b, "export const %s = /* @__PURE__ */ (() => m.%s)();\n", name, name)
	}
	return b.String()
}

// reserved reports whether a name cannot be that of a variable, or hides a global.
func reserved(name string) bool {
	return slices.Contains([]string{"await", "debugger", "delete", "enum", "import", "new", "static", "typeof", "void", "with", "yield", "m"}, name)
}

// RequireStub is the source of the module that a call of require resolves to.
func RequireStub(module string) string {
	return fmt.Sprintf("module.exports = %s(%q);\n", Require, module)
}
