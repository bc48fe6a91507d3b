package controlplane

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
	"github.com/codesous/sous/tracing"
)

// Every answer's headers, in canonical form so that setting them costs nothing.
const (
	headerRequestID    = "X-Request-Id"
	headerActivationID = "X-Cs-Activation-Id"
	headerReplayed     = "Idempotent-Replayed"
	headerTimeoutLimit = "X-Cs-Timeout-Limit-Ms"
)

// maxIdempotencyKey bounds the Idempotency-Key header, in bytes.
const maxIdempotencyKey = 255

type exchangeKey struct{}

// exchange is what is known of a request to the API while it is answered, by one
// goroutine.
type exchange struct {
	requestID string
	caller    *caller // who asks; nil until authorize knows, and on public routes
	action    Action
	tenant    string // as the path has it
	answer    *trackedWriter
	code      api.Code // of the problem that is the answer
	made      string   // for the audit: what came into being
}

// exchangeOf is that of the request that ctx belongs to; nil where there is none.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// requestIDOf is the id of the request that ctx belongs to.
func requestIDOf(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.requestID
	}
	return ""
}

// callerOf is who sent the request that ctx belongs to. Every route but the
// public ones has one.
func callerOf(ctx context.Context) *caller {
	if x := exchangeOf(ctx); x != nil && x.caller != nil {
		return x.caller
	}
	return &caller{namespace: "-"} // nobody: it enters nothing
}

// noteMade tells the audit what the request of ctx made.
func noteMade(ctx context.Context, what string) {
	if x := exchangeOf(ctx); x != nil {
		x.made = what
	}
}

// serve is what all requests pass: an id, the guards, the log, the net below
// panics. Function endpoints leave the way here, before the router: they take
// any method, also ones that no router knows, and must be cheap.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	begin := s.clock()
	requestID := api.NewRequestID(begin.UnixMilli())
	w.Header()[headerRequestID] = []string{requestID}
	tracked := &trackedWriter{ResponseWriter: w, patience: s.patience}
	if s.tracer != nil {
		traced, end := s.trace(tracked, r)
		defer end()
		r = traced
	}
	defer tracked.bound(0) // of what net/http still holds of the answer
	defer s.metrics.begin(tracked, r.Method)()
	boundBody(w, r)
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		tracked.bound(0) // of the leave to send it (100 Continue); HTTP/2 would end the run, too
	}
	defer func() {
		if p := recover(); p != nil {
			s.recovered(tracked, r, requestID, p)
		}
		if entry := s.log.Check(zapcore.DebugLevel, "request"); entry != nil {
			s.logRequest(entry, tracked, r, requestID, begin)
		}
	}()
	if err := s.checkLimits(r); err != nil {
		s.fail(tracked, r, requestID, err)
		return
	}
	if strings.HasPrefix(r.URL.Path, webPrefix) {
		tracked.route = routeWeb
		s.serveWeb(tracked, r, requestID)
		return
	}
	s.serveAPI(tracked, r, requestID)
}

// serveAPI answers what the router knows, and writes the audit.
func (s *Server) serveAPI(w *trackedWriter, r *http.Request, requestID string) {
	x := &exchange{requestID: requestID, answer: w}
	defer s.audit(r, x) // also of a handler that panics: it may have got far
	s.router.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// checkLimits refuses what is too large or not for us before anything else
// looks at it.
func (s *Server) checkLimits(r *http.Request) error {
	if err := s.checkHost(r); err != nil {
		return err
	}
	if len(r.URL.RawQuery) > api.MaxQueryBytes {
		return api.Errorf(api.CodeQueryLimit, "the query exceeds %d bytes", api.MaxQueryBytes)
	}
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	if size > api.MaxHeaderBytes {
		return api.Errorf(api.CodeHeaderLimit, "the request line and headers exceed %d bytes", api.MaxHeaderBytes)
	}
	return nil
}

// recovered answers a request whose handler panicked, if there is still one to
// answer.
func (s *Server) recovered(w *trackedWriter, r *http.Request, requestID string, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // net/http's own way to hang up
	}
	s.log.Error("panic", append(requestFields(r.Context(), requestID, r.Method, r.URL.Path),
		zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))...)
	if w.status != 0 {
		panic(http.ErrAbortHandler) // half an answer is out: the client must see that it is cut
	}
	s.fail(w, r, requestID, fmt.Errorf("panic: %v", p))
}

func (s *Server) logRequest(entry *zapcore.CheckedEntry, w *trackedWriter, r *http.Request, requestID string, begin time.Time) {
	fields := append(requestFields(r.Context(), requestID, r.Method, r.URL.Path),
		zap.Int("status", w.status),
		zap.Int64("bytes", w.bytes),
		zap.Duration("took", s.clock().Sub(begin)))
	// A client's own id helps to find its request; it is never used as ours.
	if theirs := r.Header.Get(headerRequestID); theirs != "" {
		fields = append(fields, zap.String("client_request_id", api.WithoutKeys(theirs[:min(len(theirs), 128)])))
	}
	entry.Write(fields...)
}

// requestFields name a request in a log line, and what its path does.
func requestFields(ctx context.Context, requestID, method, path string) []zap.Field {
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
	} else if target, err := parseWebPath(path); err == nil && strings.HasPrefix(path, webPrefix) {
		name("tenant", target.tenant)
		name("namespace", target.namespace)
		name("function", target.function)
	}
	return fields
}

// pathParam is a parameter of the request's path as huma gives it to handlers:
// decoded where the router has it as it was sent. Whoever judges a request must
// read it as whoever answers it.
func pathParam(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return value
	}
	return decoded(value)
}

// decoded is a part of a path without percent-encoding, or as it is where that
// cannot be.
func decoded(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		return plain
	}
	return part
}

// routeNotFound answers what no route matches.
func (s *Server) routeNotFound(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, requestIDOf(r.Context()), api.Errorf(api.CodeRouteNotFound, "there is nothing at this path; /docs lists the routes"))
}

// methodNotAllowed answers a path that exists for other methods, and names them.
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
		s.fail(w, r, requestIDOf(r.Context()), api.Errorf(api.CodeMethodNotAllowed, "%s is not allowed here", r.Method))
	}
}

// idempotencyKey reads the header that makes an invoke safe to repeat.
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxIdempotencyKey {
		return "", api.Errorf(api.CodeValidation, "Idempotency-Key exceeds %d bytes", maxIdempotencyKey).
			WithFields(api.FieldError{Path: "Idempotency-Key", Message: "is too long"})
	}
	return key, nil
}
