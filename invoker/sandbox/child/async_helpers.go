package child

import "bytes"

// asyncHelpers is the global object with the functions of additions/asyncfrom.js.
const asyncHelpers = "__cs_async"

// replaceAsyncHelpers puts functions of ours in the place of esbuild's for yield* and for
// await. A script with helpers of another bundler's run keeps these, which belong together.
func replaceAsyncHelpers(script []byte) (edits []edit) {
	insert := func(definition, text string) {
		if bytes.Count(script, []byte("\n"+definition)) == 1 {
			at := bytes.Index(script, []byte("\n"+definition)) + 1 + len(definition)
			edits = append(edits, edit{at, at, text})
		}
	}
	insert("var __forAwait = ", asyncHelpers+".forAwait, __cs_forAwait = ")
	if bytes.Count(script, []byte("function(promise, isYieldStar)")) == 1 && bytes.Contains(script, []byte("\nvar __await = function(promise, isYieldStar)")) {
		insert("var __yieldStar = ", asyncHelpers+".yieldStar(__await), __cs_yieldStar = ")
	}
	return edits
}
