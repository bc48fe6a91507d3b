package child

import (
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// logBudget is the number of bytes that an activation may still log, of api.MaxLogBytes. A
// record costs its text and wire.LogRecordOverhead. The first record that does not fit ends
// the log: later, shorter ones are dropped too, so that the log has no holes.
type logBudget struct {
	left      int
	truncated bool
	flushed   time.Time
	console   consoleState
}

// logInterval is how long a line may wait while the script runs without returning to the
// loop.
const logInterval = 200 * time.Millisecond

func newLogBudget() logBudget { return logBudget{left: api.MaxLogBytes, flushed: time.Now()} }

// The levels, as indexes into wire.Levels.
const (
	levelDebug uint8 = iota
	levelInfo
	levelWarn
	levelError
)

// log records a line of the activation, or drops it once the budget is used up. isJSON
// reports that text is a JSON value. Logging is an effect: a module that logs at its top
// level is evaluated in each activation.
func (r *realm) log(level uint8, isJSON bool, text []byte) {
	if !r.effect() {
		return
	}
	a := r.act
	cost := len(text) + wire.LogRecordOverhead
	if a.logs.truncated || cost > a.logs.left {
		a.logs.truncated = true
		return
	}
	a.logs.left -= cost
	now := time.Now()
	a.server.link.log(wire.LogRecord{TSMS: now.UnixMilli(), Level: level, JSON: isJSON, Text: text})
	if now.Sub(a.logs.flushed) > logInterval {
		a.logs.flushed = now
		_ = a.server.link.flush() // kept in link.err; the next send reports it
	}
}

// console is the standard one (https://console.spec.whatwg.org), with Node's formats. Of
// its methods it has log, info, debug, warn, error and trace; log is info.
//
//	console.log("%s has %d", "a", 1, {b: 2})   a text, "a has 1 { b: 2 }"
//	console.log({b: 2})                        the JSON {"b":2}
//	console.log({b: 2}, 3)                     a text, "{ b: 2 } 3"
func console(r *realm) goja.Value {
	o := r.newNamespace(append([]row{
		{"log", consoleMethod("log", levelInfo)},
		{"info", consoleMethod("info", levelInfo)},
		{"debug", consoleMethod("debug", levelDebug)},
		{"warn", consoleMethod("warn", levelWarn)},
		{"error", consoleMethod("error", levelError)},
		{"trace", function("trace", 0, consoleTrace)},
	}, consoleRows()...)).(*goja.Object)
	proto := r.vm.NewObject() // the object has no symbols of its own
	must(proto.DefineDataPropertySymbol(goja.SymToStringTag, r.vm.ToValue("console"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	must(o.SetPrototype(proto))
	return o
}

// consoleMethod makes the method of a level.
func consoleMethod(name string, level uint8) func(*realm) goja.Value {
	return function(name, 0, func(r *realm, call goja.FunctionCall) goja.Value {
		r.logArguments(level, call.Arguments)
		return goja.Undefined()
	})
}

// consoleTrace logs a message and the script's stack, at the level debug.
func consoleTrace(r *realm, call goja.FunctionCall) goja.Value {
	text := "Trace"
	if len(call.Arguments) > 0 {
		text += ": " + r.format(call.Arguments)
	}
	stack := cleanStack(frames(r.vm.CaptureCallStack(0, nil)[1:])) // without trace itself
	r.log(levelDebug, false, []byte(strings.TrimRight(text+"\n"+stack, "\n")))
	return goja.Undefined()
}

// logArguments logs one object as JSON, and everything else as text.
func (r *realm) logArguments(level uint8, args []goja.Value) {
	if len(args) == 1 {
		if text, ok := r.plainJSON(args[0]); ok {
			r.log(level, true, text)
			return
		}
	}
	text := r.format(args)
	if r.act != nil && r.act.logs.console.indent != "" {
		indent := r.act.logs.console.indent
		text = indent + strings.ReplaceAll(text, "\n", "\n"+indent)
	}
	r.log(level, false, []byte(text))
}

// plainJSON returns the JSON of a plain object or array. ok is false for other values, and
// for those that are not JSON: they are logged as text.
func (r *realm) plainJSON(v goja.Value) ([]byte, bool) {
	obj, ok := v.(*goja.Object)
	if !ok {
		return nil, false
	}
	if class := obj.ClassName(); class != "Object" && class != "Array" {
		return nil, false
	}
	text, ok, err := r.logJSON(obj, api.MaxLogBytes)
	if err != nil && uncatchable(err) {
		panic(err)
	}
	return text, ok && err == nil
}
