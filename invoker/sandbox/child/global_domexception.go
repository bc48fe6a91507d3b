package child

import (
	"slices"

	"github.com/dop251/goja"
)

// domException makes the class DOMException
// (https://webidl.spec.whatwg.org/#idl-DOMException): an Error whose name is the kind of
// failure, and whose code is the legacy number of that name.
func domException(r *realm) goja.Value { return r.domException().ctor }

// domError is the state of a DOMException.
type domError struct{ name, message string }

// legacyNames are the names that have a legacy number, from 1; "" for numbers without a name
// of today.
func legacyNames() []string {
	return []string{
		"IndexSizeError", "", "HierarchyRequestError", "WrongDocumentError", "InvalidCharacterError", "",
		"NoModificationAllowedError", "NotFoundError", "NotSupportedError", "InUseAttributeError", "InvalidStateError",
		"SyntaxError", "InvalidModificationError", "NamespaceError", "InvalidAccessError", "", "TypeMismatchError",
		"SecurityError", "NetworkError", "AbortError", "URLMismatchError", "QuotaExceededError", "TimeoutError",
		"InvalidNodeTypeError", "DataCloneError",
	}
}

// legacyConstants are the names of the constants for the legacy numbers, from 1.
func legacyConstants() []string {
	return []string{
		"INDEX_SIZE_ERR", "DOMSTRING_SIZE_ERR", "HIERARCHY_REQUEST_ERR", "WRONG_DOCUMENT_ERR", "INVALID_CHARACTER_ERR",
		"NO_DATA_ALLOWED_ERR", "NO_MODIFICATION_ALLOWED_ERR", "NOT_FOUND_ERR", "NOT_SUPPORTED_ERR", "INUSE_ATTRIBUTE_ERR",
		"INVALID_STATE_ERR", "SYNTAX_ERR", "INVALID_MODIFICATION_ERR", "NAMESPACE_ERR", "INVALID_ACCESS_ERR",
		"VALIDATION_ERR", "TYPE_MISMATCH_ERR", "SECURITY_ERR", "NETWORK_ERR", "ABORT_ERR", "URL_MISMATCH_ERR",
		"QUOTA_EXCEEDED_ERR", "TIMEOUT_ERR", "INVALID_NODE_TYPE_ERR", "DATA_CLONE_ERR",
	}
}

// domException defines the class, once in a realm. It is no class[T] because its objects
// are Errors, with a stack.
func (r *realm) domException() built {
	const name = "DOMException"
	if b, ok := r.classes[name]; ok {
		return b
	}
	var b built
	b.ctor = r.vm.ToValue(func(call goja.ConstructorCall) *goja.Object {
		message, kind := "", "Error"
		if v := call.Argument(0); !goja.IsUndefined(v) {
			message = r.text(v).String()
		}
		if v := call.Argument(1); !goja.IsUndefined(v) {
			kind = r.text(v).String()
		}
		e := r.newDOMException(kind, message)
		if call.NewTarget != nil {
			if proto, ok := call.NewTarget.Get("prototype").(*goja.Object); ok { // of a class that extends this one
				must(e.SetPrototype(proto))
			}
		}
		return e
	}).(*goja.Object)
	r.onlyNew(b.ctor, name)
	b.proto = b.ctor.Get("prototype").(*goja.Object)
	r.readOnly(b.ctor, "name", r.vm.ToValue(name))
	must(b.ctor.DefineDataProperty("prototype", b.proto, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_FALSE))
	must(b.proto.SetPrototype(r.newNamedError("Error", "").Prototype()))
	members := &class[*domError]{name: name, members: []member[*domError]{
		{name: "name", get: func(r *realm, e *domError) goja.Value { return r.vm.ToValue(e.name) }},
		{name: "message", get: func(r *realm, e *domError) goja.Value { return r.vm.ToValue(e.message) }},
		{name: "code", get: func(r *realm, e *domError) goja.Value { return r.vm.ToValue(legacyCode(e.name)) }},
	}}
	for i := range members.members {
		members.add(r, b.proto, &members.members[i])
	}
	must(b.proto.DefineDataPropertySymbol(goja.SymToStringTag, r.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	for i, constant := range legacyConstants() {
		for _, o := range []*goja.Object{b.ctor, b.proto} {
			must(o.DefineDataProperty(constant, r.vm.ToValue(i+1), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
		}
	}
	if r.classes == nil {
		r.classes = make(map[string]built)
	}
	r.classes[name] = b
	return b
}

// legacyCode returns the legacy number of a name, 0 for those that have none.
func legacyCode(name string) int {
	if name == "" {
		return 0
	}
	return slices.Index(legacyNames(), name) + 1
}

// newDOMException makes a DOMException, to be thrown or to be a reason.
func (r *realm) newDOMException(name, message string) *goja.Object {
	e := r.newNamedError("Error", message)
	must(e.SetPrototype(r.domException().proto))
	must(e.Delete("message")) // the class has it
	r.attach(e, &domError{name, message})
	return e
}
