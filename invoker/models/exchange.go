package models

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
)

// maxErrorBody bounds the part of the answer of a failed request that is read, in bytes.
const maxErrorBody = 64 << 10

// exchange is a request that a provider has accepted.
type exchange struct {
	body io.ReadCloser
	key  []byte // as it must not reach the function; nil for none
}

// open sends a request to a target. The caller closes the body of the exchange. Errors: a *failure;
// CodeHostInvalidArgument for a request that is too large; those of Keys and of Caller.Send that are
// not the provider's; ctx's.
func (c *Client) open(ctx context.Context, who *Caller, a *attempt, path string, fields map[string]any) (*exchange, error) {
	raw, err := api.EncodeJSON(fields)
	if err != nil {
		return nil, invalid("the request cannot be encoded as JSON")
	}
	if len(raw) > ai.MaxRequestBytes {
		return nil, invalid("a request has at most %s", api.SizeText(ai.MaxRequestBytes))
	}
	base := a.Provider.BaseURL
	if strings.HasPrefix(path, "/v1/") {
		base = strings.TrimSuffix(base, "/v1")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, bytes.NewReader(raw))
	if err != nil {
		return nil, api.Errorf(api.CodeHostAIFailed, "the base URL of the provider %s cannot be used", a.Provider.Name)
	}
	for name, value := range a.Provider.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "sous")
	}
	var key []byte
	if a.Provider.Secret != "" {
		key, err = c.keys.Key(ctx, who, a.Provider)
		if err != nil {
			return nil, err
		}
		key = bytes.TrimSpace(key)
		if len(key) == 0 || !httpguts.ValidHeaderFieldValue(string(key)) {
			return nil, api.Errorf(api.CodeHostSecretUnavailable, "the key of the provider %s is empty, or no value of a header", a.Provider.Name)
		}
	}
	protocolOf(a.Provider).authorize(req.Header, key)
	sent := &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) { a.sent.Store(info.Err == nil) }}
	resp, err := who.Send(req.WithContext(httptrace.WithClientTrace(ctx, sent)))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	ex := &exchange{body: resp.Body, key: key}
	if resp.StatusCode/100 == 2 {
		return ex, nil
	}
	a.sent.Store(false)                                            // the provider has not served it
	defer func() { _ = resp.Body.Close() }()                       // the request has failed
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // the status counts
	return nil, ofStatus(resp.StatusCode, resp.Header, ex.clean(text), time.UnixMilli(c.store.NowMS()))
}

// lost returns the error of an exchange that broke off: a failure of the provider, unless the
// activation has ended, or the platform has refused the exchange.
func (*Client) lost(ctx context.Context, err error) error {
	code := api.ErrorCode(err)
	switch {
	case context.Cause(ctx) != nil && context.Cause(ctx) != errTooLong: //nolint:errorlint // the cause is ours, unwrapped
		return ctx.Err()
	case context.Cause(ctx) != nil:
		return &failure{kind: failing, reason: "it took longer than its timeout_ms"}
	case code == api.CodeHostFetchFailed || code == api.CodeHostFetchTimeout:
		return &failure{kind: failing, reason: textOf(err)}
	}
	return err
}

// shortestKey is the length of the shortest key that is searched for, in bytes. Local servers take
// words such as "none" as keys, which are no secrets, and occur in answers.
const shortestKey = 8

// clean returns text without the key.
func (e *exchange) clean(text []byte) []byte {
	if len(e.key) < shortestKey || !bytes.Contains(text, e.key) {
		return text
	}
	return bytes.ReplaceAll(text, e.key, []byte("***"))
}

// whole reads the answer to its end. Errors: CodeHostAIFailed for one that is too large, those of lost.
func (c *Client) whole(ctx context.Context, who *Caller, e *exchange) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(e.body, ai.MaxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, c.lost(ctx, who.Explain(ctx, err))
	case len(raw) > ai.MaxAnswerBytes:
		return nil, api.Errorf(api.CodeHostAIFailed, "the provider's answer has more than %s", api.SizeText(ai.MaxAnswerBytes))
	}
	return e.clean(raw), nil
}
