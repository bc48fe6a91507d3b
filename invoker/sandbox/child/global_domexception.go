package child

import "github.com/dop251/goja"

// domException makes the class DOMException
// (https://webidl.spec.whatwg.org/#idl-DOMException): an Error whose name is the kind of
// failure, and whose code is the legacy number of that name.
func domException(r *realm) goja.Value { return r.domException().ctor }

// domException defines the class, once in a realm. It is no class[T] because its objects
// are Errors, with a stack, and not objects with a Go state.
func (r *realm) domException() built {
	const class = "DOMException"
	if b, ok := r.classes[class]; ok {
		return b
	}
	var b built
	b.ctor = r.vm.ToValue(func(call goja.ConstructorCall) *goja.Object {
		message, name := "", "Error"
		if v := call.Argument(0); !goja.IsUndefined(v) {
			message = v.String()
		}
		if v := call.Argument(1); !goja.IsUndefined(v) {
			name = v.String()
		}
		return r.newDOMException(name, message)
	}).(*goja.Object)
	b.proto = b.ctor.Get("prototype").(*goja.Object)
	r.hidden(b.ctor, "name", r.vm.ToValue(class))
	must(b.proto.SetPrototype(r.newNamedError("Error", "").Prototype()))
	if r.classes == nil {
		r.classes = make(map[string]built)
	}
	r.classes[class] = b
	return b
}

// legacyCode returns the legacy number of a name that the platform throws, 0 for others, as
// WebIDL has it for newer names.
func legacyCode(name string) int {
	switch name {
	case "AbortError":
		return 20
	case "TimeoutError":
		return 23
	case "DataCloneError":
		return 25
	case "InvalidCharacterError":
		return 5
	case "NotSupportedError":
		return 9
	case "InvalidAccessError":
		return 15
	case "QuotaExceededError":
		return 22
	}
	return 0
}

// newDOMException makes a DOMException, to be thrown or to be a reason.
func (r *realm) newDOMException(name, message string) *goja.Object {
	e := r.newNamedError("Error", message)
	must(e.SetPrototype(r.domException().proto))
	r.hidden(e, "name", r.vm.ToValue(name))
	r.hidden(e, "code", r.vm.ToValue(legacyCode(name)))
	return e
}
