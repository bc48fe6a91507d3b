package bundle

import "strings"

// CompilerText returns a message of the compiler (esbuild) in the words of the platform. It
// removes the prefix namespace from the names of files, and says "the sandbox" for the target
// that the compiler was configured with.
//
//	No matching export in "bundle:lib.ts" for import "x"
//	    No matching export in "lib.ts" for import "x"
//	Transforming async generator functions to the configured target environment ("esnext" + 6 overrides) is not supported yet
//	    the sandbox does not support async generator functions here
func CompilerText(text, namespace string) string {
	if namespace != "" {
		text = strings.ReplaceAll(text, `"`+namespace+":", `"`)
	}
	before, after, found := strings.Cut(text, "the configured target environment")
	if !found {
		return text
	}
	if strings.HasPrefix(after, " (") {
		_, after, _ = strings.Cut(after, ")")
	}
	feature, transformed := strings.CutPrefix(before, "Transforming ")
	if transformed {
		return "the sandbox does not support " + strings.TrimSuffix(feature, " to ") + " here"
	}
	return before + "the sandbox" + after
}
