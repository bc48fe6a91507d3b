// Package web serves the HTTP endpoints of functions: it turns a request into a
// function's event, and the function's result into the answer.
//
// A request to /v1/web/t_acme01/default/greet/prod/hello?x=1 passes:
//
//	target, parsePath   hosts.go     tenant, namespace, function, alias; the path /hello
//	admit               web.go       public, or a key that may invoke
//	corsPolicy          cors.go      only with an Origin; answers a preflight
//	eventOf             event.go     the event, in the form of AWS Lambda (HTTP API 2.0)
//	engine.Invoke                    the run; at most api.MaxWebTimeoutMS
//	respond, write      response.go  the answer
//	confine             confine.go   without what would reach other functions
//
// A function may also have a host of its own, or a custom domain (hosts.go): all paths of it are
// the function's.
//
// The endpoints bypass the router (rest.Direct): they have any method and any path below
// the alias. describe.go describes them in the OpenAPI document. Errors of the platform and
// failures of the function are problems, like those of the API; failures have the codes CS_RUNTIME_…. The answer
// names the activation in X-Cs-Activation-Id, where its owner finds the details.
package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/domains"
)

// Prefix begins the path of every function endpoint:
// /v1/web/{tenant}/{namespace}/{function}/{alias or version}/...
const Prefix = "/v1/web/"

// headerTimeoutLimit is set if the timeout was reduced to api.MaxWebTimeoutMS, its value.
const headerTimeoutLimit = "X-Cs-Timeout-Limit-Ms"

// Engine executes functions. invoker.Invoker implements it.
type Engine interface {
	// Authorize returns the error with which an invocation of inv would be refused.
	Authorize(ctx context.Context, inv *api.Invocation) error
	// Invoke runs a function to a terminal activation. An error means that the
	// activation did not reach one.
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
}

// Versions resolves aliases. It is used for CORS only; the engine resolves by itself.
type Versions interface {
	Resolve(ctx context.Context, tenant, namespace, function string, ref api.Ref) (storage.Resolved, error)
}

// Domains are the verified custom domains of all tenants. It is called for every request.
type Domains interface {
	// Of returns the function of a host, nil if the host is no custom domain.
	Of(host string) *domains.Found
	// Empty reports whether there is no custom domain.
	Empty() bool
}

// API serves the endpoints of functions. It is safe for concurrent use.
type API struct {
	versions Versions
	engine   Engine
	auth     *access.Authenticator
	cfg      Config

	gzipStreams chan struct{} // holds one for each streamed answer that is compressed
}

// Config configures the endpoints.
type Config struct {
	Logger *zap.Logger
	// ShowErrors has answers contain the messages of functions' errors, which may tell
	// strangers what they must not know.
	ShowErrors bool
	// FunctionDomain is the domain below which each function has a host of its own; "" for none.
	FunctionDomain string
	// Domains are the custom domains (default: none).
	Domains Domains
	// Unconfined has answers below Prefix carry no protection from the other functions there.
	// It is for a server that no browser can reach.
	Unconfined bool
}

// New returns the API of function endpoints.
func New(versions Versions, engine Engine, auth *access.Authenticator, cfg Config) *API {
	return &API{versions: versions, engine: engine, auth: auth, cfg: cfg, gzipStreams: make(chan struct{}, maxGzipStreams)}
}

// Direct returns the handler of all function endpoints.
func (a *API) Direct() rest.Direct {
	return rest.Direct{Prefix: Prefix, Host: a.hostRoot, Serve: a.serve, Names: func(path string) (tenant, namespace, function string) {
		t, err := parsePath(path)
		if err != nil {
			return "", "", ""
		}
		return t.tenant, t.namespace, t.function
	}, Operations: describe()}
}

// target is the function that a URL names, and the path below it.
//
//	/v1/web/t_acme01/default/greet               prod, path "/"; also with a slash behind
//	/v1/web/t_acme01/default/greet/prod          path "/"
//	/v1/web/t_acme01/default/greet/prod/         path "/"
//	/v1/web/t_acme01/default/greet/3/a%20b/      version 3, path "/a%20b/"
type target struct {
	tenant, namespace, function string
	ref                         api.Ref
	path                        string // the rest of the path as it was sent, at least "/"
	shared                      bool   // called below Prefix, on the origin of all functions
}

// parsePath parses the raw path of an endpoint. Errors: CodeRouteNotFound,
// CodeValidationName.
func parsePath(rawPath string) (target, error) {
	parts := strings.SplitN(strings.TrimPrefix(rawPath, Prefix), "/", 5)
	if len(parts) < 3 {
		return target{}, api.Errorf(api.CodeRouteNotFound, "a function's endpoint is %s{tenant}/{namespace}/{function}/{alias or version}", Prefix)
	}
	t := target{tenant: parts[0], namespace: parts[1], function: parts[2], ref: api.Ref{Alias: api.DefaultAlias}, path: "/"}
	if len(parts) == 5 {
		t.path += parts[4]
	}
	if err := rest.ValidateFunctionPath(t.tenant, t.namespace, t.function); err != nil {
		return target{}, err
	}
	if len(parts) == 3 || len(parts) == 4 && parts[3] == "" {
		return t, nil
	}
	var err error
	t.ref, err = api.ParseRef(parts[3])
	return t, withAlias(err, rawPath)
}

// maxHintPath bounds the path that an error repeats.
const maxHintPath = 200

// withAlias adds to an error about the alias or the version of rawPath that a path of the
// function needs an alias before it. Other errors stay.
func withAlias(err error, rawPath string) error {
	var coded *api.Error
	if !errors.As(err, &coded) {
		return err
	}
	switch coded.Code {
	case api.CodeAliasNotFound, api.CodeVersionNotFound, api.CodeValidationName:
	default:
		return err
	}
	parts := strings.SplitN(strings.TrimPrefix(rawPath, Prefix), "/", 4)
	if len(parts) < 4 || strings.TrimSuffix(parts[3], "/") == "" || strings.HasPrefix(parts[3]+"/", api.DefaultAlias+"/") {
		return err
	}
	inside := parts[3]
	if len(inside) > maxHintPath {
		inside = inside[:maxHintPath] + "…"
	}
	parts[3] = api.DefaultAlias + "/" + inside
	hinted := *coded
	hinted.Message += "; a path of the function follows the alias: " + Prefix + strings.Join(parts, "/")
	return &hinted
}

// serve answers a function's HTTP endpoint. An error is answered with a problem by the
// caller. The order of the steps matters: a preflight has no key and is answered before a
// refusal, an error of the CORS configuration only after it, and the body is read last.
func (a *API) serve(w http.ResponseWriter, r *http.Request, requestID string) error {
	rawPath := requestPath(r)
	t, err := a.target(r.Host, rawPath)
	if err != nil {
		return err
	}
	if t.shared {
		w.Header()[headerPolicy] = []string{sandboxPolicy} // of problems, too
		if r.Header.Get("Service-Worker") != "" {
			return api.Errorf(api.CodeAuthzDenied, "functions below %s share one origin and may not register service workers; call the function by a host of its own", Prefix)
		}
	}
	inv := t.invocation()
	known, err := a.admit(r, &inv)
	var cors *corsPolicy
	if origin := r.Header.Get("Origin"); origin != "" {
		var corsErr error
		if known {
			cors, corsErr = a.corsPolicy(r.Context(), t, origin)
		} else {
			cors = unknownPolicy(origin)
		}
		if cors.preflight(w, r) {
			return nil
		}
		if err == nil {
			err = corsErr // it describes the function: only callers that may call it see it
		}
	}
	if err == nil {
		err = rest.Charge(w, t.tenant)
	}
	var outcome *api.Outcome
	var mapped *response
	if err == nil {
		outcome, mapped, err = a.invoke(w, r, requestID, rawPath, t, inv)
	}
	if err != nil {
		cors.apply(w.Header())
		if t.shared {
			err = withAlias(err, rawPath)
		}
		return err
	}
	return a.answer(w, r, requestID, t, outcome, mapped, cors)
}

// invocation returns the invocation that the URL describes.
func (t *target) invocation() api.Invocation {
	return api.Invocation{
		Tenant: t.tenant, Namespace: t.namespace, Function: t.function, Ref: t.ref,
		Trigger:    api.Trigger{Type: api.TriggerHTTP},
		MaxTimeout: api.MaxWebTimeoutMS * time.Millisecond,
	}
}

// admit authenticates and authorizes the caller of an endpoint, before any of the body
// is read. On a public endpoint no key is looked at. To callers without a key, or with
// a key of another tenant, a function that is not public looks like one that does not
// exist:
//
//	public, any or no key                  admitted as anonymous
//	not public or missing, no key          401 CS_AUTHN_REQUIRED
//	not public or missing, foreign key     404 CS_FUNCTION_NOT_FOUND
//	not public, key without the right      403 CS_AUTHZ_DENIED
//	missing, key that may invoke           404 of the function, the alias or the version
//
// known reports whether the caller may know if the function exists. A preflight, which has no
// key, is only asked whether the function is public.
func (a *API) admit(r *http.Request, inv *api.Invocation) (known bool, err error) {
	ctx := r.Context()
	if a.auth.Mode() == access.Off {
		c, err := a.auth.Authenticate(ctx, r.Header)
		if err != nil {
			return false, err
		}
		c.Calls(inv)
		return true, nil
	}
	inv.Principal, inv.Access = anonymous(), api.AccessPublic
	err = a.engine.Authorize(ctx, inv)
	if err == nil {
		a.auth.CountPublic()
		return true, nil
	}
	if code := api.ErrorCode(err); isPreflight(r) || code != api.CodeAuthnRequired && httpstatus.Of(code) != http.StatusNotFound {
		return false, err
	}
	c, err := a.auth.Authenticate(ctx, r.Header)
	if err != nil {
		return false, err
	}
	if !c.Enters(inv.Tenant) {
		return false, api.Errorf(api.CodeFunctionNotFound, "function %q does not exist", inv.Function)
	}
	if err := c.Need(access.FunctionInvoke); err != nil {
		return false, err
	}
	if err := c.NeedNamespace(inv.Namespace); err != nil {
		return false, err
	}
	c.Calls(inv)
	return true, a.engine.Authorize(ctx, inv)
}

// anonymous is the principal of callers of public endpoints.
func anonymous() api.Principal { return api.Principal{Sub: "anonymous", Roles: []string{}} }

// invoke runs the function for an admitted request. If the activation's id is known in
// advance, the answer's headers have it even where invoke fails, so that the caller can
// look for the run. Errors: CodeInvalid for the key, those of rest.ReadBody and of
// Engine.Invoke. The response is nil if the engine did not check the result, as in a replay.
func (a *API) invoke(w http.ResponseWriter, r *http.Request, requestID, rawPath string, t target, inv api.Invocation) (*api.Outcome, *response, error) {
	key, err := rest.IdempotencyKey(r)
	if err != nil {
		return nil, nil, err
	}
	seen := t.cookies(r.Header["Cookie"])
	if key != "" {
		inv.IdempotencyKey = ownKey(key, r, &inv, seen)
		id := api.DerivedActivationID(t.tenant, t.namespace, t.function, t.ref, inv.IdempotencyKey)
		w.Header()[rest.HeaderActivationID] = []string{id}
	}
	body, err := rest.ReadBody(w, r, api.MaxEventBytes)
	if err != nil {
		return nil, nil, err
	}
	inv.Event = eventOf(r, rawPath, t.path, body, seen, cloudEventsOf(r, body))
	inv.RequestID = requestID
	inv.Early = true
	// A repeat under an idempotency key gets the record, which has no body of a stream; an
	// answer to HEAD has none either. HTTP/1.0 cannot tell an answer that was cut.
	inv.Stream = key == "" && r.Method != http.MethodHead && r.ProtoAtLeast(1, 1)
	var mapped *response
	inv.CheckResult = func(result json.RawMessage) error {
		answer, err := mapResult(result)
		if err == nil {
			mapped = &answer
		}
		return err
	}
	inv.Started, inv.OwnWait = rest.Started(w), rest.OwnWait(w)
	inv.Fingerprint = fingerprint(key, r, rawPath, body)
	outcome, err := a.engine.Invoke(r.Context(), inv)
	if err != nil {
		return nil, nil, err
	}
	return outcome, mapped, nil
}

// answer writes the endpoint's answer for a terminal activation. A function's headers are
// written first, then those of the platform over them; without its own the function
// could pretend to be another activation.
func (a *API) answer(w http.ResponseWriter, r *http.Request, requestID string, t target, outcome *api.Outcome, mapped *response, cors *corsPolicy) error {
	activation := &outcome.Activation
	var response response
	var err error
	if outcome.Stream != nil {
		response, err = streamHead(outcome.Stream)
	} else {
		response, err = a.respond(outcome, mapped)
	}
	if err == nil {
		if len(response.header) > 0 {
			t.confine(response.header)
		}
		err = rest.HoldAnswer(w, response.size())
	}
	h := w.Header()
	if err == nil {
		for name, values := range response.header {
			h[name] = values
		}
		if response.contentType != "" {
			h["Content-Type"] = []string{response.contentType}
		}
	}
	// Set last: these headers belong to the platform, not to the function.
	h[rest.HeaderRequestID] = []string{requestID}
	h[rest.HeaderActivationID] = []string{activation.ActivationID}
	if outcome.Replayed {
		h[rest.HeaderReplayed] = []string{"true"}
		delete(h, "Set-Cookie") // it was for the client of the first call, and may have been changed since
	}
	if activation.DeadlineMS-activation.StartMS >= api.MaxWebTimeoutMS {
		h[headerTimeoutLimit] = []string{strconv.Itoa(api.MaxWebTimeoutMS)}
	}
	cors.apply(h)
	if err != nil {
		return err
	}
	if outcome.Stream != nil {
		return a.stream(w, r, requestID, &response, outcome.Stream)
	}
	response.compress(h, r)
	response.write(w, r.Method, func(err error) {
		a.cfg.Logger.Debug("an answer was not delivered", zap.String("request_id", requestID), zap.Error(err))
	})
	return nil
}

// requestPath returns the path as it was sent, with its percent-encoding.
func requestPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath() // the absolute form, which proxies send
}
