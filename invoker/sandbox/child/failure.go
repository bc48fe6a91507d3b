package child

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
)

// thrown is a value that a script threw or rejected with.
type thrown struct {
	value     goja.Value
	unhandled bool // rejected by a promise nobody listened to
}

func (t *thrown) Error() string { return "the script threw" }

// refusedResult is a result that cannot be answered.
type refusedResult struct {
	kind    api.ErrorType
	message string
}

func (e *refusedResult) Error() string { return e.message }

// describe makes the record's error of how an activation failed.
func (a *activation) describe(err error) api.ActivationError {
	var refused *refusedResult
	var value *thrown
	var ex *goja.Exception
	var overflow *goja.StackOverflowError
	switch {
	case errors.Is(err, errUnsettled):
		return api.ActivationError{Type: api.ErrUnsettled, Message: err.Error()}
	case errors.As(err, &refused):
		return api.ActivationError{Type: refused.kind, Message: cut(refused.message, api.MaxErrorMessageBytes)}
	case errors.As(err, &overflow):
		return api.ActivationError{
			Type:    api.ErrException,
			Message: "RangeError: Maximum call stack size exceeded",
			Stack:   cut(cleanStack(frames(overflow.Stack())), api.MaxErrorStackBytes),
		}
	case errors.As(err, &value):
		return a.exception(value.value, nil, value.unhandled)
	case errors.As(err, &ex):
		return a.exception(ex.Value(), ex.Stack(), false)
	}
	return api.ActivationError{Type: api.ErrException, Message: cut(err.Error(), api.MaxErrorMessageBytes)}
}

// exception describes a value that was thrown, which may be anything; reading
// it runs script code (getters, toString), which may throw in turn.
func (a *activation) exception(v goja.Value, stack []goja.StackFrame, unhandled bool) api.ActivationError {
	e := api.ActivationError{Type: api.ErrException}
	err := a.realm.try(func() {
		e.Message = thrownMessage(a.realm, v)
		if obj, ok := v.(*goja.Object); ok {
			if s, ok := stringProperty(obj, "stack"); ok {
				e.Stack = cleanStack(s)
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
	e.Message = cut(e.Message, api.MaxErrorMessageBytes)
	e.Stack = cut(e.Stack, api.MaxErrorStackBytes)
	e.Code = cut(e.Code, maxErrorCode)
	return e
}

const maxErrorCode = 128

// thrownMessage says what was thrown in one text: an error's name and message,
// the name left out where it is only "Error".
func thrownMessage(r *realm, v goja.Value) string {
	obj, ok := v.(*goja.Object)
	if !ok {
		if s, ok := v.(goja.String); ok {
			return s.String()
		}
		if v == nil {
			v = goja.Undefined()
		}
		return "the function threw " + v.String()
	}
	message, ok := stringProperty(obj, "message")
	if !ok {
		if text, ok, err := r.encodeJSON(obj, api.MaxErrorMessageBytes); err == nil && ok {
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

// frames writes a stack in goja's own form, which cleanStack reads.
func frames(stack []goja.StackFrame) string {
	var b strings.Builder
	for i, f := range stack {
		if i == maxStackFrames {
			break
		}
		b.WriteString("\tat ")
		if name := f.FuncName(); name != "" && name != "<anonymous>" {
			b.WriteString(name)
			b.WriteString(" (" + f.Position().String() + "(0))")
		} else {
			b.WriteString(f.Position().String() + "(0)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const maxStackFrames = 100

// cleanStack turns goja's form of a stack, "\tat f (function.js:3:9(12))", into
// the usual "    at f (function.js:3:9)", without the frames that are not the
// user's.
func cleanStack(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	kept := lines[:0]
	for _, line := range lines {
		frame, ok := strings.CutPrefix(line, "\tat ")
		if !ok {
			kept = append(kept, line)
			continue
		}
		if strings.Contains(frame, scriptName+":") {
			continue
		}
		kept = append(kept, "    at "+withoutPC(frame))
	}
	return strings.Join(kept, "\n")
}

// withoutPC drops goja's instruction counter from a frame: f.js:3:9(12).
func withoutPC(frame string) string {
	tail := ""
	if f, ok := strings.CutSuffix(frame, "))"); ok {
		frame, tail = f, ")"
	} else if f, ok := strings.CutSuffix(frame, ")"); ok && !strings.HasSuffix(f, "(native") {
		frame = f
	} else {
		return frame
	}
	at := strings.LastIndexByte(frame, '(')
	if at < 0 {
		return frame + tail
	}
	return frame[:at] + tail
}

// cut shortens s to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func errorJSON(e api.ActivationError) []byte {
	b, err := json.Marshal(e)
	if err != nil { // strings always encode
		return []byte(`{"type":"Exception","message":"unknown"}`)
	}
	return b
}
