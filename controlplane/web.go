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
	if origin := r.Header.Get("Origin"); origin != "" {
		if cors, err = s.corsPolicy(r.Context(), target, origin); err != nil {
			s.fail(w, r, requestID, err)
			return
		}
		if cors.preflight(w, r) {
			return
		}
	}
	outcome, err := s.invokeWeb(w, r, requestID, rawPath, target)
	if err != nil {
		cors.apply(w.Header())
		s.fail(w, r, requestID, err)
		return
	}
	s.answerWeb(w, r, requestID, outcome, cors)
}

// invokeWeb runs the function for a request. Where the activation's id is known
// it is in the answer's headers already.
func (s *Server) invokeWeb(w http.ResponseWriter, r *http.Request, requestID, rawPath string, target webTarget) (*api.Outcome, error) {
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
	return s.engine.Invoke(r.Context(), api.Invocation{
		Tenant:         target.tenant,
		Namespace:      target.namespace,
		Function:       target.function,
		Ref:            target.ref,
		Trigger:        api.Trigger{Type: api.TriggerHTTP},
		Principal:      local(),
		Event:          webEvent(r, rawPath, target.path, body),
		RequestID:      requestID,
		IdempotencyKey: key,
		Fingerprint:    fingerprint(key, r, rawPath, body),
		MaxTimeout:     api.MaxWebTimeoutMS * time.Millisecond,
	})
}

// fingerprint is what makes a request the same as the one before it under an
// idempotency key: its method, URL and body. The event has more: a retry comes
// with headers and perhaps an address of its own.
func fingerprint(key string, r *http.Request, rawPath string, body []byte) []byte {
	if key == "" {
		return nil
	}
	// None of the first three can hold a line break.
	return slices.Concat([]byte(r.Method+"\n"+rawPath+"\n"+r.URL.RawQuery+"\n"), body)
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
