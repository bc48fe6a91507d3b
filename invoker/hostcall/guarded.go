package hostcall

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
)

// maxGuardedHead bounds the head of a response to a request of the platform, in bytes.
const maxGuardedHead = 32 << 10

// Guarded sends requests of the platform to servers that tenants name, behind the egress guard of
// fetch: it reaches public addresses, and what the operator allows. Tenants share no connections.
// Redirects are answers; they are not followed. It is safe for concurrent use.
type Guarded struct{ transports *transports }

// NewGuarded returns a Guarded that may also reach the addresses in allow. A nil resolver is that of
// the machine.
func NewGuarded(allow []netip.Prefix, resolver *net.Resolver) *Guarded {
	guard := &egress{allow: allow, own: net.InterfaceAddrs}
	return &Guarded{newTransports(func() *http.Transport {
		t := guard.transport(resolver)
		t.MaxResponseHeaderBytes, t.MaxIdleConns, t.MaxIdleConnsPerHost = maxGuardedHead, 16, 4
		return t
	})}
}

// Do sends a request of a tenant. The caller closes the body of the response.
func (g *Guarded) Do(tenant string, req *http.Request) (*http.Response, error) {
	client := &http.Client{
		Transport:     g.transports.of(tenant),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client.Do(req)
}

// Reason returns why Do failed, as its tenant may see it: without addresses that the tenant did not
// name. ctx is that of the request.
func (*Guarded) Reason(ctx context.Context, err error) string {
	var blocked *blockedError
	var timeout net.Error
	switch {
	case errors.As(err, &blocked):
		return "refused: " + blocked.shown(err).Error()
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return withoutAddresses(cause(err))
}
