package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// fingerprint returns the parts of a request that must be equal in two requests with
// the same idempotency key: method, URL, body, and the Authorization that the function
// sees. The event has more, such as headers and an address, in which a retry may
// differ.
func fingerprint(key string, r *http.Request, rawPath string, body []byte) []byte {
	if key == "" {
		return nil
	}
	// None of the parts before the body can contain a line break.
	caller := strings.Join(withoutCredentials(r.Header[access.HeaderAuthorization]), ",")
	return slices.Concat([]byte(r.Method+"\n"+rawPath+"\n"+r.URL.RawQuery+"\n"+caller+"\n"), body)
}

// ownKey returns the Invocation.IdempotencyKey of an admitted request with the header key, whose
// function sees cookies. A stored answer belongs to the caller that made the first request: the
// header alone must not return it to another, who may have guessed it. So the key contains a
// digest of the caller, behind a zero byte, which no header has:
//
//	admitted by an API key   the Authorization and the cookies that the function sees; without
//	                         both, key itself: the fingerprint has the API key's id
//	anonymous                the whole Authorization, the cookies, and the address
//
// The address counts even beside an Authorization or cookies, because many callers may share
// one of them, such as a token that a page contains.
func ownKey(key string, r *http.Request, inv *api.Invocation, cookies []string) string {
	authorization := withoutCredentials(r.Header[access.HeaderAuthorization])
	address := ""
	if inv.Access == api.AccessPublic {
		authorization, address = r.Header[access.HeaderAuthorization], callerAddress(r)
	}
	if len(authorization) == 0 && len(cookies) == 0 && address == "" {
		return key
	}
	sum := sha256.New()
	for _, part := range [][]string{{address}, authorization, cookies} {
		_, _ = fmt.Fprintf(sum, "%d;", len(part)) // a hash takes every write
		for _, value := range part {
			_, _ = fmt.Fprintf(sum, "%d:%s", len(value), value)
		}
	}
	return key + "\x00" + hex.EncodeToString(sum.Sum(nil))
}

// callerAddress returns the address of the client, or of a proxy that is not trusted. If that is of
// this machine or of a private network, the addresses of X-Forwarded-For follow, which distinguish
// the clients of such a proxy. They replace nothing: another client on that network may send the
// header itself. Ports are left out, since each connection has its own.
func callerAddress(r *http.Request) string {
	peer := sourceIP(r.RemoteAddr)
	forwarded := r.Header["X-Forwarded-For"]
	addr, err := netip.ParseAddr(peer)
	if len(forwarded) == 0 || err != nil || !addr.Unmap().IsPrivate() && !addr.Unmap().IsLoopback() {
		return peer
	}
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for i, hop := range hops {
		hops[i] = strings.TrimSpace(hop)
		if withPort, err := netip.ParseAddrPort(hops[i]); err == nil {
			hops[i] = withPort.Addr().String()
		}
	}
	return peer + "," + strings.Join(hops, ",")
}
