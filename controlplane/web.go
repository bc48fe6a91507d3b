package controlplane

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// webPrefix begins the path of every function endpoint:
// /v1/web/{tenant}/{namespace}/{function}/{alias or version}/...
const webPrefix = "/v1/web/"

// webTarget is what a function endpoint's URL names.
type webTarget struct {
	tenant, namespace, function string
	ref                         api.Ref
	path                        string // what follows the ref, as it was sent; "/" if nothing does
}

// parseWebPath reads the raw path of an endpoint. Errors: CodeRouteNotFound,
// CodeValidationName.
func parseWebPath(rawPath string) (webTarget, error) {
	parts := strings.SplitN(strings.TrimPrefix(rawPath, webPrefix), "/", 5)
	if len(parts) < 4 {
		return webTarget{}, api.Errorf(api.CodeRouteNotFound, "a function's endpoint is %s{tenant}/{namespace}/{function}/{alias or version}", webPrefix)
	}
	t := webTarget{tenant: parts[0], namespace: parts[1], function: parts[2], path: "/"}
	if len(parts) == 5 {
		t.path += parts[4]
	}
	if err := validateFunctionPath(t.tenant, t.namespace, t.function); err != nil {
		return webTarget{}, err
	}
	var err error
	t.ref, err = api.ParseRef(parts[3])
	return t, err
}

// validateFunctionPath refuses (CodeValidationName) names that cannot exist.
func validateFunctionPath(tenant, namespace, function string) error {
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	if err := api.ValidateName("namespace", namespace); err != nil {
		return err
	}
	return api.ValidateName("function", function)
}

// serveWeb answers a function's HTTP endpoint.
func (s *Server) serveWeb(w http.ResponseWriter, r *http.Request, requestID string) {
	rawPath := requestPath(r)
	target, err := parseWebPath(rawPath)
	if err != nil {
		s.fail(w, r, requestID, err)
		return
	}
	var cors *corsPolicy
	var corsErr error
	if origin := r.Header.Get("Origin"); origin != "" {
		cors, corsErr = s.corsPolicy(r.Context(), target, origin)
		if cors.preflight(w, r) { // browsers send no key with one
			return
		}
	}
	inv := target.invocation()
	if err = s.admitWeb(r, &inv); err == nil {
		err = corsErr // what went wrong is for those only who may know of the function
	}
	var outcome *api.Outcome
	if err == nil {
		outcome, err = s.invokeWeb(w, r, requestID, rawPath, target, inv)
	}
	if err != nil {
		cors.apply(w.Header())
		s.fail(w, r, requestID, err)
		return
	}
	s.answerWeb(w, r, requestID, outcome, cors)
}

// invocation is target's, as far as its URL says.
func (t *webTarget) invocation() api.Invocation {
	return api.Invocation{
		Tenant: t.tenant, Namespace: t.namespace, Function: t.function, Ref: t.ref,
		Trigger:    api.Trigger{Type: api.TriggerHTTP},
		MaxTimeout: api.MaxWebTimeoutMS * time.Millisecond,
	}
}

// admitWeb finds out who calls an endpoint, and whether they may; nothing of the
// body is read yet. A public endpoint has no callers to tell apart: no key is
// looked at. What is not public and what does not exist look the same to those
// without a key, and to those with a key of another tenant.
func (s *Server) admitWeb(r *http.Request, inv *api.Invocation) error {
	if s.auth.mode == AuthOff {
		s.auth.results.WithLabelValues(authOff).Inc()
		s.auth.local.calls(inv)
		return nil
	}
	ctx := r.Context()
	inv.Principal, inv.Access = anonymous(), api.AccessPublic
	err := s.engine.Authorize(ctx, inv)
	if err == nil {
		s.auth.results.WithLabelValues(authPublic).Inc()
		return nil
	}
	if code := api.ErrorCode(err); code != api.CodeAuthnRequired && statusOf(code) != http.StatusNotFound {
		return err
	}
	c, err := s.auth.authenticate(ctx, r.Header)
	if err != nil {
		return err
	}
	if !c.enters(inv.Tenant) {
		return api.Errorf(api.CodeFunctionNotFound, "function %q does not exist", inv.Function)
	}
	if err := c.need(actionFunctionInvoke); err != nil {
		return err
	}
	if err := c.needNamespace(inv.Namespace); err != nil {
		return err
	}
	c.calls(inv)
	return s.engine.Authorize(ctx, inv)
}

// anonymous is who calls a public endpoint.
func anonymous() api.Principal { return api.Principal{Sub: "anonymous", Roles: []string{}} }

// invokeWeb runs the function for a request that was admitted. Where the
// activation's id is known it is in the answer's headers already.
func (s *Server) invokeWeb(w http.ResponseWriter, r *http.Request, requestID, rawPath string, target webTarget, inv api.Invocation) (*api.Outcome, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	if key != "" {
		id := api.DerivedActivationID(target.tenant, target.namespace, target.function, target.ref, key)
		w.Header()[headerActivationID] = []string{id}
	}
	body, err := readBody(w, r, api.MaxEventBytes)
	if err != nil {
		return nil, err
	}
	inv.Event = webEvent(r, rawPath, target.path, body)
	inv.RequestID = requestID
	inv.IdempotencyKey = key
	inv.Fingerprint = fingerprint(key, r, rawPath, body)
	return s.engine.Invoke(r.Context(), inv)
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
	caller := strings.Join(withoutCredentials(r.Header[headerAuthorization]), ",")
	return slices.Concat([]byte(r.Method+"\n"+rawPath+"\n"+r.URL.RawQuery+"\n"+caller+"\n"), body)
}

// answerWeb turns a terminal activation into the endpoint's answer.
func (s *Server) answerWeb(w http.ResponseWriter, r *http.Request, requestID string, outcome *api.Outcome, cors *corsPolicy) {
	a := &outcome.Activation
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
	h[headerRequestID] = []string{requestID}
	h[headerActivationID] = []string{a.ActivationID}
	if outcome.Replayed {
		h[headerReplayed] = []string{"true"}
	}
	if a.DeadlineMS-a.StartMS >= api.MaxWebTimeoutMS {
		h[headerTimeoutLimit] = []string{strconv.Itoa(api.MaxWebTimeoutMS)}
	}
	cors.apply(h)
	if err != nil {
		s.fail(w, r, requestID, err)
		return
	}
	response.write(w, r.Method, func(err error) {
		s.log.Debug("an answer was not delivered", zap.String("request_id", requestID), zap.Error(err))
	})
}

// requestPath is the path as it was sent, percent-encoding and all.
func requestPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath() // the absolute form, which proxies send
}
