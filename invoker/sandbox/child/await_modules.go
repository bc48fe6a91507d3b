package child

import "github.com/dop251/goja"

// settledModules waits for modules that await at their top level, and returns what they
// export. Ahead of an activation nothing can be waited for: such modules are evaluated
// within it.
func (r *realm) settledModules(exported goja.Value) (goja.Value, error) {
	obj, ok := exported.(*goja.Object)
	if !ok || !isPromise(obj) {
		return exported, nil
	}
	if r.act != nil {
		return r.act.await(exported)
	}
	switch p := obj.Export().(*goja.Promise); p.State() {
	case goja.PromiseStateFulfilled:
		return p.Result(), nil
	default:
		r.effect()
		return nil, errUnsettled
	}
}
