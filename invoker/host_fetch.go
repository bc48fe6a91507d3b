package invoker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/tracing"
)

// Limits of fetch; GET /v1/limits prints them.
const (
	MaxFetchRequestBytes  = 6 << 20
	MaxFetchResponseBytes = 6 << 20
	maxFetchRedirects     = 20 // the fetch standard's
	smallFetchResponse    = 256 << 10
	maxFetchHeaders       = 256
)

// fetchHost serves fetch and cs.http.fetch.
type fetchHost struct {
	transport http.RoundTripper
}

func newFetchHost(allow []netip.Prefix, resolver *net.Resolver) *fetchHost {
	return &fetchHost{transport: (&egress{allow: allow, own: net.InterfaceAddrs}).transport(resolver)}
}

type fetchArgs struct {
	URL      string      `json:"url"`
	Method   string      `json:"method,omitempty"`
	Headers  [][2]string `json:"headers,omitempty"`
	Redirect string      `json:"redirect,omitempty"`
}

type fetchReply struct {
	Status     int         `json:"status"`
	StatusText string      `json:"status_text"`
	URL        string      `json:"url"`
	Redirected bool        `json:"redirected"`
	Headers    [][2]string `json:"headers"`
}

// permit checks the first host; redirects check each further one.
func (h *fetchHost) permit(s *scope, a fetchArgs) string {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" {
		return "" // fetch refuses the URL itself, with a better reason
	}
	return permitHost(s, u)
}

func permitHost(s *scope, u *url.URL) string {
	if c := s.capabilities.HTTP; c != nil && hostAllowed(c.AllowHosts, u) {
		return ""
	}
	return `{"http": {"allowHosts": [` + quoted(u.Host) + `]}}`
}

func (h *fetchHost) fetch(ctx context.Context, s *scope, a fetchArgs, body []byte) (any, []byte, error) {
	if c := s.capabilities.HTTP; c != nil && c.TimeoutMS > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.TimeoutMS)*time.Millisecond)
		defer cancel()
	}
	req, err := newFetchRequest(ctx, a, body)
	if err != nil {
		return nil, nil, err
	}
	if req.Header.Get("Traceparent") == "" {
		tracing.Send(ctx, req.Header)
	}
	redirected := false
	client := &http.Client{
		Transport:     h.transport,
		CheckRedirect: redirectPolicy(s, a.Redirect, &redirected),
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, fetchError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // the body has been read or given up
	got, err := readBody(ctx, resp)
	if err != nil {
		return nil, nil, err
	}
	return reply(resp, redirected), got, nil
}

// readBody reads a response. What is small is read at once; the rest waits until
// the activation has room for it, so that many large responses to a function
// that does not take them do not gather here.
func readBody(ctx context.Context, resp *http.Response) ([]byte, error) {
	got, err := io.ReadAll(io.LimitReader(resp.Body, smallFetchResponse))
	if err != nil {
		return nil, fetchError(ctx, err)
	}
	if len(got) < smallFetchResponse {
		return got, nil
	}
	room := int64(MaxFetchResponseBytes)
	if resp.ContentLength >= 0 {
		room = min(room, resp.ContentLength)
	}
	if err := sandbox.ReserveReply(ctx, room); err != nil {
		return nil, fetchError(ctx, err)
	}
	rest, err := io.ReadAll(io.LimitReader(resp.Body, MaxFetchResponseBytes+1-smallFetchResponse))
	if err != nil {
		return nil, fetchError(ctx, err)
	}
	if got = append(got, rest...); len(got) > MaxFetchResponseBytes {
		return nil, api.Errorf(api.CodeHostFetchTooLarge, "the response is larger than %d bytes", MaxFetchResponseBytes)
	}
	return got, nil
}

func newFetchRequest(ctx context.Context, a fetchArgs, body []byte) (*http.Request, error) {
	invalid := func(format string, args ...any) error {
		return api.Errorf(api.CodeHostInvalidArgument, format, args...)
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, invalid("fetch needs an absolute http or https URL")
	case u.User != nil:
		return nil, invalid("fetch refuses a URL with credentials; send an authorization header")
	case len(body) > MaxFetchRequestBytes:
		return nil, invalid("a request body is at most %d bytes", MaxFetchRequestBytes)
	case len(a.Headers) > maxFetchHeaders:
		return nil, invalid("a request has at most %d headers", maxFetchHeaders)
	}
	u.Fragment = ""
	var reader io.Reader
	if len(body) > 0 {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, u.String(), reader)
	if err != nil {
		return nil, invalid("malformed request: %v", err)
	}
	for _, kv := range a.Headers {
		name := http.CanonicalHeaderKey(kv[0])
		if !httpguts.ValidHeaderFieldName(kv[0]) || !httpguts.ValidHeaderFieldValue(kv[1]) {
			return nil, invalid("malformed header %q", kv[0])
		}
		// Those that frame the message or name the peer are the transport's.
		if !framing[name] {
			req.Header.Add(name, kv[1])
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "sous")
	}
	return req, nil
}

var framing = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Trailer": true,
	"Te": true, "Upgrade": true, "Keep-Alive": true, "Proxy-Connection": true, "Expect": true,
}

// deniedError carries a capability refusal out of the HTTP client.
type deniedError struct{ declare string }

func (e *deniedError) Error() string { return "redirect refused" }

func redirectPolicy(s *scope, mode string, redirected *bool) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case mode == "manual":
			return http.ErrUseLastResponse
		case mode == "error":
			return errors.New("the server redirects and redirect is \"error\"")
		case len(via) >= maxFetchRedirects:
			return fmt.Errorf("more than %d redirects", maxFetchRedirects)
		case next.URL.Scheme != "http" && next.URL.Scheme != "https":
			return fmt.Errorf("redirect to scheme %q", next.URL.Scheme)
		}
		if declare := permitHost(s, next.URL); declare != "" {
			return &deniedError{declare: declare}
		}
		if !sameOrigin(via, next.URL) {
			for _, name := range credentials {
				next.Header.Del(name)
			}
		}
		// The client would tell the next server the URL that led there.
		next.Header.Del("Referer")
		if own := via[0].Header.Values("Referer"); len(own) > 0 {
			next.Header["Referer"] = own
		}
		*redirected = true
		return nil
	}
}

// credentials are for the origin that they were meant for. The client keeps them
// for its subdomains, its other ports, and for http after https.
var credentials = []string{"Authorization", "Cookie", "Proxy-Authorization", "Www-Authenticate"}

// sameOrigin says whether a chain of requests and what follows it have never
// left the first one's origin.
func sameOrigin(via []*http.Request, next *url.URL) bool {
	first := via[0].URL
	for _, req := range via[1:] {
		if req.URL.Scheme != first.Scheme || !strings.EqualFold(req.URL.Host, first.Host) {
			return false
		}
	}
	return next.Scheme == first.Scheme && strings.EqualFold(next.Host, first.Host)
}

// fetchError gives the function a code and a reason, and no more of our network
// than the address that it asked for.
func fetchError(ctx context.Context, err error) error {
	var denied *deniedError
	var blocked *blockedError
	var timeout net.Error
	switch {
	case errors.As(err, &denied):
		return api.Errorf(api.CodeRuntimeCapabilityDenied,
			"the redirect is not allowed: declare capabilities %s in the manifest", denied.declare)
	case errors.As(err, &blocked):
		return api.Errorf(api.CodeHostFetchBlocked, "fetch refused: %v", blocked)
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return api.Errorf(api.CodeHostFetchTimeout, "fetch took too long")
	}
	var op *url.Error
	if errors.As(err, &op) {
		err = op.Err
	}
	return api.Errorf(api.CodeHostFetchFailed, "fetch failed: %v", err)
}

func reply(resp *http.Response, redirected bool) fetchReply {
	r := fetchReply{
		Status:     resp.StatusCode,
		StatusText: strings.TrimSpace(strings.TrimPrefix(resp.Status, fmt.Sprint(resp.StatusCode))),
		URL:        resp.Request.URL.String(),
		Redirected: redirected,
		Headers:    make([][2]string, 0, len(resp.Header)),
	}
	for name, values := range resp.Header {
		for _, v := range values {
			r.Headers = append(r.Headers, [2]string{strings.ToLower(name), v})
		}
	}
	return r
}
