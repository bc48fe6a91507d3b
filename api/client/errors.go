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

// ResponseError is an answer that is not a success. Err is what its
// problem+json says; where the body is none, Err has CodeInternal and the first
// words of the body.
type ResponseError struct {
	Status    int    // the HTTP status
	RequestID string // "" where the server gave none
	Err       *api.Error
}

func (e *ResponseError) Error() string {
	if e.RequestID == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v (request %s)", e.Err, e.RequestID)
}

// Unwrap gives the *api.Error.
func (e *ResponseError) Unwrap() error { return e.Err }

// UnreachableError says that no complete answer came: the request may or may not
// have been carried out.
type UnreachableError struct {
	URL string // the server's
	Err error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("no answer from %s: %v", e.URL, e.Err) }

// Unwrap gives the transport's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// problem is the part of problem+json that a client reads.
type problem struct {
	Title     string           `json:"title"`
	Detail    string           `json:"detail"`
	Code      api.Code         `json:"code"`
	RequestID string           `json:"request_id"`
	Errors    []api.FieldError `json:"errors"`
	Items     []api.ItemError  `json:"items"`
	Quota     *api.QuotaUse    `json:"quota"`
}

func responseError(a *answer) *ResponseError {
	out := &ResponseError{
		Status:    a.status,
		RequestID: a.header.Get("X-Request-Id"),
		Err:       &api.Error{Code: api.CodeInternal, RetryAfter: retryAfter(a.header)},
	}
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil || p.Code == "" {
		out.Err.Message = fmt.Sprintf("the server answered %d %s: %s", a.status, http.StatusText(a.status), excerpt(a.body))
		return out
	}
	if p.RequestID != "" {
		out.RequestID = p.RequestID
	}
	out.Err.Code, out.Err.Message, out.Err.Fields = p.Code, p.Detail, p.Errors
	out.Err.Items, out.Err.Quota = p.Items, p.Quota
	if out.Err.Message == "" {
		out.Err.Message = p.Title
	}
	return out
}

func excerpt(body []byte) string {
	const most = 200
	s := strings.TrimSpace(string(body[:min(len(body), most)]))
	if s == "" {
		return "(empty body)"
	}
	return strconv.QuoteToGraphic(s)
}

// retryAfter reads Retry-After in seconds or as a date; 0 means there is none.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		// Zero seconds still asks for another try.
		return max(time.Duration(s)*time.Second, time.Millisecond)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}
