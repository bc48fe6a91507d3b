package hostcall

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// TestFetchRedirectMethods compares what follows a redirect with the fetch standard: only a
// POST after 301 and 302, and all but GET and HEAD after 303, become a GET without a body.
func TestFetchRedirectMethods(t *testing.T) {
	t.Parallel()
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		next, rest, more := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if status, err := strconv.Atoi(next); err == nil {
			if !more {
				rest = "end"
			}
			http.Redirect(w, r, "/"+rest+"#part", status)
			return
		}
		body, _ := io.ReadAll(r.Body) // a body that cannot be read is missing from the answer
		_, _ = fmt.Fprintf(w, "%s %q %s %d", r.Method, body, r.Header.Get("Content-Type"), r.ContentLength)
	})
	h := newFetchCalls(loopback, nil)
	for _, tt := range []struct{ method, path, want string }{
		{"POST", "/301", `GET ""  0`},
		{"POST", "/302", `GET ""  0`},
		{"POST", "/303", `GET ""  0`},
		{"POST", "/307", `POST "abc" text/plain 3`},
		{"POST", "/308/307", `POST "abc" text/plain 3`},
		{"POST", "/302/307", `GET ""  0`},
		{"PUT", "/301", `PUT "abc" text/plain 3`},
		{"PATCH", "/302/301/307", `PATCH "abc" text/plain 3`},
		{"PUT", "/302/303/307", `GET ""  0`},
		{"DELETE", "/303", `GET ""  0`},
	} {
		args := network.FetchRequest{URL: srv.URL + tt.path, Method: tt.method, Headers: [][2]string{{"content-type", "text/plain"}}}
		reply, got, err := do(t, h, httpScope("*:*"), args, "abc")
		if err != nil || got != tt.want {
			t.Errorf("%s %s: the server saw %s, %v, want %s", tt.method, tt.path, got, err, tt.want)
		}
		if want := srv.URL + "/end"; reply.URL != want {
			t.Errorf("%s %s: got the URL %s, want %s", tt.method, tt.path, reply.URL, want)
		}
	}
}

// TestFetchErrorsHideTheHost: the texts of failures name no address of this host's network.
func TestFetchErrorsHideTheHost(t *testing.T) {
	t.Parallel()
	cut := upstream(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	refusing := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	inside := resolverAnswering(t, func(string) netip.Addr { return netip.MustParseAddr("10.20.30.40") })
	nothing := resolverAnswering(t, func(string) netip.Addr { return netip.Addr{} })
	for name, tt := range map[string]struct {
		h    *fetchCalls
		url  string
		code api.Code
		want string
	}{
		"a name inside":      {newFetchCalls(nil, inside), "http://db.internal/", api.CodeHostFetchBlocked, "fetch refused: an address of db.internal is not public, or this server's own; --egress-allow of the server does not list it"},
		"a name without one": {newFetchCalls(nil, nothing), "http://none.example/", api.CodeHostFetchFailed, "fetch failed: none.example has no address"},
		"a closed port":      {newFetchCalls(loopback, nil), "http://" + refusing + "/", api.CodeHostFetchFailed, "fetch failed: connect: connection refused"},
		"a cut connection":   {newFetchCalls(loopback, nil), cut.URL, api.CodeHostFetchFailed, "fetch failed: EOF"},
	} {
		_, _, err := do(t, tt.h, httpScope("*:*"), network.FetchRequest{URL: tt.url}, "")
		if api.ErrorCode(err) != tt.code || !strings.HasSuffix(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: got %v, want %s and %q", name, err, tt.code, tt.want)
		}
	}
}
