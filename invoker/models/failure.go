package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
)

// The kinds of failures. Those before refused are failures of the provider: the call moves to the next
// target, or is repeated, and the circuit of the provider may open.
const (
	rateLimited = iota
	overloaded
	failing // it cannot be reached, answered 5xx, or cut its answer
	refused // it answered, and a repeat is useless
)

// statusOverloaded is Anthropic's status of an overload.
const statusOverloaded = 529

// maxReason bounds the text of a provider's error that the function sees, in bytes.
const maxReason = 1000

// failure is a failed request to a provider.
type failure struct {
	kind       int
	status     int // 0 for none
	provider   string
	reason     string
	retryAfter time.Duration // that the provider asked for, 0 for none
}

func (f *failure) Error() string { return f.text() }

func (f *failure) text() string {
	if f.status == 0 {
		return fmt.Sprintf("the provider %s failed: %s", f.provider, f.reason)
	}
	return fmt.Sprintf("the provider %s answered %d: %s", f.provider, f.status, f.reason)
}

// moves reports whether another target, or another try, may serve the call.
func (f *failure) moves() bool { return f.kind != refused }

// public returns the error that the function sees. wait is how long it should wait, 0 if unknown.
func (f *failure) public(wait time.Duration) error {
	code := api.CodeHostAIFailed
	switch f.kind {
	case rateLimited:
		code = api.CodeHostAIRateLimited
	case overloaded, failing:
		code = api.CodeHostAIUnavailable
	}
	return withMembers(api.Errorf(code, "%s", f.text()), f.provider, f.status, max(wait, f.retryAfter))
}

// withMembers returns an error that has the provider, its status and a wait as members.
func withMembers(err *api.Error, provider string, status int, wait time.Duration) error {
	members := map[string]any{"provider": provider}
	if status != 0 {
		members["status"] = status
	}
	if wait > 0 {
		members["retryAfterMs"] = wait.Milliseconds()
	}
	raw, encodeErr := api.EncodeJSON(members)
	if encodeErr != nil {
		return err
	}
	return &sandbox.HostError{Refusal: err, Members: raw}
}

// ofStatus returns the failure of an answer that is no success, with the beginning of its body.
func ofStatus(status int, header http.Header, body []byte, now time.Time) *failure {
	reason, code := reasonOf(body)
	f := &failure{status: status, kind: refused, reason: reason, retryAfter: retryAfter(header, now)}
	switch {
	case status == http.StatusTooManyRequests && code == "insufficient_quota":
		f.retryAfter = 0 // the account is empty
	case status == http.StatusTooManyRequests:
		f.kind = rateLimited
	case status == statusOverloaded, status == http.StatusServiceUnavailable:
		f.kind = overloaded
	case status >= 500, status == http.StatusRequestTimeout:
		f.kind = failing
	}
	if status >= 300 && status < 400 {
		f.reason = "it redirects, which is not followed"
	}
	return f
}

// reported returns the failure that a provider has reported within a stream.
func reported(data []byte) error {
	reason, code := reasonOf(data)
	f := &failure{kind: failing, reason: reason}
	switch code {
	case "overloaded_error":
		f.kind = overloaded
	case "rate_limit_error", "rate_limit_exceeded":
		f.kind = rateLimited
	case "invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large", "insufficient_quota":
		f.kind = refused
	}
	return f
}

// reasonOf returns the text of a provider's error, and its code or type.
func reasonOf(body []byte) (reason, code string) {
	var in struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			// Code is a text, a number, or, from a provider that misbehaves, a value of any size.
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &in) == nil && in.Error.Message != "" {
		_ = json.Unmarshal(in.Error.Code, &code) // a code that is no text is none
		return shortText(in.Error.Message), cmp.Or(code, in.Error.Type)
	}
	return cmp.Or(shortText(string(body)), "no reason"), ""
}

// shortText returns the beginning of a text.
func shortText(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + " …"
	}
	return text
}

// retryAfter returns how long a provider asks to wait, 0 for none.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
