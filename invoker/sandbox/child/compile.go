package child

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/dop251/goja"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"

	sousapi "github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/child/node"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// scriptName names the script where no source map names a file.
const scriptName = "bundle.js"

// bindName is the variable through which a script exports its handler.
const bindName = "__cs_handler"

// program is the program that a child serves: the compiled script and its assignment.
//
// The script is parsed once; each realm runs the same goja.Program, which is immutable.
// aheadRefused and words change while activations run, on the goroutine that runs scripts.
type program struct {
	assign wire.Assign
	code   *goja.Program
	// aheadRefused reports that evaluating the modules has effects, or takes long, so
	// that no realm is built ahead.
	aheadRefused bool
	// asynchronous reports that the script probably uses promises. A wrong guess costs
	// time only.
	asynchronous bool
	// growing is how many bytes exist twice at the moment, because a memory of WebAssembly is
	// copied while it grows. The memory watch counts them once.
	growing   atomic.Int64
	globals   []row
	context   []liveRow
	additions []*goja.Program // none for most scripts
	words     words
	// requires reports that the script may require modules of Node.
	requires bool
	modules  map[string]*goja.Program // of Node, compiled
	// parses reports that the script may call JSON.parse.
	parses bool
	// captures reports that the script names Error.captureStackTrace.
	captures bool
	// readsBody reports that the script may call the methods of an HTTP event.
	readsBody bool
	// eventHandlers are those of the global object that the script names: only a property that
	// exists can be assigned to by its name alone.
	eventHandlers []string
}

// load makes the program of an assignment, and its script if it was compiled here, or the
// problems of the source. A script in the assignment was made by another child, from the
// same bundle; it is parsed like any other, not trusted.
func load(assign wire.Assign, blob []byte) (*program, []byte, []wire.Problem) {
	script := blob
	if !assign.Compiled {
		files, err := bundle.Unpack(bytes.NewReader(blob))
		if err != nil {
			return nil, nil, []wire.Problem{{Message: err.Error()}}
		}
		var problems []wire.Problem
		script, problems = compile(files, assign.Entry, assign.Handler, syntax{})
		if len(problems) > 0 {
			return nil, nil, problems
		}
		if _, problems := parse(script, false); len(problems) > 0 {
			// goja may accept what it refuses as a field as a call of Object.defineProperty.
			// Fields are faster as they are: private ones become entries of a WeakMap.
			script, problems = compile(files, assign.Entry, assign.Handler, syntax{lowerFields: true})
			if len(problems) > 0 {
				return nil, nil, problems
			}
		}
	}
	code, problems := parse(script, assign.CheckOnly)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	additions, err := additionsFor(script)
	if err != nil {
		return nil, nil, []wire.Problem{{Message: err.Error()}}
	}
	p := &program{
		assign: assign, code: code, globals: globalsFor(script), context: contextTable(), additions: additions, eventHandlers: handlersIn(script),
		asynchronous: bytes.Contains(script, []byte("async")) || bytes.Contains(script, []byte("Promise")),
		parses:       namesJSON(script),
		captures:     bytes.Contains(script, []byte("captureStackTrace")),
		readsBody:    namesAny(script, bodyMethodNames),
		requires:     bytes.Contains(script, []byte("require")) || bytes.Contains(script, []byte(node.Require)),
	}
	if assign.Compiled {
		script = nil
	}
	return p, script, nil
}

// chooseEntry finds the entry module: function.js before function.ts if none is named. A
// name may begin with "./".
func chooseEntry(files map[string][]byte, entry string) (string, *wire.Problem) {
	if entry == "" {
		entry = bundle.EntryJS
		if _, ok := files[entry]; !ok {
			entry = bundle.EntryTS
		}
	}
	entry = strings.TrimPrefix(entry, "./")
	if _, ok := files[entry]; !ok {
		return "", &wire.Problem{File: entry, Message: "the bundle has no entry module " + strconv.Quote(entry)}
	}
	return entry, nil
}

// unsupported is syntax that goja does not run: esbuild rewrites it where it
// can and refuses it where it cannot.
func unsupported() map[string]bool {
	return map[string]bool{
		"async-generator": false,
		"decorators":      false,
		"for-await":       false,
		"import-meta":     false,
		"top-level-await": false,
		"using":           false,
	}
}

// compile turns the modules of a bundle into one script: the text of a function that
// returns the handler. The module function.js, with export default (n) => n + 1, becomes
// about
//
//	(function(__cs_handler){"use strict";
//	var function_default = (n) => n + 1;
//	__cs_handler = function_default;
//	return __cs_handler})
//	//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLC…
//
// realm.evaluate calls that function once in each realm. The bundler resolves imports from
// the bundle alone (modules.go).
func compile(files map[string][]byte, entry, handler string, s syntax) ([]byte, []wire.Problem) {
	entry, problem := chooseEntry(files, entry)
	if problem != nil {
		return nil, []wire.Problem{*problem}
	}
	if handler == "" {
		handler = "default"
	}
	name, err := json.Marshal(handler)
	if err != nil {
		return nil, []wire.Problem{{File: entry, Message: err.Error()}}
	}
	contents := fmt.Sprintf("import { %s as handler } from %q; %s = handler;", name, "./"+entry, bindName)
	files, result := repaired(files, entry, contents, s)
	if slices.ContainsFunc(result.Errors, func(m api.Message) bool { return strings.HasPrefix(m.Text, "Top-level await") }) {
		s.asynchronous = true
		files, result = repaired(files, entry, contents, s)
	}
	if problems := refusals(result, entry, handler); len(problems) > 0 {
		return nil, problems
	}
	script, problems := withSourceMap(result.OutputFiles, files)
	if table := withModules(files, entry); table != "" && bytes.Contains(script, []byte(importHelper+"(")) {
		if all := build(files, contents+table, s, &imports{}); len(all.Errors) == 0 {
			return withSourceMap(all.OutputFiles, files)
		}
	}
	return script, problems
}

// syntax is what a build does with syntax beyond unsupported.
type syntax struct {
	asynchronous bool // the modules await at their top level
	lowerFields  bool // fields of classes become calls of Object.defineProperty
}

// build bundles the modules that contents imports into the text of a function. Where they
// await at their top level, the function is asynchronous.
func build(files map[string][]byte, contents string, s syntax, graph *imports) api.BuildResult {
	function, supported := "function", unsupported()
	if s.asynchronous {
		function = "async function"
		supported["top-level-await"] = true
	}
	if s.lowerFields {
		supported["class-field"], supported["class-static-field"] = false, false
	}
	return api.Build(api.BuildOptions{
		Stdin:          &api.StdinOptions{Contents: contents},
		Bundle:         true,
		Write:          false,
		Outfile:        "/" + scriptName,
		AbsWorkingDir:  "/",
		LogLevel:       api.LogLevelSilent,
		LogLimit:       20,
		Format:         api.FormatESModule, // flat: the wrapper below is its scope
		Target:         api.ESNext,
		Supported:      supported,
		Platform:       api.PlatformNeutral,
		Charset:        api.CharsetUTF8,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		TsconfigRaw:    "{}",
		Banner:         map[string]string{"js": `(` + function + `(` + bindName + `,` + node.Require + `,require,` + modulesName + `){"use strict";`},
		Footer:         map[string]string{"js": "return " + bindName + "})"},
		Plugins:        []api.Plugin{modules{files, graph}.plugin()},
	})
}

// refusals are the problems that keep source from being used.
func refusals(result api.BuildResult, entry, handler string) []wire.Problem {
	problems := make([]wire.Problem, 0, len(result.Errors))
	for _, m := range result.Errors {
		p := refusal(m, entry, handler)
		p.File, p.Message = sousapi.TruncateText(p.File, maxProblemText), sousapi.TruncateText(p.Message, maxProblemText)
		problems = append(problems, p)
	}
	return problems
}

// maxProblemText bounds the texts of a problem, in bytes. They may quote the source, and
// all of them together must fit a message's head (wire.MaxHead).
const maxProblemText = 4 << 10

// refusal returns the problem that esbuild's message m stands for. A message about the
// import that this package adds is about the entry: it does not export the handler.
func refusal(m api.Message, entry, handler string) wire.Problem {
	p := wire.Problem{Message: m.Text}
	if m.PluginName == "" { // the plugin's own texts quote names as the user wrote them
		p.Message = bundle.CompilerText(m.Text, namespace)
	}
	if m.Location == nil {
		p.File = entry
		return p
	}
	if m.Location.File == "<stdin>" { // our import of the handler
		p.File = entry
		if strings.HasPrefix(m.Text, "No matching export") {
			p.Message = fmt.Sprintf("the module exports no handler: expected %s", exportForm(handler))
		}
		return p
	}
	p.File = strings.TrimPrefix(m.Location.File, namespace+":")
	p.Line, p.Column = m.Location.Line, bundle.Column(m.Location.LineText, m.Location.Column)
	return p
}

// exportForm shows how a handler of that name is exported, for the message of a missing
// one.
func exportForm(handler string) string {
	if handler == "default" {
		return "`export default function (event, ctx) { … }`"
	}
	return fmt.Sprintf("`export function %s(event, ctx) { … }`", handler)
}

// withSourceMap joins a script and its source map, whose files are named as the bundle
// names them. The map is the last line of the script, so a script travels and is cached as
// one text. The contents of the sources are left out.
func withSourceMap(outputs []api.OutputFile, files map[string][]byte) ([]byte, []wire.Problem) {
	var script, mapping []byte
	for _, out := range outputs {
		if strings.HasSuffix(out.Path, ".map") {
			mapping = out.Contents
		} else {
			script = out.Contents
		}
	}
	var m sourceMap
	if err := json.Unmarshal(mapping, &m); err != nil {
		return nil, []wire.Problem{{Message: "source map: " + err.Error()}}
	}
	for i, source := range m.Sources {
		m.Sources[i] = strings.TrimPrefix(source, namespace+":")
	}
	mapping, err := json.Marshal(m)
	if err != nil {
		return nil, []wire.Problem{{Message: "source map: " + err.Error()}}
	}
	script = append(script, "\n"+mapPrefix...)
	return lower(quoteFields(base64.StdEncoding.AppendEncode(script, mapping)), files)
}

// parse compiles a script for goja. Syntax that esbuild lets pass and goja refuses is
// syntax that the runtime lacks. The problems have the positions of the user's source.
// The handler is checked when the script is about to be published, and not when it is loaded.
func parse(script []byte, published bool) (*goja.Program, []wire.Problem) {
	tree, err := parser.ParseFile(nil, scriptName, script, 0)
	if err != nil {
		return nil, []wire.Problem{unparsed(err, script)}
	}
	if published {
		if problem := unusableHandler(tree, script); problem != nil {
			return nil, []wire.Problem{*problem}
		}
	}
	code, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, []wire.Problem{unparsed(err, script)}
	}
	return code, nil
}

// unparsed returns the problem of a script that goja refuses, with its texts cut.
func unparsed(err error, script []byte) wire.Problem {
	p := syntaxProblem(err, script)
	p.File, p.Message = sousapi.TruncateText(p.File, maxProblemText), sousapi.TruncateText(p.Message, maxProblemText)
	return p
}

// syntaxProblem returns the problem of goja's error. Its parser reports positions in the
// script, its compiler positions in the user's source.
func syntaxProblem(err error, script []byte) wire.Problem {
	var list parser.ErrorList
	var syntax *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		return original(list[0].Position, list[0].Message, script)
	case errors.As(err, &syntax) && syntax.File != nil:
		p := syntax.File.Position(syntax.Offset)
		return wire.Problem{File: p.Filename, Line: p.Line, Column: p.Column + mappedColumn, Message: syntax.Message}
	}
	return wire.Problem{Message: err.Error()}
}

// original maps a position in the script to the user's source: the parser reads the source
// map only of a script without errors.
//
// Without a usable map the position is that in the script.
func original(p file.Position, message string, script []byte) wire.Problem {
	lines := bytes.Split(script, []byte("\n"))
	problem := wire.Problem{File: p.Filename, Line: p.Line, Column: p.Column, Message: message}
	_, encoded, _ := bytes.Cut(lines[len(lines)-1], []byte(mapPrefix))
	mapping, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return problem
	}
	consumer, err := sourcemap.Parse("", mapping)
	if err != nil {
		return problem
	}
	if source, _, line, column, ok := consumer.Source(p.Line, p.Column-1); ok {
		problem.File, problem.Line, problem.Column = source, line, column+1
	}
	return problem
}

// mapPrefix begins the last line of a script, which holds its source map.
const mapPrefix = "//# sourceMappingURL=data:application/json;base64,"
