package child

import (
	"bytes"
	"embed"

	"github.com/dop251/goja"
)

//go:embed additions/*.js
var additionSources embed.FS

// addition is a part of the language that goja lacks. It is installed in the realms of the
// scripts that name it: a fresh realm should not pay for what its script does not use.
// Its file is a function, which is called with the natives.
type addition struct {
	file  string
	names []string // any of them in a script's text installs it
}

func additionTable() []addition {
	return []addition{
		{"regexp.js", []string{"RegExp", regexpHelper}},
		{"symbols.js", []string{"asyncIterator", "asyncDispose", "Symbol.dispose", `"dispose"`, "fromAsync"}},
		{"asyncfrom.js", []string{asyncHelpers}},
		{"iterators.js", []string{"Iterator", "function*", "yield", ".values()", ".keys()", ".entries()", "matchAll", "Symbol.iterator"}},
		{"proxy.js", []string{"Proxy"}},
		{"strings.js", []string{"WellFormed"}},
		{"weak.js", []string{"WeakRef", "FinalizationRegistry"}},
		{"weakkeys.js", []string{"WeakMap", "WeakSet"}},
		{"accessors.js", []string{"etter__"}},
		{"annexb.js", []string{
			"toGMTString", "getYear", "setYear", ".anchor(", ".big(", ".blink(", ".bold(", ".fixed(", ".fontcolor(", ".fontsize(",
			".italics(", ".link(", ".small(", ".strike(", ".sub(", ".sup(", "String.prototype", "Date.prototype",
		}},
		{"typedarrays.js", []string{"8Array.from", "TypedArray", "Int8Array", "Clamped", "16Array", "32Array", "64Array"}},
		{"buffers.js", []string{"WebAssembly", "transfer", "postMessage", `"bytes"`, `"byob"`, "detached", "maxByteLength", "resizable", "prototype.resize"}},
		{"resizable.js", []string{"maxByteLength", "resizable", "prototype.resize"}},
		{"float16.js", []string{"loat16", "f16round"}},
		{"depth.js", []string{"__cs_deep"}},
		{"locale.js", []string{"toLocale", "localeCompare"}},
		{"collections.js", []string{"groupBy", "withResolvers", "Promise.try", "fromAsync"}},
	}
}

// additionsFor returns the programs of what a script names and goja lacks, none for most.
// It looks for the names as text: a script that only mentions one, in a string for example,
// gets the additions too, and a script that composes a name at run time gets none.
func additionsFor(script []byte) ([]*goja.Program, error) {
	var programs []*goja.Program
	for _, a := range additionTable() {
		if !namesAny(script, a.names) {
			continue
		}
		source, err := additionSources.ReadFile("additions/" + a.file)
		if err != nil {
			return nil, err
		}
		code, err := goja.Compile(a.file, string(source), true)
		if err != nil {
			return nil, err
		}
		programs = append(programs, code)
	}
	return programs, nil
}

func namesAny(script []byte, names []string) bool {
	for _, name := range names {
		if bytes.Contains(script, []byte(name)) {
			return true
		}
	}
	return false
}

// add installs what the program's script needs.
func (r *realm) add() error {
	if len(r.program.additions) == 0 {
		return nil
	}
	natives := r.natives()
	for _, code := range r.program.additions {
		value, err := r.vm.RunProgram(code)
		if err != nil {
			return err
		}
		install, _ := goja.AssertFunction(value)
		if _, err := install(goja.Undefined(), natives); err != nil {
			return err
		}
	}
	return nil
}

// natives are the functions in Go that additions are made with.
func (r *realm) natives() *goja.Object {
	o := r.vm.NewObject()
	for _, row := range []row{
		{"regexpCompile", function("compile", 3, regexpCompile)},
		{"regexpExec", (*realm).regexpExecFunction},
		{"regexpSource", function("source", 1, regexpSource)},
		{"regexpFallback", function("fallback", 1, regexpFallback)},
		{"depth", (*realm).depthFunction},
		{"regexpPristine", function("pristine", 1, regexpPristine)},
		{"regexpReplace", function("replace", 3, regexpReplace)},
		{"regexpMatch", function("match", 2, regexpMatch)},
		{"regexpSplit", function("split", 3, regexpSplit)},
		{"regexpTest", function("test", 1, regexpTest)},
		{"regexpEscape", function("escape", 1, regexpEscape)},
		{"viewDetached", function("detached", 1, viewDetached)},
		{"bufferDetached", function("detached", 1, bufferDetached)},
		{"bufferTransfer", function("transfer", 2, bufferTransfer)},
		{"bufferMake", function("make", 3, bufferMake)},
		{"bufferMost", function("most", 1, bufferMost)},
		{"bufferResize", function("resize", 2, bufferResize)},
		{"bufferView", function("view", 3, bufferView)},
		{"float16Encode", function("encode", 1, float16Bits)},
		{"float16Decode", function("decode", 1, float16Number)},
		{"float16View", function("view", 2, float16View)},
		{"weakMake", function("make", 1, weakMake)},
		{"weakGet", function("get", 1, weakGet)},
		{"localeMethods", function("localeMethods", 0, localeMethods)},
		{"regexpFlags", function("flags", 1, regexpFlags)},
	} {
		r.hidden(o, row.name, row.make(r))
	}
	return o
}
