// Package web serves the HTTP endpoints of functions: it turns a request into a
// function's event, and the function's result into the answer.
package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
)

// Prefix begins the path of every function endpoint:
// /v1/web/{tenant}/{namespace}/{function}/{alias or version}/...
const Prefix = "/v1/web/"

// headerTimeoutLimit tells the caller that the timeout was cut to api.MaxWebTimeoutMS.
const headerTimeoutLimit = "X-Cs-Timeout-Limit-Ms"

// Engine executes functions.
type Engine interface {
	// Authorize returns the error with which an invocation of inv would be refused.
	Authorize(ctx context.Context, inv *api.Invocation) error
	// Invoke runs a function to a terminal activation. An error means that the
	// activation did not reach one.
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
}

// Versions resolves aliases.
type Versions interface {
	Resolve(ctx context.Context, tenant, namespace, function string, ref api.Ref) (storage.Resolved, error)
}

// API serves the endpoints of functions.
type API struct {
	versions Versions
	engine   Engine
	auth     *access.Authenticator
	log      *zap.Logger
}

// New returns the API of function endpoints.
func New(versions Versions, engine Engine, auth *access.Authenticator, log *zap.Logger) *API {
	return &API{versions: versions, engine: engine, auth: auth, log: log}
}

// Direct returns the handler of all function endpoints.
func (a *API) Direct() rest.Direct {
	return rest.Direct{Prefix: Prefix, Serve: a.serve, Names: func(path string) (tenant, namespace, function string) {
		t, err := parsePath(path)
		if err != nil {
			return "", "", ""
		}
		return t.tenant, t.namespace, t.function
	}}
}

// target is the function that a URL names, and the path below it.
type target struct {
	tenant, namespace, function string
	ref                         api.Ref
	path                        string // what follows the ref, as it was sent; "/" if nothing does
}

// parsePath reads the raw path of an endpoint. Errors: CodeRouteNotFound,
// CodeValidationName.
func parsePath(rawPath string) (target, error) {
	parts := strings.SplitN(strings.TrimPrefix(rawPath, Prefix), "/", 5)
	if len(parts) < 4 {
		return target{}, api.Errorf(api.CodeRouteNotFound, "a function's endpoint is %s{tenant}/{namespace}/{function}/{alias or version}", Prefix)
	}
	t := target{tenant: parts[0], namespace: parts[1], function: parts[2], path: "/"}
	if len(parts) == 5 {
		t.path += parts[4]
	}
	if err := rest.ValidateFunctionPath(t.tenant, t.namespace, t.function); err != nil {
		return target{}, err
	}
	var err error
	t.ref, err = api.ParseRef(parts[3])
	return t, err
}

// serve answers a function's HTTP endpoint.
func (a *API) serve(w http.ResponseWriter, r *http.Request, requestID string) error {
	rawPath := requestPath(r)
	t, err := parsePath(rawPath)
	if err != nil {
		return err
	}
	var cors *corsPolicy
	var corsErr error
	if origin := r.Header.Get("Origin"); origin != "" {
		cors, corsErr = a.corsPolicy(r.Context(), t, origin)
		if cors.preflight(w, r) { // browsers send no key with one
			return nil
		}
	}
	inv := t.invocation()
	err = a.admit(r, &inv)
	if err == nil {
		err = corsErr // it tells of the function, and is only for those who may call it
	}
	var outcome *api.Outcome
	if err == nil {
		outcome, err = a.invoke(w, r, requestID, rawPath, t, inv)
	}
	if err != nil {
		cors.apply(w.Header())
		return err
	}
	return a.answer(w, r, requestID, outcome, cors)
}

// invocation is target's, as far as its URL says.
func (t *target) invocation() api.Invocation {
	return api.Invocation{
		Tenant: t.tenant, Namespace: t.namespace, Function: t.function, Ref: t.ref,
		Trigger:    api.Trigger{Type: api.TriggerHTTP},
		MaxTimeout: api.MaxWebTimeoutMS * time.Millisecond,
	}
}

// admit finds out who calls an endpoint, and whether they may; nothing of the
// body is read yet. A public endpoint has no callers to tell apart: no key is
// looked at. What is not public and what does not exist look the same to those
// without a key, and to those with a key of another tenant.
func (a *API) admit(r *http.Request, inv *api.Invocation) error {
	ctx := r.Context()
	if a.auth.Mode() == access.Off {
		c, err := a.auth.Authenticate(ctx, r.Header)
		if err != nil {
			return err
		}
		c.Calls(inv)
		return nil
	}
	inv.Principal, inv.Access = anonymous(), api.AccessPublic
	err := a.engine.Authorize(ctx, inv)
	if err == nil {
		a.auth.CountPublic()
		return nil
	}
	if code := api.ErrorCode(err); code != api.CodeAuthnRequired && rest.StatusOf(code) != http.StatusNotFound {
		return err
	}
	c, err := a.auth.Authenticate(ctx, r.Header)
	if err != nil {
		return err
	}
	if !c.Enters(inv.Tenant) {
		return api.Errorf(api.CodeFunctionNotFound, "function %q does not exist", inv.Function)
	}
	if err := c.Need(access.FunctionInvoke); err != nil {
		return err
	}
	if err := c.NeedNamespace(inv.Namespace); err != nil {
		return err
	}
	c.Calls(inv)
	return a.engine.Authorize(ctx, inv)
}

// anonymous is who calls a public endpoint.
func anonymous() api.Principal { return api.Principal{Sub: "anonymous", Roles: []string{}} }

// invoke runs the function for a request that was admitted. Where the
// activation's id is known it is in the answer's headers already.
func (a *API) invoke(w http.ResponseWriter, r *http.Request, requestID, rawPath string, t target, inv api.Invocation) (*api.Outcome, error) {
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return nil, err
	}
	if key != "" {
		id := api.DerivedActivationID(t.tenant, t.namespace, t.function, t.ref, key)
		w.Header()[rest.HeaderActivationID] = []string{id}
	}
	body, err := rest.ReadBody(w, r, api.MaxEventBytes)
	if err != nil {
		return nil, err
	}
	inv.Event = eventOf(r, rawPath, t.path, body)
	inv.RequestID = requestID
	inv.IdempotencyKey = key
	inv.Fingerprint = fingerprint(key, r, rawPath, body)
	return a.engine.Invoke(r.Context(), inv)
}

// fingerprint is what makes a request the same as the one before it under an
// idempotency key: its method, URL and body, and what it tells the function of its
// caller. The event has more: a retry comes with headers and perhaps an address of
// its own.
func fingerprint(key string, r *http.Request, rawPath string, body []byte) []byte {
	if key == "" {
		return nil
	}
	// None of them can hold a line break.
	caller := strings.Join(withoutCredentials(r.Header[access.HeaderAuthorization]), ",")
	return slices.Concat([]byte(r.Method+"\n"+rawPath+"\n"+r.URL.RawQuery+"\n"+caller+"\n"), body)
}

// answer turns a terminal activation into the endpoint's answer.
func (a *API) answer(w http.ResponseWriter, r *http.Request, requestID string, outcome *api.Outcome, cors *corsPolicy) error {
	activation := &outcome.Activation
	response, err := respond(outcome)
	h := w.Header()
	if err == nil {
		for name, values := range response.header {
			h[name] = values
		}
		if response.contentType != "" {
			h["Content-Type"] = []string{response.contentType}
		}
	}
	// After the function's own headers: these are the platform's to say.
	h[rest.HeaderRequestID] = []string{requestID}
	h[rest.HeaderActivationID] = []string{activation.ActivationID}
	if outcome.Replayed {
		h[rest.HeaderReplayed] = []string{"true"}
	}
	if activation.DeadlineMS-activation.StartMS >= api.MaxWebTimeoutMS {
		h[headerTimeoutLimit] = []string{strconv.Itoa(api.MaxWebTimeoutMS)}
	}
	cors.apply(h)
	if err != nil {
		return err
	}
	response.write(w, r.Method, func(err error) {
		a.log.Debug("an answer was not delivered", zap.String("request_id", requestID), zap.Error(err))
	})
	return nil
}

// requestPath is the path as it was sent, percent-encoding and all.
func requestPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath() // the absolute form, which proxies send
}
