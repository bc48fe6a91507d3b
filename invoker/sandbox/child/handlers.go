package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// handlers are the functions of a default export that is an object, as in Workers:
//
//	export default { fetch(request, env, ctx), scheduled(event, env, ctx), queue(batch, env, ctx) }
//
// scheduled is called for ticks of schedules, queue for jobs, and fetch for everything else.
// An asynchronous invocation is a job; without queue it calls fetch. An http.Server is such an
// object, too: its listeners of the event request are then fetch.
type handlers struct {
	object *goja.Object
	byName map[string]goja.Callable
	serves bool // fetch is that of an http.Server
}

// handlersOf returns the handlers of an exported value that is no function. Errors: the value
// has no handler, or its getters threw.
func (r *realm) handlersOf(exported goja.Value) (*handlers, error) {
	obj, ok := exported.(*goja.Object)
	if !ok {
		return nil, errors.New(noHandler(r.program.assign.Handler))
	}
	h := &handlers{object: obj, byName: map[string]goja.Callable{}}
	err := r.try(func() {
		for _, name := range []string{api.HandlerFetch, api.HandlerScheduled, api.HandlerQueue} {
			if f, ok := goja.AssertFunction(obj.Get(name)); ok {
				h.byName[name] = f
			}
		}
		if h.byName[api.HandlerFetch] == nil && r.isServer(obj) {
			h.byName[api.HandlerFetch], h.serves = r.serverHandler(), true
		}
	})
	if err == nil && len(h.byName) == 0 {
		err = errors.New(noHandler(r.program.assign.Handler))
	}
	return h, err
}

// handlerNames returns the handlers of the program, as a list in JSON.
func (r *realm) handlerNames() []byte {
	names := []string{api.HandlerFunction}
	if r.handlers != nil {
		names = slices.Sorted(maps.Keys(r.handlers.byName))
	}
	out, _ := json.Marshal(names) // strings always encode
	return out
}

// noHandler is the message for an export that cannot handle events. name is the export's.
func noHandler(name string) string {
	if name == "" {
		name = "default"
	}
	return fmt.Sprintf("the handler %q is neither a function nor an object with a method fetch, scheduled or queue", name)
}

// call calls the handler for the activation. Errors: there is none for its trigger.
func (h *handlers) call(a *activation, event []byte) (goja.Value, error) {
	var trigger api.Trigger
	if err := json.Unmarshal(a.head.Trigger, &trigger); err != nil {
		return nil, err
	}
	name := api.HandlerFetch
	switch {
	case a.isBatch():
		name = api.HandlerQueue
	case trigger.Type == api.TriggerSchedule:
		name = api.HandlerScheduled
	case len(a.head.Job) > 0 && (h.byName[api.HandlerQueue] != nil || trigger.Type == api.TriggerQueue):
		name = api.HandlerQueue
	}
	f := h.byName[name]
	if f == nil {
		return nil, fmt.Errorf("the exported object has no method %s, which an invocation by the trigger %s calls", name, trigger.Type)
	}
	r := a.realm
	var input, env, ctx goja.Value
	err := r.try(func() {
		switch {
		case name == api.HandlerScheduled:
			input = r.scheduledEvent(a, trigger, event)
		case name == api.HandlerQueue:
			input = r.messageBatch(a, event)
		case h.serves:
			input = r.exchangeOf(a, event)
		default:
			input = r.requestOf(a, event)
		}
		env, ctx = csEnv(r), r.newContext()
	})
	if err != nil {
		return nil, err
	}
	bound := func(_ goja.Value, args ...goja.Value) (goja.Value, error) { return f(h.object, args...) }
	return r.callLoop(bound, input, env, ctx)
}

// checked returns the result of a handler: that of fetch must be a Response, the others have
// none.
func (h *handlers) checked(a *activation, value goja.Value) (goja.Value, error) {
	if a.batch != nil {
		return goja.Undefined(), a.batch.itemFailures(value)
	}
	if !a.fetches {
		return goja.Undefined(), nil
	}
	var ok bool
	if err := a.realm.try(func() { _, ok = stateOf[*response](value) }); err != nil {
		return nil, err
	}
	if !ok {
		return nil, &refusedResult{api.ErrResultInvalid, "the handler fetch must return a Response"}
	}
	return value, nil
}

// scheduledEvent makes the argument of scheduled: the time for which the tick was due, the
// name of the schedule with its expression, and its event. cron is undefined if the schedule
// has an interval.
func (r *realm) scheduledEvent(a *activation, trigger api.Trigger, event []byte) goja.Value {
	var source api.ScheduleSource
	if err := json.Unmarshal(trigger.Source, &source); err != nil {
		panic(r.newError(api.CodeInternal, "the description of the tick cannot be read"))
	}
	decided := false
	noRetry := func(goja.FunctionCall) goja.Value {
		if !decided {
			decided = true
			a.decide(wire.Verdict{NoRetry: true})
		}
		return goja.Undefined()
	}
	var cron goja.Value = goja.Undefined()
	if source.Cron != "" {
		cron = r.vm.ToValue(source.Cron)
	}
	out := r.vm.NewObject()
	r.setAll(out, []property{
		{"type", api.HandlerScheduled}, {"scheduledTime", source.TickMS}, {"cron", cron}, {"schedule", source.Schedule},
		{"event", r.parsed(event)}, {"noRetry", r.newFunction("noRetry", 0, noRetry)},
	})
	return out
}

// property is a member of an object that the platform makes.
type property struct {
	name  string
	value any
}

// setAll defines enumerable properties.
func (r *realm) setAll(obj *goja.Object, properties []property) {
	for _, p := range properties {
		must(obj.DefineDataProperty(p.name, r.vm.ToValue(p.value), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
}

// unusableHandler returns the problem of a script whose handler is written as a value that can
// be none: a literal, or an object without the methods of handlers. It knows only what the text
// shows; evaluate finds the rest. A variable that is named elsewhere may have changed.
func unusableHandler(tree *ast.Program, script []byte) *wire.Problem {
	values := map[string]ast.Expression{}
	bound := ""
	for _, s := range wrapped(tree) {
		var list []*ast.Binding
		switch n := s.(type) {
		case *ast.VariableStatement:
			list = n.List
		case *ast.LexicalDeclaration:
			list = n.List
		case *ast.ExpressionStatement:
			assign, ok := n.Expression.(*ast.AssignExpression)
			if !ok {
				continue
			}
			name, ok := assign.Right.(*ast.Identifier)
			if target, is := assign.Left.(*ast.Identifier); ok && is && target.Name.String() == bindName {
				bound = name.Name.String()
			}
		}
		for _, b := range list {
			if name, ok := b.Target.(*ast.Identifier); ok {
				values[name.Name.String()] = b.Initializer
			}
		}
	}
	value := values[bound]
	changed := uses(script, bound) > 2
	for range len(values) { // a chain of variables, which may be a circle
		name, ok := value.(*ast.Identifier)
		if !ok {
			break
		}
		value = values[name.Name.String()]
		changed = changed || uses(script, name.Name.String()) > 2
	}
	if changed {
		return nil
	}
	switch n := value.(type) {
	case *ast.NumberLiteral, *ast.StringLiteral, *ast.BooleanLiteral, *ast.NullLiteral, *ast.ArrayLiteral:
	case *ast.ObjectLiteral:
		if mayHandle(n) {
			return nil
		}
	default:
		return nil
	}
	return &wire.Problem{Message: "the exported handler is neither a function nor an object with a method fetch, scheduled or queue"}
}

// mayHandle reports whether an object of this text may have a handler.
func mayHandle(n *ast.ObjectLiteral) bool {
	for _, p := range n.Value {
		switch p := p.(type) {
		case *ast.PropertyShort:
			if isHandlerName(p.Name.Name.String()) {
				return true
			}
		case *ast.PropertyKeyed:
			key, ok := p.Key.(*ast.StringLiteral)
			if p.Computed || !ok || isHandlerName(key.Value.String()) || key.Value.String() == "__proto__" {
				return true
			}
		default: // a spread
			return true
		}
	}
	return false
}

func isHandlerName(name string) bool {
	return name == api.HandlerFetch || name == api.HandlerScheduled || name == api.HandlerQueue
}

// uses counts how often a name stands in a script as a word.
func uses(script []byte, name string) (n int) {
	if name == "" {
		return 0
	}
	for at := nextWord(script, name, 0); at >= 0; at = nextWord(script, name, at+len(name)) {
		n++
	}
	return n
}
