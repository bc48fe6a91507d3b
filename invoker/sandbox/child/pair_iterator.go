package child

import "github.com/dop251/goja"

// pairIterator iterates over the pairs of a Headers or a URLSearchParams
// (https://webidl.spec.whatwg.org/#dfn-default-iterator-object). It counts, so that it follows
// changes of the list.
type pairIterator struct {
	list   func() [][2]string // the pairs at this time
	next   int
	column int
}

// bothColumns is the column of an iterator that returns whole pairs.
const bothColumns = -1

// pairIterator makes an iterator over the names (column 0), the values (1) or the pairs of a
// list. name is that of the class.
func (r *realm) pairIterator(name string, list func() [][2]string, column int) goja.Value {
	c := &class[*pairIterator]{
		name:    name + " Iterator",
		members: []member[*pairIterator]{{name: "next", call: nextPair}},
	}
	if _, ok := r.classes[c.name]; !ok {
		b := c.define(r)
		must(b.proto.Delete("constructor"))
		must(b.proto.SetPrototype(r.iterator(nil).(*goja.Object).Prototype().Prototype()))
	}
	return c.instance(r, &pairIterator{list: list, column: column})
}

func nextPair(r *realm, it *pairIterator, _ goja.FunctionCall) goja.Value {
	list := it.list()
	result := r.vm.NewObject()
	if it.next >= len(list) {
		must(result.Set("value", goja.Undefined()))
		must(result.Set("done", true))
		return result
	}
	pair := list[it.next]
	it.next++
	if it.column == bothColumns {
		must(result.Set("value", r.vm.NewArray(pair[0], pair[1])))
	} else {
		must(result.Set("value", pair[it.column]))
	}
	must(result.Set("done", false))
	return result
}

// eachPair is forEach(callback, thisArg) over pairs: callback(value, name, this).
func (r *realm) eachPair(list func() [][2]string, call goja.FunctionCall) goja.Value {
	callback, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		panic(r.vm.NewTypeError("forEach: the callback must be a function"))
	}
	self := call.Argument(1)
	for i := 0; i < len(list()); i++ {
		p := list()[i]
		_, err := callback(self, r.vm.ToValue(p[1]), r.vm.ToValue(p[0]), call.This)
		must(err)
	}
	return goja.Undefined()
}
