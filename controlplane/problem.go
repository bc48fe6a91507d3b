package controlplane

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

// statusOf returns the HTTP status of a code.
func statusOf(code api.Code) int { return httpstatus.Of(code) }

// Problem is the body of every error: RFC 9457 with a stable code, the id under
// which the server logged the request, and the offending places.
type Problem struct {
	Title     string           `json:"title" doc:"the HTTP status in words"`
	Status    int              `json:"status" doc:"the HTTP status"`
	Detail    string           `json:"detail" doc:"what happened, for people"`
	Code      api.Code         `json:"code" doc:"what happened, for programs; see docs/errors.md"`
	RequestID string           `json:"request_id" doc:"the X-Request-Id of the answer"`
	Errors    []api.FieldError `json:"errors,omitempty" doc:"the offending places of the request"`
	Items     []api.ItemError  `json:"items,omitempty" doc:"which of several items failed, and why"`
	Quota     *api.QuotaUse    `json:"quota,omitempty" doc:"the quota that is used up"`
	Envelope  Envelope         `json:"error" doc:"code, message and request id again, for clients that expect this envelope"`

	retryAfter time.Duration
}

// Envelope is the extension member "error" of a Problem.
type Envelope struct {
	Code      api.Code `json:"code"`
	Message   string   `json:"message"`
	RequestID string   `json:"request_id"`
}

// Error makes a Problem an error that huma can write, with GetStatus, GetHeaders
// and ContentType.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders is what stands beside the body.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	p.setHeaders(h)
	return h
}

func (p *Problem) setHeaders(h http.Header) {
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="sous"`)
	}
	if p.retryAfter > 0 {
		seconds := int64((p.retryAfter + time.Second - 1) / time.Second)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
}

const contentTypeProblem = "application/problem+json"

// ContentType is application/problem+json.
func (p *Problem) ContentType(string) string { return contentTypeProblem }

// defaultRetryAfter goes with answers that invite a retry and name no time.
const defaultRetryAfter = time.Second

// newProblem turns an error into what its caller may see: the text of an error
// without a code stays in the log.
func newProblem(err error, requestID string) *Problem {
	var coded *api.Error
	switch {
	case errors.As(err, &coded):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// The caller has gone, or the server is ending; nobody may read this.
		coded = api.Errorf(api.CodeShuttingDown, "the request was given up before it was answered")
	default:
		coded = api.Errorf(api.CodeInternal, "an internal error; the log has it under the request id")
	}
	// What was refused may be a key that stood in the wrong place, or named a field.
	message := api.WithoutKeys(coded.Message)
	fields := slices.Clone(coded.Fields)
	for i, field := range fields {
		fields[i].Path, fields[i].Message = api.WithoutKeys(field.Path), api.WithoutKeys(field.Message)
	}
	p := &Problem{
		Status:     statusOf(coded.Code),
		Detail:     message,
		Code:       coded.Code,
		RequestID:  requestID,
		Errors:     fields,
		Items:      itemsWithoutKeys(coded.Items),
		Quota:      coded.Quota,
		Envelope:   Envelope{Code: coded.Code, Message: message, RequestID: requestID},
		retryAfter: coded.RetryAfter,
	}
	p.Title = http.StatusText(p.Status)
	if p.retryAfter == 0 && p.Code != api.CodeQuotaExceeded && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable) {
		p.retryAfter = defaultRetryAfter
	}
	return p
}

func itemsWithoutKeys(items []api.ItemError) []api.ItemError {
	items = slices.Clone(items)
	for i, item := range items {
		items[i].Message = api.WithoutKeys(item.Message)
	}
	return items
}

// fail answers a request with the problem that err is, and logs it if it is the
// server's own.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	err = storageFailure(r, err)
	p := newProblem(err, requestID)
	p.note(r.Context())
	s.logFailure(r.Context(), p, r.Method, r.URL.Path, err)
	body, marshalErr := encodeLine(p)
	if marshalErr != nil {
		s.log.Error("a problem could not be encoded", zap.Error(marshalErr))
	}
	h := w.Header()
	p.setHeaders(h)
	h.Set("Content-Type", contentTypeProblem)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	boundRest(w, r, err)
	w.WriteHeader(p.Status)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("a problem was not delivered", zap.String("request_id", requestID), zap.Error(err))
	}
}

// note enters in the exchange of ctx what is being answered.
func (p *Problem) note(ctx context.Context) {
	if x := exchangeOf(ctx); x != nil {
		x.code = p.Code
	}
}

// logFailure logs what the server answers for: a 5xx of its own, not of a function.
func (s *Server) logFailure(ctx context.Context, p *Problem, method, path string, err error) {
	switch p.Status {
	case http.StatusInternalServerError:
		s.log.Error("request failed", append(requestFields(ctx, p.RequestID, method, path), zap.Error(err))...)
	case http.StatusServiceUnavailable:
		if p.Code == api.CodeShuttingDown && path == pathReadyz {
			return // what probes are to hear of a replica that ends as it was told
		}
		s.log.Warn("request not served", append(requestFields(ctx, p.RequestID, method, path), zap.Error(err))...)
	}
}

// init tells huma how its own failures (a body that breaks its schema, a
// parameter that is no number) look. Package variables are the only hook that
// huma has for this; both are pure functions of their arguments.
func init() {
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return newProblem(humaError(status, msg, errs), "")
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		p := newProblem(humaError(status, msg, errs), requestIDOf(ctx.Context()))
		p.note(ctx.Context())
		return p
	}
}

// humaError gives a failure that huma found the code that it has with us. A
// coded error among errs (a resolver's) wins.
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
		return api.Errorf(api.CodeValidation, "%s", msg).WithFields(fields...)
	case http.StatusUnsupportedMediaType:
		return api.Errorf(api.CodeMediaType, "the body must be application/json")
	case http.StatusRequestTimeout:
		return api.Errorf(api.CodeRequestTimeout, "the body did not arrive in time")
	}
	return errors.Join(append([]error{errors.New(msg)}, errs...)...)
}

// humaFields gives huma's details as ours: "body.ref.alias" is "ref.alias".
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
		fields = append(fields, missingField(api.FieldError{Path: path, Message: d.Message}))
	}
	return fields
}

// missingField gives a field that huma misses its own path: huma reports it at
// the object that should have had it.
func missingField(f api.FieldError) api.FieldError {
	const before, after = "expected required property ", " to be present" // validation.MsgExpectedRequiredProperty
	name := strings.TrimSuffix(strings.TrimPrefix(f.Message, before), after)
	if before+name+after != f.Message {
		return f
	}
	return api.FieldError{Path: strings.TrimPrefix(f.Path+"."+name, "."), Message: "is required"}
}
