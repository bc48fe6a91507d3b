package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
)

// thrown is a value that a script threw or rejected with. It may be any value, not only an
// Error.
type thrown struct {
	value     goja.Value
	unhandled bool // a promise was rejected without a handler
}

func (t *thrown) Error() string { return "the script threw" }

// refusedResult is a result that cannot be answered: not JSON (ErrResultInvalid) or too
// large (ErrResultTooLarge).
type refusedResult struct {
	kind    api.ErrorType
	message string
}

func (e *refusedResult) Error() string { return e.message }

// describe makes the record's error of how an activation failed. It may run script code, so
// the caller keeps the deadline running. Interrupts never get here: their cause decides the
// outcome.
func (a *activation) describe(err error) api.ActivationError {
	var refused *refusedResult
	var value *thrown
	var ex *goja.Exception
	var overflow *goja.StackOverflowError
	switch {
	case errors.Is(err, errUnsettled):
		return api.ActivationError{Type: api.ErrUnsettled, Message: err.Error()}
	case errors.As(err, &refused):
		return api.ActivationError{Type: refused.kind, Message: api.TruncateText(refused.message, api.MaxErrorMessageBytes)}
	case errors.As(err, &overflow):
		return api.ActivationError{
			Type:    api.ErrException,
			Message: "RangeError: Maximum call stack size exceeded",
			Stack:   api.TruncateText(cleanStack(frames(overflow.Stack())), api.MaxErrorStackBytes),
		}
	case errors.As(err, &value):
		return a.exception(value.value, nil, value.unhandled)
	case errors.As(err, &ex):
		return a.exception(ex.Value(), ex.Stack(), false)
	}
	return api.ActivationError{Type: api.ErrException, Message: api.TruncateText(err.Error(), api.MaxErrorMessageBytes)}
}

// exception describes a value that was thrown, which may be anything; reading
// it runs script code (getters, toString), which may throw in turn.
//
// For throw new Error("boom") in a function handle, on the second line of function.js, it is
// the type Exception with the message "boom" and a stack that has the line
//
//	at handle (function.js:2:9)
//
// and the code of the value, if it has a property code that is a string.
func (a *activation) exception(v goja.Value, stack []goja.StackFrame, unhandled bool) api.ActivationError {
	e := api.ActivationError{Type: api.ErrException}
	err := a.realm.try(func() {
		e.Message = thrownMessage(a.realm, v)
		if obj, ok := v.(*goja.Object); ok {
			if s, ok := stringProperty(obj, "stack"); ok {
				e.Stack = a.realm.withCauses(obj, cleanStack(s))
			}
			e.Code, _ = stringProperty(obj, "code")
		}
	})
	if err != nil {
		e.Message = "the thrown value cannot be shown: reading it throws"
	}
	if e.Stack == "" && len(stack) > 0 {
		e.Stack = cleanStack(frames(stack))
	}
	if unhandled {
		e.Message = "Unhandled promise rejection: " + e.Message
	}
	e.Message = api.TruncateText(e.Message, api.MaxErrorMessageBytes)
	e.Stack = api.TruncateText(e.Stack, api.MaxErrorStackBytes)
	e.Code = api.TruncateText(e.Code, api.MaxErrorCodeBytes)
	return e
}

// A stack shows up to maxCauses causes, and up to maxErrors errors of an AggregateError.
const (
	maxCauses = 5
	maxErrors = 5
)

// withCauses adds the stacks of an error's causes, and of the errors of an AggregateError, to
// its own.
func (r *realm) withCauses(obj *goja.Object, stack string) string {
	stack += r.aggregated(obj)
	for range maxCauses {
		cause := obj.Get("cause")
		if cause == nil || goja.IsUndefined(cause) || goja.IsNull(cause) {
			break
		}
		stack += "\nCaused by: "
		next, ok := cause.(*goja.Object)
		if !ok {
			return stack + thrownMessage(r, cause)
		}
		stack += r.stackOf(next) + r.aggregated(next)
		obj = next
	}
	return stack
}

// stackOf returns the stack of an error, or the text of another value.
func (r *realm) stackOf(v goja.Value) string {
	if obj, ok := v.(*goja.Object); ok {
		if s, ok := stringProperty(obj, "stack"); ok {
			return cleanStack(s)
		}
	}
	return thrownMessage(r, v)
}

// aggregated returns the stacks of the errors of an AggregateError, each on a new line, and ""
// for any other value.
//
//	Error 1 of 2: TypeError: no
//	    at handle (function.js:2:9)
func (r *realm) aggregated(obj *goja.Object) string {
	if obj.ClassName() != "Error" {
		return ""
	}
	list, ok := obj.Get("errors").(*goja.Object)
	if !ok || list.ClassName() != "Array" {
		return ""
	}
	var b strings.Builder
	n := list.Get("length").ToInteger()
	for i := range min(n, maxErrors) {
		fmt.Fprintf(&b, "\nError %d of %d: %s", i+1, n, r.stackOf(list.Get(strconv.FormatInt(i, 10))))
	}
	return b.String()
}

// thrownMessage returns the text of a thrown value: an error's name and message, the name
// left out if it is only "Error". A string is its own text; another object is shown as
// JSON, or as its own toString has it.
func thrownMessage(r *realm, v goja.Value) string {
	obj, ok := v.(*goja.Object)
	if !ok {
		if s, ok := v.(goja.String); ok {
			return s.String()
		}
		switch v := v.(type) {
		case nil:
			return "the function threw undefined"
		case *goja.Symbol:
			return "the function threw Symbol(" + v.String() + ")"
		}
		return "the function threw " + v.String()
	}
	message, ok := stringProperty(obj, "message")
	if !ok {
		text, ok, err := r.encodeJSON(obj, api.MaxErrorMessageBytes)
		if err != nil && uncatchable(err) {
			panic(err)
		}
		if err == nil && ok {
			return "the function threw " + string(text)
		}
		return "the function threw " + obj.String()
	}
	name, ok := stringProperty(obj, "name")
	switch {
	case !ok || name == "" || name == "Error":
		if message == "" {
			return "Error"
		}
		return message
	case message == "":
		return name
	}
	return name + ": " + message
}

// stringProperty reads a property that is a string, inherited or not.
func stringProperty(obj *goja.Object, name string) (string, bool) {
	s, ok := obj.Get(name).(goja.String)
	if !ok {
		return "", false
	}
	return s.String(), true
}

// errorJSON encodes the body of a Done frame with OutcomeError.
func errorJSON(e api.ActivationError) []byte {
	b, err := json.Marshal(e)
	if err != nil { // strings always encode
		return []byte(`{"type":"Exception","message":"unknown"}`)
	}
	return b
}
