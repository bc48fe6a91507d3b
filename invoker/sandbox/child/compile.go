package child

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// scriptName is what the script is called where no source map says better.
const scriptName = "bundle.js"

// bindName is the parameter through which a script hands its handler over.
const bindName = "__cs_handler"

// program is what a child serves: a compiled script and what it is told.
type program struct {
	assign wire.Assign
	code   *goja.Program
	// aheadRefused: evaluating the modules does what belongs to an activation,
	// or takes long, so no runtime is built ahead.
	aheadRefused bool
	globals      []row
}

// load makes the program of an assignment, and its script where it was
// compiled here; or says why the source cannot be used.
func load(assign wire.Assign, blob []byte) (*program, []byte, []wire.Problem) {
	script := blob
	if !assign.Compiled {
		files, err := bundle.Unpack(bytes.NewReader(blob))
		if err != nil {
			return nil, nil, []wire.Problem{{Message: err.Error()}}
		}
		var problems []wire.Problem
		if script, problems = compile(files, assign.Entry, assign.Handler); len(problems) > 0 {
			return nil, nil, problems
		}
	}
	code, problems := parse(script)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	if assign.Compiled {
		script = nil
	}
	return &program{assign: assign, code: code, globals: globalTable()}, script, nil
}

// chooseEntry finds the entry module: function.js before function.ts where none is named.
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
		"async-generator":                 false,
		"decorators":                      false,
		"for-await":                       false,
		"import-meta":                     false,
		"regexp-match-indices":            false,
		"regexp-set-notation":             false,
		"regexp-unicode-property-escapes": false,
		"top-level-await":                 false,
		"using":                           false,
	}
}

// compile turns the modules of a bundle into one script: the text of a function
// that takes the function to call with the handler.
func compile(files map[string][]byte, entry, handler string) ([]byte, []wire.Problem) {
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
	result := api.Build(api.BuildOptions{
		Stdin: &api.StdinOptions{
			Contents: fmt.Sprintf("import { %s as handler } from %q; %s(handler);", name, "./"+entry, bindName),
		},
		Bundle:         true,
		Write:          false,
		Outfile:        "/" + scriptName,
		AbsWorkingDir:  "/",
		LogLevel:       api.LogLevelSilent,
		LogLimit:       20,
		Format:         api.FormatESModule, // flat: the wrapper below is its scope
		Target:         api.ESNext,
		Supported:      unsupported(),
		Platform:       api.PlatformNeutral,
		Charset:        api.CharsetUTF8,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		TsconfigRaw:    "{}",
		Banner:         map[string]string{"js": `(function(` + bindName + `){"use strict";`},
		Footer:         map[string]string{"js": "})"},
		Plugins:        []api.Plugin{modules{files}.plugin()},
	})
	if problems := refusals(result, entry, handler); len(problems) > 0 {
		return nil, problems
	}
	return withSourceMap(result.OutputFiles)
}

// fatalWarnings are what esbuild only warns of because it trusts the engine to
// refuse it; goja would do so at run time, or match wrongly.
func fatalWarning(m api.Message) bool { return m.ID == "unsupported-regexp" }

// refusals are the problems that keep source from being used.
func refusals(result api.BuildResult, entry, handler string) []wire.Problem {
	messages := result.Errors
	for _, w := range result.Warnings {
		if fatalWarning(w) {
			messages = append(messages, w)
		}
	}
	problems := make([]wire.Problem, 0, len(messages))
	for _, m := range messages {
		problems = append(problems, refusal(m, entry, handler))
	}
	return problems
}

func refusal(m api.Message, entry, handler string) wire.Problem {
	p := wire.Problem{Message: m.Text}
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
	p.Line, p.Column = m.Location.Line, m.Location.Column+1
	return p
}

// exportForm shows how a handler of that name is exported.
func exportForm(handler string) string {
	if handler == "default" {
		return "`export default function (event, ctx) { … }`"
	}
	return fmt.Sprintf("`export function %s(event, ctx) { … }`", handler)
}

// withSourceMap joins a script and its source map, whose files are named as the
// bundle names them.
func withSourceMap(outputs []api.OutputFile) ([]byte, []wire.Problem) {
	var script, mapping []byte
	for _, out := range outputs {
		if strings.HasSuffix(out.Path, ".map") {
			mapping = out.Contents
		} else {
			script = out.Contents
		}
	}
	var m struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Names    []string `json:"names"`
		Mappings string   `json:"mappings"`
	}
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
	script = append(script, "\n//# sourceMappingURL=data:application/json;base64,"...)
	return base64.StdEncoding.AppendEncode(script, mapping), nil
}

// parse compiles a script for goja. What goja refuses after esbuild let it pass
// is syntax that the runtime lacks.
func parse(script []byte) (*goja.Program, []wire.Problem) {
	tree, err := goja.Parse(scriptName, string(script))
	if err != nil {
		return nil, []wire.Problem{unparsed(err)}
	}
	code, err := goja.CompileAST(tree, false)
	if err != nil {
		return nil, []wire.Problem{unparsed(err)}
	}
	return code, nil
}

func unparsed(err error) wire.Problem {
	var list parser.ErrorList
	var syntax *goja.CompilerSyntaxError
	switch {
	case errors.As(err, &list) && len(list) > 0:
		return at(list[0].Position, list[0].Message)
	case errors.As(err, &syntax) && syntax.File != nil:
		return at(syntax.File.Position(syntax.Offset), syntax.Message)
	}
	return wire.Problem{Message: err.Error()}
}

func at(p file.Position, message string) wire.Problem {
	return wire.Problem{File: p.Filename, Line: p.Line, Column: p.Column, Message: message}
}
