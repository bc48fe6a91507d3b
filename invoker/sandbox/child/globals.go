package child

import "github.com/dop251/goja"

// globalTable returns the globals that a script can reach beside the language itself. It is
// the only way in: a script cannot reach a Go function that is neither a row here nor a
// member of a row's value. A row's value is made in each realm at the first use of its
// name.
func globalTable() []row {
	return []row{
		{"console", console},
		{"self", func(r *realm) goja.Value { return r.vm.GlobalObject() }},
		{"cs", platform},
		{"fetch", function("fetch", 1, fetch)},
		{"setTimeout", counted("setTimeout", setTimeout)},
		{"clearTimeout", function("clearTimeout", 0, clearTimer)},
		{"setInterval", counted("setInterval", setInterval)},
		{"clearInterval", function("clearInterval", 0, clearTimer)},
		{"setImmediate", function("setImmediate", 1, setImmediate)},
		{"clearImmediate", function("clearImmediate", 1, clearTimer)},
		{"queueMicrotask", counted("queueMicrotask", queueMicrotask)},
		{"atob", counted("atob", atob)},
		{"btoa", counted("btoa", btoa)},
		{"structuredClone", counted("structuredClone", structuredClone)},
		{"crypto", func(r *realm) goja.Value { return cryptoClass().instance(r, &webCrypto{}) }},
		cryptoClass().global(),
		subtleClass().global(),
		{"DOMException", domException},
		{"Intl", intlObject},
		urlClass().global(),
		paramsClass().global(),
		urlPatternClass().global(),
		headersClass().global(),
		requestClass().global(),
		responseClass().global(),
		signalClass().global(),
		controllerClass().global(),
		encoderClass().global(),
		decoderClass().global(),
		keyClass().global(),
	}
}

// rowSet is a set of rows of a table, which has at most maxGlobals.
type rowSet [maxGlobals / 64]uint64

const maxGlobals = 128

func (s *rowSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *rowSet) add(i int)      { s[i/64] |= 1 << (i % 64) }

// globals is the prototype of the global object, and makes each global when it is first
// looked for. The value becomes the global object's own property, so that scripts may
// replace or delete it; realm.built keeps a deleted one from coming back.
type globals struct {
	realm *realm
	rows  []row
}

// installGlobals puts the table behind the global object. The language's own globals are
// properties of that object and come first.
func (r *realm) installGlobals() {
	global := r.vm.GlobalObject()
	r.beyond = r.vm.NewDynamicObject(&globals{r, r.program.globals})
	must(global.SetPrototype(r.beyond))
	for _, name := range r.program.eventHandlers {
		must(global.DefineDataProperty(name, goja.Null(), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
}

// find returns the row of a global that has not been made yet, -1 for none.
func (g *globals) find(key string) int {
	for i := range g.rows {
		if g.rows[i].name == key && !g.realm.built.has(i) {
			return i
		}
	}
	return -1
}

// Get makes a global. It is called for a name that the global object does not have.
func (g *globals) Get(key string) goja.Value {
	i := g.find(key)
	if i < 0 {
		return nil
	}
	g.realm.built.add(i)
	v := g.rows[i].make(g.realm)
	must(g.realm.vm.GlobalObject().DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.ToFlag(enumerated(key))))
	return v
}

// enumerated reports whether a global is enumerable: operations and attributes are, classes
// and namespaces are not (WebIDL, section 3.8).
func enumerated(name string) bool { return name[0] >= 'a' && name[0] <= 'z' && name != "console" }

func (g *globals) Has(key string) bool         { return g.find(key) >= 0 }
func (g *globals) Set(string, goja.Value) bool { return false }
func (g *globals) Delete(string) bool          { return true }
func (g *globals) Keys() []string              { return nil }
