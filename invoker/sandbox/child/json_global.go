package child

import "github.com/dop251/goja"

// namesJSON reports whether a script may call JSON.parse.
func namesJSON(script []byte) bool { return namesAny(script, []string{"JSON"}) }

// installJSON replaces JSON.parse, whose errors in goja have the texts of Go's package, by the
// parser of this package.
func (r *realm) installJSON() {
	object := r.vm.GlobalObject().Get("JSON").(*goja.Object)
	native, _ := goja.AssertFunction(object.Get("parse"))
	parse := r.newFunction("parse", 2, func(c goja.FunctionCall) goja.Value {
		text := r.text(c.Argument(0))
		v := r.parsed([]byte(text.String()))
		if _, revives := goja.AssertFunction(c.Argument(1)); !revives {
			return v
		}
		v, err := native(c.This, text, c.Argument(1))
		must(err)
		return v
	})
	must(object.DefineDataProperty("parse", parse, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
}
