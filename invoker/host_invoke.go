package invoker

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
	"github.com/codesous/sous/storage/activations"
)

// invokeHost serves cs.invoke.
type invokeHost struct {
	engine *Invoker
}

type invokeArgs struct {
	Function string `json:"function"` // name, or namespace/name
	Alias    string `json:"alias,omitempty"`
	Version  int64  `json:"version,omitempty"`
}

type invokeReply struct {
	HasValue bool `json:"has_value"` // else it is undefined
}

// nest is what an activation's calls of cs.invoke hand on, and the end of them.
type nest struct {
	inv      *api.Invocation
	self     api.Caller
	deadline time.Time
	room     chan struct{} // a token for each call at work

	mu    sync.Mutex
	ended bool
}

func newNest(inv *api.Invocation, rec *activations.Record, deadline time.Time) *nest {
	return &nest{
		inv: inv, deadline: deadline, room: make(chan struct{}, api.MaxInvokesAtOnce),
		self: api.Caller{Namespace: inv.Namespace, Function: inv.Function, Version: rec.Ref.Version, ActivationID: rec.ActivationID},
	}
}

// enter counts a call among what is in hand, which its caller is: an engine that
// shuts down lets what it has in hand call until that ends.
func (n *nest) enter(inHand *sync.WaitGroup) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	inHand.Add(1)
	return true
}

// end lets no more calls begin: the activation has ended.
func (n *nest) end() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
}

// permit wants the function as it is named. "*" is all of the caller's namespace.
func (h *invokeHost) permit(s *scope, a invokeArgs) string {
	if c := s.capabilities.Invoke; c != nil {
		namespace, _ := splitFunction(s, a.Function)
		if slices.Contains(c.Functions, a.Function) || namespace == s.namespace && slices.Contains(c.Functions, "*") {
			return ""
		}
	}
	return `{"invoke": {"functions": [` + quoted(cutName(a.Function)) + `]}}`
}

// splitFunction reads name, which is of the caller's namespace, or namespace/name.
func splitFunction(s *scope, named string) (namespace, function string) {
	if namespace, function, ok := strings.Cut(named, "/"); ok {
		return namespace, function
	}
	return s.namespace, named
}

// invoke runs another function to its end, as part of the calling activation.
func (h *invokeHost) invoke(ctx context.Context, s *scope, a invokeArgs, event []byte) (any, []byte, error) {
	inv, err := s.nested(a, event)
	if err != nil {
		return nil, nil, err
	}
	select {
	case s.nest.room <- struct{}{}:
		defer func() { <-s.nest.room }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if !s.nest.enter(&h.engine.inHand) {
		return nil, nil, context.Canceled
	}
	defer h.engine.inHand.Done()
	out, err := h.engine.Invoke(ctx, inv)
	if err != nil {
		return nil, nil, err
	}
	result := out.Activation.Result
	if code := out.Activation.FailureCode(); code != "" {
		return nil, nil, calleeFailed(code, &inv, &out.Activation)
	}
	if len(result) > smallFetchResponse {
		if err := sandbox.ReserveReply(ctx, int64(len(result))); err != nil {
			return nil, nil, err
		}
	}
	return invokeReply{HasValue: len(result) > 0}, result, nil
}

// nested is the call as an invocation.
//
// In its own namespace the function is who calls: that its version declares the
// call lets it in, whoever called it, also an anonymous one. What the callee's list
// of roles asks is asked of that first caller, so that nobody gets there through
// another function where he would not get directly. In another namespace the first
// caller needs a right to invoke there of his own: what a version declares was
// judged by nobody who answers for that namespace.
func (s *scope) nested(a invokeArgs, event []byte) (api.Invocation, error) {
	from := s.nest.inv
	inv := api.Invocation{
		Tenant: s.tenant, Ref: api.Ref{Alias: a.Alias, Version: a.Version}, Event: event,
		Principal: from.Principal, RequestID: from.RequestID, AllNamespaces: from.AllNamespaces,
		Access: api.AccessGranted, Deadline: s.nest.deadline,
		Callers: append(slices.Clone(from.Callers), s.nest.self),
	}
	inv.Namespace, inv.Function = splitFunction(s, a.Function)
	if err := checkNested(&inv, a); err != nil {
		return inv, err
	}
	switch {
	case len(inv.Callers) > api.MaxInvokeDepth:
		return inv, api.Errorf(api.CodeHostInvokeDepth, "calls of cs.invoke nest at most %d deep: %s", api.MaxInvokeDepth, chainOf(&inv))
	case inv.Namespace != s.namespace && !inv.AllNamespaces:
		return inv, api.Errorf(api.CodeAuthzDenied,
			"%s/%s is in another namespace, and whoever called first may not invoke there", inv.Namespace, inv.Function)
	case from.Access == api.AccessUnrestricted && from.AllNamespaces:
		inv.Access = api.AccessUnrestricted // there are no keys, and nobody can be told apart
	}
	if len(inv.Event) == 0 {
		inv.Event = json.RawMessage("null")
	}
	inv.Trigger = api.Trigger{Type: api.TriggerAPI, Source: mustJSON(api.CallSource{
		ActivationID: s.nest.self.ActivationID, Function: s.namespace + "/" + s.function, Depth: len(inv.Callers),
	})}
	return inv, nil
}

// checkNested refuses what is malformed, and fills in the alias.
func checkNested(inv *api.Invocation, a invokeArgs) error {
	if a.Alias == "" && a.Version == 0 {
		inv.Ref.Alias = api.DefaultAlias
	}
	switch {
	case api.ValidateName("namespace", inv.Namespace) != nil || api.ValidateName("function", inv.Function) != nil:
		return api.Errorf(api.CodeHostInvalidArgument, "cs.invoke: the function is a name, or namespace/name")
	case inv.Ref.Validate() != nil:
		return api.Errorf(api.CodeHostInvalidArgument, "cs.invoke: the options have either an alias or a version")
	case len(inv.Event) > api.MaxEventBytes:
		return api.Errorf(api.CodeHostInvalidArgument, "cs.invoke: an event is at most %d bytes of JSON", api.MaxEventBytes)
	case len(inv.Event) > 0 && !json.Valid(inv.Event):
		return api.Errorf(api.CodeHostInvalidArgument, "cs.invoke: the event is JSON")
	}
	return nil
}

// chainOf names the functions that led to inv, and its own.
func chainOf(inv *api.Invocation) string {
	var b strings.Builder
	for _, c := range inv.Callers {
		b.WriteString(c.Namespace + "/" + c.Function + " → ")
	}
	return b.String() + inv.Namespace + "/" + inv.Function
}

// unheld refuses a call that waits for what its own callers hold until it has
// ended: a place under its version's limit, or a process.
func (i *Invoker) unheld(inv *api.Invocation, res *resolution) error {
	held, limit := 0, res.Version.Config.MaxConcurrency
	for _, c := range inv.Callers {
		if c.Namespace == inv.Namespace && c.Function == inv.Function && c.Version == res.Version.Version {
			held++
		}
	}
	switch {
	case held >= limit:
		return api.Errorf(api.CodeHostInvokeCycle, "the call would wait for itself: its callers hold all of the version's places (max_concurrency %d): %s", limit, chainOf(inv))
	case len(inv.Callers) >= i.pool.MaxProcesses():
		return api.Errorf(api.CodeCapacityLimit, "the call would wait for itself: its callers hold all sandboxes of this server (%d): %s", i.pool.MaxProcesses(), chainOf(inv))
	}
	return nil
}

// calleeFailed tells a function how the one that it called failed.
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
