package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
)

// ResponseError is a response that is not a success. Err is the error of its
// problem+json. If the body is not problem+json, as of a proxy, Err has CodeInternal and the
// beginning of the body, and Foreign is set. api.ErrorCode sees through it:
//
//	if api.ErrorCode(err) == api.CodeFunctionNotFound { … }
type ResponseError struct {
	Status    int    // the HTTP status
	RequestID string // "" if the response has none
	Err       *api.Error
	// Foreign is set if the answer is not in the form of this API.
	Foreign bool
}

func (e *ResponseError) Error() string {
	if e.RequestID == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (request %s)", e.Err, e.RequestID)
}

// Unwrap returns the *api.Error.
func (e *ResponseError) Unwrap() error { return e.Err }

// UnreachableError means that no complete response arrived. The server may or may not
// have executed the request.
type UnreachableError struct {
	URL string // the server's
	Err error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("no answer from %s: %v", e.URL, e.Err) }

// Unwrap returns the transport's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// problem contains the fields of problem+json that the client reads.
type problem struct {
	Title     string           `json:"title"`
	Detail    string           `json:"detail"`
	Code      api.Code         `json:"code"`
	RequestID string           `json:"request_id"`
	Errors    []api.FieldError `json:"errors"`
	Items     []api.ItemError  `json:"items"`
	Quota     *api.QuotaUse    `json:"quota"`
	RetryMS   int64            `json:"retry_after_ms"`
}

// responseError returns the error of a response that is not a success.
func responseError(a *answer) *ResponseError {
	out := &ResponseError{
		Status:    a.status,
		RequestID: a.header.Get("X-Request-Id"),
		Err:       &api.Error{Code: api.CodeInternal, RetryAfter: retryAfter(a.header)},
	}
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil || p.Code == "" {
		out.Foreign = true
		out.Err.Message = fmt.Sprintf("the server answered %d %s: %s", a.status, http.StatusText(a.status), excerpt(a.body))
		return out
	}
	if p.RequestID != "" {
		out.RequestID = p.RequestID
	}
	out.Err.Code, out.Err.Message, out.Err.Fields = p.Code, p.Detail, p.Errors
	out.Err.Items, out.Err.Quota = p.Items, p.Quota
	if p.RetryMS > 0 { // more exact than the header
		out.Err.RetryAfter = time.Duration(p.RetryMS) * time.Millisecond
	}
	if out.Err.Message == "" {
		out.Err.Message = p.Title
	}
	return out
}

// excerpt returns the beginning of a body, quoted, since it may be binary.
func excerpt(body []byte) string {
	const most = 200
	s := strings.TrimSpace(string(body[:min(len(body), most)]))
	if s == "" {
		return "(empty body)"
	}
	return strconv.QuoteToGraphic(s)
}

// retryAfter parses a Retry-After header in seconds or as a date. It returns 0 without one.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		// Zero seconds still requests another attempt.
		return max(time.Duration(s)*time.Second, time.Millisecond)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}
