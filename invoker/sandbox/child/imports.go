package child

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dop251/goja/parser"
)

// importHelper stands for import() of a name that is computed. Its first argument is the
// folder of the module that imports.
const importHelper = "__cs_import"

// modulesName is a variable of a script with computed imports: a function for each module of
// the bundle, by its path, which imports it.
const modulesName = "__cs_modules"

// importText is the helper. It resolves a relative name as the compiler does, but needs the
// full name of the file.
const importText = "async function " + importHelper + `(folder,name){name=String(name);` +
	`const path=folder?folder.split("/"):[];let ok=/^\.\.?\//.test(name);` +
	`for(const part of name.split("/")){if(part==="..")ok=path.pop()!==undefined&&ok;else if(part!==".")path.push(part)}` +
	`const load=ok&&` + modulesName + `?` + modulesName + `.get(path.join("/")):undefined;` +
	"if(load===undefined)throw new TypeError(`the bundle has no file for the import ${JSON.stringify(name)}`);return load()}\n"

// lowerImports replaces the dynamic imports whose names are computed, which esbuild leaves
// and goja cannot parse, by calls of a function. It returns the function too.
func lowerImports(script []byte) (lowered []byte, helper string) {
	const dynamic = "import("
	for bytes.Contains(script, []byte(dynamic)) {
		_, err := parser.ParseFile(nil, scriptName, script, 0, parser.WithDisableSourceMaps)
		var list parser.ErrorList
		if !errors.As(err, &list) || len(list) == 0 {
			break
		}
		at := offsetOf(script, list[0].Position.Line, list[0].Position.Column)
		if at < 0 || !bytes.HasPrefix(script[at:], []byte(dynamic)) {
			break
		}
		folder := path.Dir(original(list[0].Position, "", script).File)
		if folder == "." {
			folder = ""
		}
		script = applyEdits(script, []edit{{at, at + len(dynamic), importHelper + "(" + quoteJS(folder) + ","}})
		helper = importText
	}
	return script, helper
}

// withModules returns the text that makes the modules of a bundle importable by a computed
// name, "" if the entry is the only one.
func withModules(files map[string][]byte, entry string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, ok := loaderOf(path.Ext(name)); ok && name != entry {
			fmt.Fprintf(&b, "[%[1]s,()=>import(%[2]s)],", quoteJS(name), quoteJS("./"+name))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return modulesName + "=new Map([" + b.String() + "]);"
}

// offsetOf returns where a position that counts lines and columns from 1 is, -1 if nowhere.
func offsetOf(script []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(script[at:], '\n')
		if n < 0 {
			return -1
		}
		at += n + 1
	}
	at += column - 1
	if at < 0 || at >= len(script) {
		return -1
	}
	return at
}
