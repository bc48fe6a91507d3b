package hostcall

import (
	"bytes"
	"context"
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
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
	"github.com/codesous/sous/tracing"
)

// Bounds of an exchange. Those of its bodies are in package wire.
const (
	maxFetchRedirects = 20 // the fetch standard's
	// smallReply is the size of a reply, in bytes, up to which a call reserves no room (see
	// sandbox.ReserveReply). It is the largest part of a body.
	smallReply = 256 << 10
	// bodyGrace is how long a response whose length is unknown waits for the end of its
	// body. Most small ones are whole then, and cost one call.
	bodyGrace = 2 * time.Millisecond
)

// fetchCalls serves fetch and cs.http.fetch. An exchange passes two independent checks: the
// version's capability, by host name, for the first URL and each redirect; and the egress
// guard, by address, for each connection. The functions of a tenant share its idle
// connections; a connection carries nothing of the function that opened it.
type fetchCalls struct{ outbound }

// newFetchCalls returns the calls with connections of their own. The machine's addresses
// are asked for at each new connection, since they may change.
func newFetchCalls(allow []netip.Prefix, resolver *net.Resolver) *fetchCalls {
	guard := &egress{allow: allow, own: net.InterfaceAddrs}
	return &fetchCalls{newOutbound(func() *http.Transport { return guard.transport(resolver) })}
}

// newSocketCalls returns the calls of WebSocket, behind a guard like that of newFetchCalls.
func newSocketCalls(allow []netip.Prefix, resolver *net.Resolver) *socketCalls {
	guard := &egress{allow: allow, own: net.InterfaceAddrs}
	return &socketCalls{newOutbound(func() *http.Transport { return guard.transport(resolver) })}
}

func (c *fetchCalls) calls() map[string]call {
	return map[string]call{
		network.Fetch.Name: handle(network.Fetch, c.permit, c.fetch),
		// The exchange was permitted when it began.
		network.BodyRead.Name:   handle(network.BodyRead, free, c.read),
		network.BodyCancel.Name: handle(network.BodyCancel, free, c.cancel),
	}
}

// permit checks the first host; redirects check each further one.
func (*fetchCalls) permit(s *Scope, a network.FetchRequest) string {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" {
		return "" // fetch refuses the URL itself, with a better reason
	}
	return permitHost(s, u)
}

// permitHost compares the host and port of u with the declared patterns (see hostAllowed).
func permitHost(s *Scope, u *url.URL) string {
	if c := s.Capabilities.HTTP; c != nil && hostAllowed(c.AllowHosts, u) {
		return ""
	}
	return `{"http": {"allowHosts": [` + quoted(u.Host) + `]}}`
}

// fetch performs an exchange and returns the response with its body, if that arrives at once,
// or else with its beginning: the rest is read by BodyRead. The exchange, with the body, is
// bounded by ctx, the activation, and by the timeout that the capability sets; it ends when the
// script abandons the call. The request
// carries the trace of the activation unless the script set a traceparent. A status of 400 or
// more is no error.
//
// Errors: CodeHostInvalidArgument for a malformed request and for more than
// network.MaxOpenConnections, CodeHostFetchBlocked for an address that the guard refuses,
// CodeRuntimeCapabilityDenied for a redirect to another host than the declared ones,
// CodeHostFetchTimeout, those of outbound.traffic, and CodeHostFetchFailed for everything else.
func (c *fetchCalls) fetch(ctx context.Context, s *Scope, a network.FetchRequest, body []byte) (out network.FetchResponse, got []byte, err error) {
	call := ctx
	ctx, cancel := exchangeContext(ctx, s)
	sandbox.OnAbandon(call, cancel)
	defer func() {
		if out.Body == 0 {
			cancel()
		}
	}()
	req, err := newFetchRequest(ctx, a, body)
	if err != nil {
		return out, nil, err
	}
	if req.Header.Get("Traceparent") == "" {
		tracing.Send(ctx, req.Header)
	}
	compressible := askForGzip(req)
	if err := c.enter(ctx, s); err != nil {
		return out, nil, fetchError(ctx, err)
	}
	redirected := false
	resp, err := c.client(s, redirectPolicy(s, a.Redirect, &redirected)).Do(req)
	if err != nil {
		return out, nil, fetchError(ctx, err)
	}
	out = fetchResponse(resp, redirected, compressible)
	if resp.ContentLength >= 0 && resp.ContentLength <= smallReply {
		defer func() { _ = resp.Body.Close() }() // the body has been read or given up
		got, err = io.ReadAll(resp.Body)
		if err != nil {
			return out, nil, fetchError(ctx, err)
		}
		return out, got, nil
	}
	in := newIncoming(ctx, resp.Body, cancel)
	got, end, err := in.first(bodyGrace)
	if err != nil {
		in.close()
		return out, nil, fetchError(ctx, err)
	}
	if end {
		return out, got, nil
	}
	out.Body, err = s.connections.add(in)
	if err != nil {
		in.close()
		return out, nil, err
	}
	return out, got, nil
}

// exchangeContext returns ctx with the timeout that the capability sets.
func exchangeContext(ctx context.Context, s *Scope) (context.Context, context.CancelFunc) {
	if allowed := s.Capabilities.HTTP; allowed != nil && allowed.TimeoutMS > 0 {
		return context.WithTimeout(ctx, time.Duration(allowed.TimeoutMS)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

// read waits for the next part of a body. Errors: CodeHostInvalidArgument for a handle that
// the activation does not hold or that another call reads, those of an exchange.
func (*fetchCalls) read(ctx context.Context, s *Scope, h network.Handle, _ []byte) (out network.BodyPart, part []byte, err error) {
	in, ok := s.connections.get(h.ID).(*incoming)
	if !ok {
		return out, nil, invalid("the response is closed")
	}
	if !in.reading.TryLock() {
		return out, nil, invalid("another call reads the response")
	}
	defer in.reading.Unlock()
	part, out.End, err = in.next(ctx)
	if err != nil {
		err = fetchError(in.ctx, err) // before close ends in.ctx
	}
	if err != nil || out.End {
		s.connections.remove(h.ID)
		in.close()
	}
	return out, part, err
}

// cancel ends the exchange of a response. One that has ended is no error.
func (*fetchCalls) cancel(_ context.Context, s *Scope, h network.Handle, _ []byte) (out wire.None, reply []byte, err error) {
	if in, ok := s.connections.get(h.ID).(*incoming); ok {
		s.connections.remove(h.ID)
		in.close()
	}
	return out, nil, nil
}

// newFetchRequest makes the request, with its limits checked again. Headers that the
// transport sets are ignored, as in browsers; several values of another header keep their
// order. Errors: CodeHostInvalidArgument.
func newFetchRequest(ctx context.Context, a network.FetchRequest, body []byte) (*http.Request, error) {
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, invalid("fetch needs an absolute http or https URL")
	case u.User != nil:
		return nil, invalid("fetch refuses a URL with credentials; send an authorization header")
	case len(body) > network.MaxFetchRequestBytes:
		return nil, invalid("a request body is at most %s", api.SizeText(network.MaxFetchRequestBytes))
	case len(a.Headers) > network.MaxFetchHeaders:
		return nil, invalid("a request has at most %d headers", network.MaxFetchHeaders)
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

// askForGzip asks for a compressed body where net/http would, and reports whether it did. The
// sandbox decompresses the body, not the host: see package child.
func askForGzip(req *http.Request) bool {
	if req.Method == http.MethodHead || req.Header.Get("Accept-Encoding") != "" || req.Header.Get("Range") != "" {
		return false
	}
	req.Header.Set("Accept-Encoding", "gzip")
	return true
}

// framing holds the headers, in canonical form, that frame the message or concern the
// connection. Only the transport sets them.
var framing = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Trailer": true,
	"Te": true, "Upgrade": true, "Keep-Alive": true, "Proxy-Connection": true, "Expect": true,
}

// fetchResponse returns the head of a response. Names of headers are in lower case; several
// values of one name stay separate pairs, as Set-Cookie needs. The order of names is not
// kept. If the host asked for gzip, those that describe the compressed body are left out.
func fetchResponse(resp *http.Response, redirected, compressible bool) network.FetchResponse {
	last := *resp.Request.URL
	last.Fragment, last.RawFragment = "", "" // that of a redirect
	r := network.FetchResponse{
		Status:     resp.StatusCode,
		StatusText: strings.TrimSpace(strings.TrimPrefix(resp.Status, fmt.Sprint(resp.StatusCode))),
		URL:        last.String(),
		Redirected: redirected,
		Gzip:       compressible && resp.Body != http.NoBody && strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip"),
		Headers:    make([][2]string, 0, len(resp.Header)),
	}
	for name, values := range resp.Header {
		if r.Gzip && (name == "Content-Encoding" || name == "Content-Length") {
			continue
		}
		for _, v := range values {
			r.Headers = append(r.Headers, [2]string{strings.ToLower(name), v})
		}
	}
	return r
}
