package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// maxAnswer bounds the answer of a route: a model has no use for more. Bundles have a bound of their
// own.
const maxAnswer = 1 << 20

// operation is a request of the REST API.
type operation struct {
	method, path string
	query        url.Values
	body         any // JSON; nil for none
	tar          []byte
	header       http.Header
	limit        int // of the answer; 0: maxAnswer
}

// answered is the answer of a route that succeeded.
type answered struct {
	status int
	body   []byte
}

// refusedError is the problem with which a route refused a request.
type refusedError struct {
	status int
	code   api.Code
	body   json.RawMessage
}

// Error implements error.
func (e *refusedError) Error() string { return fmt.Sprintf("%d %s", e.status, e.body) }

// codeOf returns the code of the problem that err is, "" for another error.
func codeOf(err error) api.Code {
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.code
	}
	return ""
}

// do sends a request to the API, as if the caller had sent it. It ends with ctx. Errors: a refusedError,
// and those of an answer that is too large.
func (s *session) do(ctx context.Context, op operation) (answered, error) {
	r, err := s.requestOf(ctx, op)
	if err != nil {
		return answered{}, err
	}
	w := &buffer{header: http.Header{}, limit: op.limit}
	if w.limit == 0 {
		w.limit = maxAnswer
	}
	if err := serveInside(s.api.rest(), w, r); err != nil {
		return answered{}, err
	}
	switch {
	case ctx.Err() != nil:
		return answered{}, ctx.Err()
	case w.overflow:
		return answered{}, fmt.Errorf("the answer of %s %s exceeds %s", op.method, op.path, api.SizeText(int64(w.limit)))
	case w.status >= http.StatusBadRequest:
		refused := &refusedError{status: w.status, body: bytes.TrimSpace(w.body.Bytes())}
		var problem rest.Problem
		if json.Unmarshal(refused.body, &problem) == nil {
			refused.code = problem.Code
		}
		return answered{}, refused
	}
	return answered{w.status, w.body.Bytes()}, nil
}

// requestOf makes the request of an operation: it has the key, the address and the host of the
// caller's own request, and none of its other headers.
func (s *session) requestOf(ctx context.Context, op operation) (*http.Request, error) {
	// The request is no part of the one that it serves: neither its route nor its connection are.
	ctx = rest.WithConnection(context.WithValue(ctx, chi.RouteCtxKey, (*chi.Context)(nil)), nil)
	body, contentType := op.tar, "application/x-tar"
	if op.body != nil {
		var err error
		body, err = api.EncodeJSON(op.body)
		if err != nil {
			return nil, err
		}
		contentType = rest.ContentTypeJSON
	}
	target := op.path
	if len(op.query) > 0 {
		target += "?" + op.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, op.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.RequestURI, r.Host, r.RemoteAddr = target, s.request.Host, s.request.RemoteAddr
	if op.header != nil {
		r.Header = op.header
	}
	if keys := s.request.Header[access.HeaderAuthorization]; len(keys) > 0 {
		r.Header[access.HeaderAuthorization] = keys
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", contentType)
	}
	return r, nil
}

// serveInside answers r. A handler that cuts its connection ends with an error.
func serveInside(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		p := recover()
		if cause, ok := p.(error); ok && errors.Is(cause, http.ErrAbortHandler) {
			err = errors.New("the request was cut short")
			return
		}
		if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// buffer is an answer in memory.
type buffer struct {
	header   http.Header
	status   int
	body     bytes.Buffer
	limit    int
	overflow bool
}

// Header implements http.ResponseWriter.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffer) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

// Write implements http.ResponseWriter.
func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	if b.body.Len()+len(p) > b.limit {
		b.overflow = true
		return 0, errors.New("the answer is too large")
	}
	return b.body.Write(p)
}

// tenantPath returns a path below the tenant. The parts are escaped.
func (s *session) tenantPath(parts ...string) string {
	var b strings.Builder
	b.WriteString("/v1/tenants/" + s.tenant)
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}
	return b.String()
}

// functionPath returns a path below a function of a namespace.
func (s *session) functionPath(namespace, function string, parts ...string) string {
	return s.tenantPath(append([]string{"namespaces", namespace, "functions", function}, parts...)...)
}

// read sends a GET and decodes the JSON of its answer.
func read[T any](ctx context.Context, s *session, path string) (T, error) {
	var v T
	got, err := s.do(ctx, operation{method: http.MethodGet, path: path})
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(got.body, &v)
}

// maxSource bounds the bundle of which a file is read.
const maxSource = 4 << 20

// files returns the files of a version, whose bundle has at most limit bytes.
func (s *session) files(ctx context.Context, namespace, function string, version int64, limit int) (map[string][]byte, error) {
	got, err := s.do(ctx, operation{
		method: http.MethodGet, path: s.functionPath(namespace, function, "versions", strconv.FormatInt(version, 10), "bundle"), limit: limit,
	})
	if err != nil {
		return nil, err
	}
	return bundle.Unpack(bytes.NewReader(got.body))
}
