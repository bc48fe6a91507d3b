package hostcall

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Engine runs functions for cs.invoke: the invoker, behind an interface because it imports
// this package.
type Engine interface {
	// Hold counts a call among the work that the engine's shutdown waits for, until
	// Release. It is called only while the calling activation is counted itself, and
	// therefore also while the engine shuts down.
	Hold()
	Release()
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
}

// invokeCalls serves cs.invoke.
//
// A nested call is an invocation of its own, with a record, a slot and a sandbox on this
// replica, while its caller keeps all three. It ends with its caller: the caller's deadline
// bounds it, and the end of the caller cancels it.
type invokeCalls struct {
	engine Engine
}

// calls returns the call.
func (c *invokeCalls) calls() map[string]call {
	return map[string]call{wire.InvokeFunction.Name: handle(wire.InvokeFunction, c.permit, c.invoke)}
}

// NestedCalls are the calls of cs.invoke of one activation: what they inherit from it,
// how many of them run, and whether more may begin.
type NestedCalls struct {
	inv      *api.Invocation
	self     api.Caller
	deadline time.Time
	slots    chan struct{} // a token for each call that runs

	mu    sync.Mutex
	ended bool
}

// NewNestedCalls returns the calls of the activation self, which runs inv until deadline.
func NewNestedCalls(inv *api.Invocation, self api.Caller, deadline time.Time) *NestedCalls {
	return &NestedCalls{inv: inv, self: self, deadline: deadline, slots: make(chan struct{}, api.MaxInvokesAtOnce)}
}

// hold counts a call among the engine's work, unless the activation has ended: an engine
// that shuts down lets its running activations call until they end. The check and the count
// are one step under n.mu, so that no call is counted after End has returned.
func (n *NestedCalls) hold(engine Engine) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	engine.Hold()
	return true
}

// End lets no more calls begin: the activation has ended. Calls in progress are not waited
// for; their ctx has ended, and the engine counts each until its Release. n may be nil.
func (n *NestedCalls) End() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
}

// permit compares the function as the call names it; "*" grants all of the caller's
// namespace.
func (*invokeCalls) permit(s *Scope, a wire.InvokeTarget) string {
	if allowed := s.Capabilities.Invoke; allowed != nil {
		namespace, _ := splitFunction(s, a.Function)
		if slices.Contains(allowed.Functions, a.Function) || namespace == s.Namespace && slices.Contains(allowed.Functions, "*") {
			return ""
		}
	}
	return `{"invoke": {"functions": [` + quoted(shortened(a.Function)) + `]}}`
}

// splitFunction splits namespace/name; a name alone is of the caller's namespace.
func splitFunction(s *Scope, named string) (namespace, function string) {
	if namespace, function, ok := strings.Cut(named, "/"); ok {
		return namespace, function
	}
	return s.Namespace, named
}

// invoke runs another function to its end, as part of the calling activation. It waits
// while api.MaxInvokesAtOnce calls of the activation run. Errors: those of nested, those of
// Engine.Invoke if nothing ran, and a sandbox.HostError with the callee's code if it ran
// and failed.
func (c *invokeCalls) invoke(ctx context.Context, s *Scope, a wire.InvokeTarget, event []byte) (reply wire.InvokeReply, result []byte, err error) {
	inv, err := s.nested(a, event)
	if err != nil {
		return reply, nil, err
	}
	select {
	case s.Nested.slots <- struct{}{}:
		defer func() { <-s.Nested.slots }()
	case <-ctx.Done():
		return reply, nil, ctx.Err()
	}
	if !s.Nested.hold(c.engine) {
		return reply, nil, context.Canceled
	}
	defer c.engine.Release()
	out, err := c.engine.Invoke(ctx, inv)
	if err != nil {
		return reply, nil, err
	}
	result = out.Activation.Result
	if code := out.Activation.FailureCode(); code != "" {
		return reply, nil, calleeFailed(code, &inv, &out.Activation)
	}
	if len(result) > smallReply {
		if err := sandbox.ReserveReply(ctx, int64(len(result))); err != nil {
			return reply, nil, err
		}
	}
	return wire.InvokeReply{HasValue: len(result) > 0}, result, nil
}

// nested returns the call as an invocation.
//
// In its own namespace the calling function's capability admits the call, whichever caller
// invoked that function, even an anonymous one. The callee's list of roles is still applied
// to that first caller, so that no caller reaches a function indirectly that refuses him
// directly. In another namespace the first caller needs the right to invoke there himself:
// the owners of that namespace did not review the capability.
func (s *Scope) nested(a wire.InvokeTarget, event []byte) (api.Invocation, error) {
	from := s.Nested.inv
	inv := api.Invocation{
		Tenant: s.Tenant, Ref: api.Ref{Alias: a.Alias, Version: a.Version}, Event: event,
		Principal: from.Principal, RequestID: from.RequestID, AllNamespaces: from.AllNamespaces,
		Access: api.AccessGranted, Deadline: s.Nested.deadline,
		Callers: append(slices.Clone(from.Callers), s.Nested.self),
	}
	inv.Namespace, inv.Function = splitFunction(s, a.Function)
	if err := checkNested(&inv, a); err != nil {
		return inv, err
	}
	switch {
	case len(inv.Callers) > api.MaxInvokeDepth:
		return inv, api.Errorf(api.CodeHostInvokeDepth, "calls of cs.invoke nest at most %d deep: %s", api.MaxInvokeDepth, inv.CallChain())
	case inv.Namespace != s.Namespace && !inv.AllNamespaces:
		return inv, api.Errorf(api.CodeAuthzDenied,
			"%s/%s is in another namespace, and the first caller may not invoke there", inv.Namespace, inv.Function)
	case from.Access == api.AccessUnrestricted && from.AllNamespaces:
		inv.Access = api.AccessUnrestricted // without keys all callers are the same
	}
	if len(inv.Event) == 0 {
		inv.Event = json.RawMessage("null")
	}
	inv.Trigger = api.Trigger{Type: api.TriggerAPI, Source: mustJSON(api.CallSource{
		ActivationID: s.Nested.self.ActivationID, Function: s.Namespace + "/" + s.Function, Depth: len(inv.Callers),
	})}
	return inv, nil
}

// checkNested refuses a malformed call, and fills in the default alias. Errors:
// CodeHostInvalidArgument.
func checkNested(inv *api.Invocation, a wire.InvokeTarget) error {
	if a.Alias == "" && a.Version == 0 {
		inv.Ref.Alias = api.DefaultAlias
	}
	switch {
	case api.ValidateName("namespace", inv.Namespace) != nil || api.ValidateName("function", inv.Function) != nil:
		return invalid("cs.invoke: the function is a name, or namespace/name")
	case inv.Ref.Validate() != nil:
		return invalid("cs.invoke: the options have either an alias or a version")
	case len(inv.Event) > api.MaxEventBytes:
		return invalid("cs.invoke: an event is at most %s of JSON", api.SizeText(api.MaxEventBytes))
	case len(inv.Event) > 0 && !json.Valid(inv.Event):
		return invalid("cs.invoke: the event is JSON")
	}
	return nil
}

// calleeFailed returns the error of a call whose function failed, with the callee's
// activation and error as members. A script that catches it reads e.code, e.activationId,
// e.status and e.cause, {type, message, code}.
func calleeFailed(code api.Code, inv *api.Invocation, a *api.Activation) error {
	type cause struct {
		Type    api.ErrorType `json:"type"`
		Message string        `json:"message"`
		Code    string        `json:"code,omitempty"`
	}
	var members struct {
		ActivationID string     `json:"activationId"`
		Status       api.Status `json:"status"`
		Cause        *cause     `json:"cause,omitempty"`
	}
	members.ActivationID, members.Status = a.ActivationID, a.Status
	text := string(a.Status)
	if e := a.Error; e != nil {
		members.Cause = &cause{e.Type, e.Message, e.Code}
		text = fmt.Sprintf("%s: %s", e.Type, e.Message)
	}
	return &sandbox.HostError{
		Refusal: api.Errorf(code, "%s/%s failed: %s", inv.Namespace, inv.Function, text),
		Members: mustJSON(members),
	}
}
