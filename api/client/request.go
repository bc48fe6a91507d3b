package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/sleep"
)

// Limits of a response body.
const (
	maxAnswerBytes = 64 << 20 // the longest page: MaxPageLimit inline results and errors
	maxErrorBytes  = 1 << 20
)

const (
	contentJSON = "application/json"
	contentTar  = "application/x-tar"
)

// request is one request to the API.
type request struct {
	method      string
	path        string // escaped, from the base URL on
	query       url.Values
	header      http.Header
	body        []byte
	contentType string
	limit       int64 // bytes of the response; 0 is maxAnswerBytes
	again       bool  // a POST that is safe to repeat
}

// repeatable reports whether r is safe to send twice: by its method, by an idempotency key,
// or because its caller says so. A repeated DELETE can end with a not-found error although
// the first one was executed.
func (r *request) repeatable() bool {
	switch r.method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.again || r.header.Get("Idempotency-Key") != ""
}

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends r, repeats it if that is safe and the server asks for it, and returns the
// response of a success. Its errors are *ResponseError, *UnreachableError and the error of
// ctx. A request without a response is not repeated here: it may have taken effect, and its
// caller knows whether that matters.
//
//	POST (no key)           503, Retry-After: 1   the error
//	POST, Idempotency-Key   503, Retry-After: 1   sent again after 1 s, up to MaxAttempts
//	GET, PUT, DELETE        503, Retry-After: 1   the same
//	GET                     no response           UnreachableError
func (c *Client) do(ctx context.Context, r *request) (*answer, error) {
	for attempt := 1; ; attempt++ {
		a, err := c.once(ctx, r)
		if err != nil {
			return nil, err
		}
		if a.status >= 200 && a.status < 300 {
			return a, nil
		}
		failure := responseError(a)
		wait := failure.Err.RetryAfter
		if a.status != http.StatusServiceUnavailable || wait == 0 || !r.repeatable() || attempt >= c.cfg.MaxAttempts {
			return nil, failure
		}
		if err := sleep.For(ctx, min(wait, c.cfg.MaxRetryWait)); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
}

// once sends r and reads the complete response.
func (c *Client) once(ctx context.Context, r *request) (*answer, error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // the body was read
	limit := r.limit
	switch {
	case res.StatusCode >= 300:
		limit = maxErrorBytes
	case limit == 0:
		limit = maxAnswerBytes
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("the answer to %s %s is over %d bytes", r.method, r.path, limit)
	}
	return &answer{status: res.StatusCode, header: res.Header, body: body}, nil
}

// send sends r and returns the open response of any status. The caller closes its body.
func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if c.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return res, nil
}

// unreachable returns the error of ctx if that caused err, else an *UnreachableError.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // its text would repeat the URL
	}
	return &UnreachableError{URL: c.base, Err: err}
}

// call sends in as JSON (nil: no body) and decodes the response into out (nil: ignores it).
func (c *Client) call(ctx context.Context, r *request, in, out any) (*answer, error) {
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		r.body, r.contentType = body, contentJSON
	}
	a, err := c.do(ctx, r)
	if err != nil || out == nil {
		return a, err
	}
	if err := json.Unmarshal(a.body, out); err != nil {
		return nil, &ResponseError{Status: a.status, RequestID: a.header.Get("X-Request-Id"),
			Foreign: true, Err: api.Wrap(api.CodeInternal, err, "the server's answer cannot be read")}
	}
	return a, nil
}
