package test262

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testCase is one file of the suite with what its front matter says.
type testCase struct {
	path          string // below the checkout, such as "test/language/..."
	source        string
	flags         []string
	features      []string
	includes      []string
	negativePhase string // "" where the test must end without an error
	negativeType  string
}

func (c *testCase) has(flag string) bool { return slices.Contains(c.flags, flag) }

// readCase reads a test and its front matter.
func readCase(root, path string) (*testCase, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	c := &testCase{path: path, source: string(text)}
	_, rest, ok := strings.Cut(c.source, "/*---")
	front, _, closed := strings.Cut(rest, "---*/")
	if !ok || !closed {
		return nil, fmt.Errorf("%s has no front matter", path)
	}
	c.flags = list(front, "flags")
	c.features = list(front, "features")
	c.includes = list(front, "includes")
	if _, negative, ok := strings.Cut(front, "\nnegative:"); ok {
		c.negativePhase, c.negativeType = scalar(negative, "phase"), scalar(negative, "type")
	}
	return c, nil
}

// list reads a list of the front matter, in either of YAML's two forms.
func list(front, key string) []string {
	_, rest, ok := strings.Cut(strings.ReplaceAll(front, "\r", "\n"), "\n"+key+":")
	if !ok {
		return nil
	}
	var items []string
	rest = strings.TrimLeft(rest, " ")
	if inline, ok := strings.CutPrefix(rest, "["); ok {
		inline, _, _ = strings.Cut(inline, "]")
		items = strings.Split(inline, ",")
	} else {
		_, rest, _ = strings.Cut(rest, "\n")
		for line := range strings.Lines(rest) {
			item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if !ok {
				break
			}
			items = append(items, item)
		}
	}
	var out []string
	for _, item := range items {
		item = strings.TrimSpace(item)
		if item != "" {
			out = append(out, item)
		}
	}
	return out
}

func scalar(block, key string) string {
	_, rest, _ := strings.Cut(block, key+":")
	rest, _, _ = strings.Cut(rest, "\n")
	return strings.TrimSpace(rest)
}

// declared finds the names that a file of the harness declares at its top level.
var declared = regexp.MustCompile(`(?m)^(?:async function\*?|function\*?|class|var|let|const) +([\w$]+)`)

// prelude stands before the harness. $DONE ends an asynchronous test; the function runs
// in one realm, so that there is nothing to make others with.
const prelude = `
var $done = {};
$done.promise = new Promise((resolve, reject) => { $done.resolve = resolve; $done.reject = reject });
function $DONE(e) { if (e) $done.reject(e); else $done.resolve() }
function print() {}
const $262 = {
	global: globalThis, gc() { throw new Test262Error("gc is not supported") },
	evalScript: (text) => (0, eval)(text),
	createRealm() { throw new Test262Error("createRealm is not supported") },
	detachArrayBuffer(b) { b.transfer(0) },
	agent: {},
};
`

// bundle returns the files of the function that is the test. The harness is modules that
// leave their names in the global scope. A script becomes the body of a function that the
// handler calls, with the global object as its receiver, as scripts have it; a module is a
// module of the function.
func (c *testCase) bundle(root string) (map[string][]byte, error) {
	files := map[string][]byte{"harness/prelude.js": exposed(prelude)}
	imports := `import "./harness/prelude.js";`
	for _, name := range append([]string{"assert.js", "sta.js"}, c.includes...) {
		if name == "doneprintHandle.js" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, "harness", name))
		if err != nil {
			return nil, err
		}
		if name == "sta.js" { // the name of an activation's error is that of the thrown object
			text = append(text, "\nTest262Error.prototype.name = \"Test262Error\";\n"...)
		}
		files["harness/"+name] = exposed(string(text))
		imports += fmt.Sprintf(" import %q;", "./harness/"+name)
	}
	asynchronous := c.has("async")
	handler := "export default () => { globalThis.$run?.();"
	if asynchronous {
		handler += " return $done.promise.then(() => 0);"
	}
	handler += " return 0 };\n"
	files["function.js"] = []byte(fmt.Sprintf("%s\nimport %q;\n%s", imports, "./"+c.path, handler))
	switch {
	case c.has("module"):
		files[c.path] = []byte(c.source)
	case c.negativePhase == "parse" || c.negativePhase == "early":
		files[c.path] = []byte("\"use strict\";\n" + c.source + "\nexport {};") // a module, as functions are
	default:
		files[c.path] = []byte("globalThis.$run = (function () { \"use strict\";\n" + c.source + "\n}).bind(globalThis);")
	}
	return files, c.addFixtures(root, files)
}

// exposed returns a module that leaves what a file of the harness declares in the global
// scope.
func exposed(text string) []byte {
	var b strings.Builder
	b.WriteString(text)
	for _, m := range declared.FindAllStringSubmatch(text, -1) {
		// Some of these are in functions.
		fmt.Fprintf(&b, "\nif (typeof %[1]s !== 'undefined') globalThis.%[1]s = %[1]s;", m[1])
	}
	b.WriteString("\nexport {};\n")
	return []byte(b.String())
}

// addFixtures adds the files beside a test that it may import.
func (c *testCase) addFixtures(root string, files map[string][]byte) error {
	if !c.has("module") && !slices.Contains(c.features, "dynamic-import") {
		return nil
	}
	return filepath.WalkDir(filepath.Join(root, filepath.Dir(c.path)), func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasSuffix(name, ".js") && !strings.Contains(filepath.Base(name), "_FIXTURE") && !c.imports(filepath.Base(name)) {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil || files[relative] != nil {
			return err
		}
		files[relative], err = os.ReadFile(name)
		return err
	})
}

// imports reports whether the test names another test.
func (c *testCase) imports(name string) bool { return strings.Contains(c.source, name) }
