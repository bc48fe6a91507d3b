package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/tracing"
)

// Headers of answers, in canonical form so that they can be set without a conversion.
const (
	HeaderRequestID    = "X-Request-Id"
	HeaderActivationID = "X-Cs-Activation-Id"
	HeaderReplayed     = "Idempotent-Replayed"
)

// MaxIdempotencyKey bounds the Idempotency-Key header, in bytes.
const MaxIdempotencyKey = 255

type exchangeKey struct{}

// exchange is the state of one request to the API and of its answer. Only the
// goroutine of the request uses it. It travels in the context, since huma passes
// handlers nothing else: admit writes caller, action and tenant, and Problem.note writes
// code, for audit and nameRoute to read. Requests of Direct have none.
type exchange struct {
	server    *Server
	requestID string
	caller    *access.Caller // nil before authorize, and on public routes
	action    access.Action
	tenant    string // of the path
	answer    *trackedWriter
	code      api.Code // of the problem that is the answer
	made      string   // for the audit log: what the request created
}

// exchangeOf returns the exchange of the request that ctx belongs to, nil where there
// is none.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// RequestID returns the id of the request that ctx belongs to, "" where there is none.
// It has the form req_<ULID>; the answer's X-Request-Id, the log and problems have it.
func RequestID(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.requestID
	}
	return ""
}

// CallerOf returns the caller of the request that ctx belongs to. On public routes, and
// outside of requests, it returns access.Unknown, which may do nothing: a handler that
// forgets its route's Action fails closed.
func CallerOf(ctx context.Context) *access.Caller {
	if x := exchangeOf(ctx); x != nil && x.caller != nil {
		return x.caller
	}
	return access.Unknown()
}

// ActFor makes c the caller of the request of ctx: handlers of public routes may act for a key.
func ActFor(ctx context.Context, c *access.Caller, action access.Action, tenant string) {
	if x := exchangeOf(ctx); x != nil {
		x.caller, x.action, x.tenant = c, action, tenant
	}
}

// Drained returns a channel that is closed when the server that answers the request of
// ctx drains. It is nil outside of requests, and so never ready. Handlers that wait
// select on it.
func Drained(ctx context.Context) <-chan struct{} {
	if x := exchangeOf(ctx); x != nil {
		return x.server.drained
	}
	return nil
}

// serve answers every request: it makes the request id, applies the limits, recovers
// from panics, and writes metrics and the log. The requests of Direct part from the
// others here.
//
// The deferred calls run in reverse: first the recovery, which may still write an
// answer, then the metrics, then the last deadline, then the span.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	begin := s.clock()
	if client, other := s.addresses.Client(r.RemoteAddr, r.Header["X-Forwarded-For"]); other {
		r.RemoteAddr = client
	}
	requestID := api.NewRequestID(begin.UnixMilli())
	w.Header()[HeaderRequestID] = []string{requestID}
	tracked := &trackedWriter{ResponseWriter: w, timeout: s.answerTimeout, metrics: s.metrics}
	tracked.arrive(r)
	defer tracked.leave(r)
	if s.tracer != nil {
		traced, end := s.trace(tracked, r)
		defer end()
		r = traced
	}
	defer tracked.bound(0) // for the part of the answer that net/http still holds
	defer s.metrics.begin(tracked, r.Method)()
	boundBody(w, r)
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		tracked.bound(0) // for the 100 Continue; on HTTP/2 it would end the run, too
	}
	defer func() {
		if p := recover(); p != nil {
			s.recovered(tracked, r, requestID, p)
		}
		if entry := s.log.Check(zapcore.DebugLevel, "request"); entry != nil {
			s.logRequest(entry, tracked, r, requestID, begin)
		}
	}()
	path := s.direct.path(r)
	err := s.checkLimits(r)
	if err == nil {
		err = s.enter(tracked, r, path)
	}
	if err != nil {
		s.fail(tracked, r, requestID, err)
		return
	}
	if s.direct.takes(path) {
		tracked.route = strings.TrimSuffix(s.direct.Prefix, "/")
		if err := s.direct.Serve(tracked, r, requestID); err != nil {
			s.fail(tracked, r, requestID, err)
		}
		return
	}
	s.serveAPI(tracked, r, requestID)
}

// takes reports whether d serves a path.
func (d *Direct) takes(path string) bool {
	return d.Prefix != "" && strings.HasPrefix(path, d.Prefix)
}

// path returns the path of a request, below Prefix also if its host is claimed.
func (d *Direct) path(r *http.Request) string {
	if d.Host == nil {
		return r.URL.Path
	}
	root, claimed := d.Host(r.Host)
	switch {
	case !claimed:
		return r.URL.Path
	case root == "":
		return d.Prefix // Serve refuses it
	}
	return root + r.URL.Path
}

// serveAPI answers a request by the router, and writes the audit log.
func (s *Server) serveAPI(w *trackedWriter, r *http.Request, requestID string) {
	x := &exchange{server: s, requestID: requestID, answer: w}
	defer s.audit(r, x) // also of a handler that panics: it may have got far
	s.router.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// checkLimits refuses requests that are too large, or not addressed to this server,
// before anything else reads them. The size of the headers counts the URL, and each
// header with its ": " and its line break. Errors: CodeHostHeaderRefused, CodeQueryLimit,
// CodeHeaderLimit.
func (s *Server) checkLimits(r *http.Request) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	if len(r.URL.RawQuery) > api.MaxQueryBytes {
		return api.Errorf(api.CodeQueryLimit, "the query exceeds %s", api.SizeText(api.MaxQueryBytes))
	}
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	if size > api.MaxHeaderBytes {
		return api.Errorf(api.CodeHeaderLimit, "the request line and headers exceed %s", api.SizeText(api.MaxHeaderBytes))
	}
	return nil
}

// recovered answers a request whose handler panicked with CodeInternal. If a part of an
// answer has been sent it cuts the connection instead; http.ErrAbortHandler, by which
// handlers ask for that, passes through.
func (s *Server) recovered(w *trackedWriter, r *http.Request, requestID string, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // net/http's way to close the connection
	}
	s.log.Error("panic", append(s.requestFields(r.Context(), requestID, r.Method, s.direct.path(r)),
		zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))...)
	if w.status != 0 {
		panic(http.ErrAbortHandler) // part of the answer is sent: cut the connection, so that the client sees the failure
	}
	s.fail(w, r, requestID, fmt.Errorf("panic: %v", p))
}

func (s *Server) logRequest(entry *zapcore.CheckedEntry, w *trackedWriter, r *http.Request, requestID string, begin time.Time) {
	fields := append(s.requestFields(r.Context(), requestID, r.Method, s.direct.path(r)),
		zap.Int("status", w.status),
		zap.Int64("bytes", w.bytes),
		zap.Duration("took", s.clock().Sub(begin)))
	// The client's own id helps to find its request. The server never uses it as its
	// own.
	if theirs := r.Header.Get(HeaderRequestID); theirs != "" {
		fields = append(fields, zap.String("client_request_id", api.WithoutKeys(theirs[:min(len(theirs), 128)])))
	}
	entry.Write(fields...)
}

// requestFields returns the fields that identify a request and its resource in a log
// line. Names come from the router's parameters, or from Direct.Names.
func (s *Server) requestFields(ctx context.Context, requestID, method, path string) []zap.Field {
	fields := []zap.Field{
		zap.String("request_id", requestID), zap.String("method", method), zap.String("path", api.WithoutKeys(path)),
		tracing.Field(tracing.ID(ctx)),
	}
	name := func(field, value string) {
		if value != "" {
			fields = append(fields, zap.String(field, api.WithoutKeys(value)))
		}
	}
	if routed := chi.RouteContext(ctx); routed != nil {
		for _, param := range []string{"tenant", "namespace", "function", "activation_id"} {
			name(param, decoded(routed.URLParam(param)))
		}
	} else if s.direct.takes(path) {
		tenant, namespace, function := s.direct.Names(path)
		name("tenant", tenant)
		name("namespace", namespace)
		name("function", function)
	}
	return fields
}

// PathParam returns a parameter of the request's path as huma passes it to handlers:
// without percent-encoding. Authorisation and handlers must read the same value.
func PathParam(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	return decoded(value)
}

// decoded returns a part of a path without percent-encoding, or as it is where the
// encoding is malformed.
func decoded(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		return plain
	}
	return part
}

// routeNotFound answers paths that no route matches.
func (s *Server) routeNotFound(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, RequestID(r.Context()), routeNotFound())
}

// routeNotFound returns the error of a path at which there is nothing.
func routeNotFound() error {
	return api.Errorf(api.CodeRouteNotFound, "there is nothing at this path; %s lists the routes", pathDocs)
}

// methodNotAllowed answers requests to a path that exists for other methods, and names
// those.
func (s *Server) methodNotAllowed(routes chi.Routes) http.HandlerFunc {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		var allowed []string
		for _, method := range methods {
			if !routes.Match(chi.NewRouteContext(), method, path) {
				continue
			}
			allowed = append(allowed, method)
			if method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(w, r, RequestID(r.Context()), api.Errorf(api.CodeMethodNotAllowed, "%s is not allowed here", r.Method))
	}
}

// IdempotencyKey returns the Idempotency-Key of a request, "" without one. Errors:
// CodeInvalid if it exceeds MaxIdempotencyKey bytes.
func IdempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > MaxIdempotencyKey {
		return "", api.Errorf(api.CodeInvalid, "Idempotency-Key exceeds %s", api.SizeText(MaxIdempotencyKey)).
			WithFields(api.FieldError{Path: "Idempotency-Key", Message: "is too long"})
	}
	return key, nil
}
