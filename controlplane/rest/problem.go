package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
)

// Problem is the body of every error: RFC 9457 with a stable code, the id under which
// the server logged the request, and the invalid fields. docs/errors.md has an example,
// and the code's statuses and meanings. It contains only what the caller may see: the
// text of a wrapped cause, such as a store's, is in the log.
type Problem struct {
	Title     string           `json:"title" doc:"the HTTP status in words"`
	Status    int              `json:"status" doc:"the HTTP status"`
	Detail    string           `json:"detail" doc:"the description of the error, for people"`
	Code      api.Code         `json:"code" doc:"the code of the error, for programs; see docs/errors.md"`
	RequestID string           `json:"request_id" doc:"the X-Request-Id of the answer"`
	Errors    []api.FieldError `json:"errors,omitempty" doc:"the invalid parts of the request"`
	Items     []api.ItemError  `json:"items,omitempty" doc:"the items that failed, with the reasons"`
	Quota     *api.QuotaUse    `json:"quota,omitempty" doc:"the quota that is used up"`
	// RetryAfterMS is set if the server can tell the time.
	RetryAfterMS int64    `json:"retry_after_ms,omitempty" doc:"milliseconds after which a retry may be admitted; Retry-After has them in whole seconds, rounded up"`
	Envelope     Envelope `json:"error" doc:"code, message and request id again, for clients that expect this envelope"`

	retryAfter time.Duration
}

// Envelope is the extension member "error" of a Problem.
type Envelope struct {
	Code      api.Code `json:"code"`
	Message   string   `json:"message"`
	RequestID string   `json:"request_id"`
}

// Error returns the code and the detail. With GetStatus, GetHeaders and ContentType it
// makes a Problem an error that huma can write.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders returns the headers that accompany the body.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.setHeaders(h)
	return h
}

// setHeaders sets the headers that accompany the problem. Retry-After is in whole
// seconds, rounded up: a retry that is too early would be refused again.
func (p *Problem) setHeaders(h http.Header) {
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="sous"`)
	}
	if p.retryAfter > 0 {
		seconds := int64((p.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
}

// Content types.
const (
	ContentTypeJSON    = "application/json"
	ContentTypeProblem = "application/problem+json"
	ContentTypeEvents  = "text/event-stream"
)

// ContentType returns application/problem+json.
func (p *Problem) ContentType(string) string { return ContentTypeProblem }

// defaultRetryAfter is the Retry-After of answers 429 and 503 whose error does not set
// one.
const defaultRetryAfter = time.Second

// maxProblemFields bounds the fields that a problem names: a body of 1 MiB can have 100,000 faults.
const maxProblemFields = 100

// codedError returns the coded error that an answer shows for err.
func codedError(err error) *api.Error {
	var coded *api.Error
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The caller has gone, or the server is ending.
		return api.Errorf(api.CodeShuttingDown, "the request was given up before it was answered")
	}
	return api.Errorf(api.CodeInternal, "an internal error; the log has it under the request id")
}

// Refusal returns the error with which a part of the request of ctx is refused, whose status is not
// the part's: a frame of a stream. It logs err as the failure of a request.
func Refusal(ctx context.Context, err error) *api.Error {
	coded := *codedError(err)
	x := exchangeOf(ctx)
	p := newProblem(&coded, RequestID(ctx))
	if x != nil {
		x.server.logFailure(ctx, p, http.MethodPost, x.answer.route, err)
	}
	coded.Message, coded.Fields = p.Detail, p.Errors
	return &coded
}

// newProblem returns the problem that the caller sees of err:
//
//	*api.Error (also wrapped)      its code, message, fields, items, quota, RetryAfter
//	context.Canceled, Deadline…    503 CS_SHUTTING_DOWN
//	any other error                500 CS_INTERNAL; the text stays in the log
//
// 429 and 503 have a Retry-After, by default a second; an exhausted quota does not, since
// time does not free it.
func newProblem(err error, requestID string) *Problem {
	coded := codedError(err)
	// The refused value may be an API key in the wrong place, or the name of a field.
	message := api.WithoutKeys(coded.Message)
	fields := slices.Clone(coded.Fields[:min(len(coded.Fields), maxProblemFields)])
	for i, field := range fields {
		fields[i].Path, fields[i].Message = api.WithoutKeys(field.Path), api.WithoutKeys(field.Message)
	}
	p := &Problem{
		Status:     httpstatus.Of(coded.Code),
		Detail:     message,
		Code:       coded.Code,
		RequestID:  requestID,
		Errors:     fields,
		Items:      itemsWithoutKeys(coded.Items),
		Quota:      coded.Quota,
		Envelope:   Envelope{Code: coded.Code, Message: message, RequestID: requestID},
		retryAfter: coded.RetryAfter,
	}
	if coded.RetryAfter > 0 {
		p.RetryAfterMS = int64((coded.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	}
	p.Title = http.StatusText(p.Status)
	if p.retryAfter == 0 && p.Code != api.CodeQuotaExceeded && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable) {
		p.retryAfter = defaultRetryAfter
	}
	return p
}

// itemsWithoutKeys returns a copy of items whose messages contain no API keys.
func itemsWithoutKeys(items []api.ItemError) []api.ItemError {
	items = slices.Clone(items)
	for i, item := range items {
		items[i].Message = api.WithoutKeys(item.Message)
	}
	return items
}

// fail answers a request with the problem that err is, and logs err if the server is
// its cause. It applies the route's Failure first, so that errors of this package (a missing
// role, a body that is too large) have the route's codes, too. It must be called before
// anything of the answer is written.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	if route := s.routeOf(r); route != nil && route.Failure != nil {
		err = route.Failure(err)
	}
	p := newProblem(err, requestID)
	p.note(r.Context())
	trackedOf(w).failed(p.Code)
	s.logFailure(r.Context(), p, r.Method, s.direct.path(r), err)
	body, marshalErr := encodeLine(p)
	if marshalErr != nil {
		s.log.Error("a problem could not be encoded", zap.Error(marshalErr))
	}
	h := w.Header()
	p.setHeaders(h)
	h.Set("Content-Type", ContentTypeProblem)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	boundRest(w, r, err)
	w.WriteHeader(p.Status)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("a problem was not delivered", zap.String("request_id", requestID), zap.Error(err))
	}
}

// note records the problem's code in the exchange of ctx.
func (p *Problem) note(ctx context.Context) {
	if x := exchangeOf(ctx); x != nil {
		x.code = p.Code
		x.answer.failed(p.Code)
	}
}

// logFailure logs errors whose cause is the server: its own 5xx, not those of
// functions.
func (s *Server) logFailure(ctx context.Context, p *Problem, method, path string, err error) {
	switch p.Status {
	case http.StatusInternalServerError:
		s.log.Error("request failed", append(s.requestFields(ctx, p.RequestID, method, path), zap.Error(err))...)
	case http.StatusServiceUnavailable:
		if p.Code == api.CodeShuttingDown && path == PathReadyz {
			return // expected: probes of a replica that shuts down
		}
		if p.Code == api.CodeOverloaded {
			return // counted, and logged by logOverload: a line for each would be a load of its own
		}
		s.log.Warn("request not served", append(s.requestFields(ctx, p.RequestID, method, path), zap.Error(err))...)
	}
}

// init defines how huma's own errors look, such as a body that breaks its schema.
// Package variables are huma's only hook for this. Both functions depend only on their
// arguments.
func init() {
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return newProblem(humaError(status, msg, errs), "")
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		err := humaError(status, msg, explainParameters(ctx.Operation(), errs))
		p := newProblem(err, RequestID(ctx.Context()))
		p.note(ctx.Context())
		return p
	}
}

// explainParameters returns errs with suggestions for query parameters that op does not declare.
func explainParameters(op *huma.Operation, errs []error) []error {
	explained := slices.Clone(errs)
	for i, err := range errs {
		var detail *huma.ErrorDetail
		if op != nil && errors.As(err, &detail) && detail.Message == unknownQueryParameter {
			unknown := *detail
			unknown.Message = unknownParameter(strings.TrimPrefix(unknown.Location, "query."), op.Parameters).Message
			explained[i] = &unknown
		}
	}
	return explained
}

// humaError returns huma's error with one of our codes. A coded error among errs, which
// comes from a resolver, wins. An error that matches no case has no code and so becomes
// a CodeInternal.
func humaError(status int, msg string, errs []error) error {
	for _, err := range errs {
		var coded *api.Error
		if errors.As(err, &coded) {
			return coded
		}
	}
	fields := humaFields(errs)
	if len(fields) > 0 {
		msg = strings.TrimPrefix(fields[0].Path+": "+fields[0].Message, ": ")
	}
	switch status {
	case http.StatusBadRequest:
		return api.Errorf(api.CodeValidationJSON, "the body cannot be read: %s", msg)
	case http.StatusUnprocessableEntity:
		return api.Errorf(api.CodeInvalid, "%s", msg).WithFields(fields...)
	case http.StatusUnsupportedMediaType:
		return api.Errorf(api.CodeMediaType, "the body must be application/json")
	case http.StatusRequestTimeout:
		return api.Errorf(api.CodeRequestTimeout, "the body did not arrive in time")
	}
	return errors.Join(append([]error{errors.New(msg)}, errs...)...)
}

// humaFields returns huma's details as field errors: "body.ref.alias" becomes
// "ref.alias".
func humaFields(errs []error) []api.FieldError {
	var fields []api.FieldError
	for _, err := range errs {
		var detail huma.ErrorDetailer
		if !errors.As(err, &detail) {
			continue
		}
		d := detail.ErrorDetail()
		path := d.Location
		for _, place := range []string{"body", "path", "query", "header"} {
			if rest, ok := strings.CutPrefix(path, place); ok && (rest == "" || rest[0] == '.') {
				path = strings.TrimPrefix(rest, ".")
				break
			}
		}
		fields = append(fields, withRule(missingField(api.FieldError{Path: path, Message: d.Message})))
	}
	return fields
}

// missingField returns the error of a missing field with the field's own path: huma
// reports it at the object that should have the field.
func missingField(f api.FieldError) api.FieldError {
	const before, after = "expected required property ", " to be present" // validation.MsgExpectedRequiredProperty
	name := strings.TrimSuffix(strings.TrimPrefix(f.Message, before), after)
	if before+name+after != f.Message {
		return f
	}
	return api.FieldError{Path: strings.TrimPrefix(f.Path+"."+name, "."), Message: "is required"}
}
