package hostcall

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func upstream(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// httpScope may fetch from hosts.
func httpScope(hosts ...string) *Scope {
	return &Scope{Capabilities: api.Capabilities{HTTP: &api.HTTPCapability{AllowHosts: hosts}}}
}

func do(t *testing.T, h *fetchCalls, s *Scope, a network.FetchRequest, body string) (network.FetchResponse, string, error) {
	t.Helper()
	r, got, err := h.fetch(t.Context(), s, a, []byte(body))
	if err != nil {
		return network.FetchResponse{}, "", err
	}
	return r, string(got), nil
}

func TestFetchExchanges(t *testing.T) {
	t.Parallel()
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		w.WriteHeader(http.StatusTeapot)
		buf := new(strings.Builder)
		fmt.Fprintf(buf, "%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("X-In"), r.Host)
		_, _ = fmt.Fprint(w, buf) // the client reads it
	})
	h := newFetchCalls(loopback, nil)
	args := network.FetchRequest{
		URL: srv.URL + "/p?q=1#frag", Method: "PUT",
		Headers: [][2]string{{"x-in", "yes"}, {"Host", "evil.example"}, {"connection", "upgrade"}},
	}
	reply, body, err := do(t, h, httpScope("*:*"), args, "payload")
	if err != nil {
		t.Fatalf("do: %v", err)
	}
	if want := "PUT /p?q=1 yes " + strings.TrimPrefix(srv.URL, "http://"); body != want {
		t.Errorf("upstream saw %q, want %q", body, want)
	}
	if reply.Status != http.StatusTeapot || reply.StatusText != "I'm a teapot" || reply.Redirected {
		t.Errorf("got reply %+v, want status 418 I'm a teapot, not redirected", reply)
	}
	twos := 0
	for _, kv := range reply.Headers {
		if kv[0] == "x-two" {
			twos++
		}
	}
	if twos != 2 {
		t.Errorf("got %d headers x-two, want 2", twos)
	}
}

func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	inside := upstream(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	h := newFetchCalls(nil, nil)
	for _, u := range []string{
		inside.URL, "http://localhost" + port, "http://[::ffff:127.0.0.1]" + port, "http://0.0.0.0" + port,
		"http://169.254.169.254/latest/meta-data/", "http://[::1]" + port,
	} {
		_, _, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: u}, "")
		if api.ErrorCode(err) != api.CodeHostFetchBlocked {
			t.Errorf("fetch %s: %v, want %s", u, err, api.CodeHostFetchBlocked)
		}
	}
	for _, u := range []string{"", "/relative", "file:///etc/passwd", "ftp://example.com/", "http://", "http://u:p@example.com/", "http://a\x00b/"} {
		_, _, err := do(t, h, &Scope{}, network.FetchRequest{URL: u}, "")
		if api.ErrorCode(err) != api.CodeHostInvalidArgument {
			t.Errorf("fetch %q: %v, want %s", u, err, api.CodeHostInvalidArgument)
		}
	}
	for name, tt := range map[string]struct {
		args network.FetchRequest
		body string
	}{
		"a header with a line break": {args: network.FetchRequest{Headers: [][2]string{{"x", "a\r\nb: c"}}}},
		"a header's name with one":   {args: network.FetchRequest{Headers: [][2]string{{"x\r\nb", "c"}}}},
		"a method with one":          {args: network.FetchRequest{Method: "GET / HTTP/1.1\r\nx:"}},
		"too many headers":           {args: network.FetchRequest{Headers: slices.Repeat([][2]string{{"x", "y"}}, network.MaxFetchHeaders+1)}},
		"too large a body":           {args: network.FetchRequest{Method: "POST"}, body: strings.Repeat("x", network.MaxFetchRequestBytes+1)},
	} {
		tt.args.URL = inside.URL // which the guard would refuse
		if _, _, err := do(t, h, httpScope("*:*"), tt.args, tt.body); api.ErrorCode(err) != api.CodeHostInvalidArgument {
			t.Errorf("do: %s: %v, want code %s", name, err, api.CodeHostInvalidArgument)
		}
	}
}

// A public name whose address is private is refused where it is dialled, however
// it is spelt and however often the answer changes.
func TestFetchRefusesRebinding(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	resolver := resolverAnswering(t, func(string) netip.Addr {
		asked.Add(1)
		return netip.MustParseAddr("127.0.0.1")
	})
	h := newFetchCalls(nil, resolver)
	_, _, err := do(t, h, httpScope("*"), network.FetchRequest{URL: "http://rebind.example/"}, "")
	if api.ErrorCode(err) != api.CodeHostFetchBlocked {
		t.Fatalf("%v, want %s", err, api.CodeHostFetchBlocked)
	}
	if asked.Load() == 0 {
		t.Fatal("the resolver of the test was not asked")
	}
}

func TestFetchRedirects(t *testing.T) {
	t.Parallel()
	target := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "at %s auth=%q", r.URL.Path, r.Header.Get("Authorization")) // the client reads it
	})
	front := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/meta":
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.Redirect(w, r, target.URL+"/end", http.StatusFound)
		}
	})
	h := newFetchCalls(loopback, nil)
	frontHost, targetHost := strings.TrimPrefix(front.URL, "http://"), strings.TrimPrefix(target.URL, "http://")

	reply, body, err := do(t, h, httpScope(frontHost, targetHost), network.FetchRequest{URL: front.URL + "/go"}, "")
	if err != nil || !reply.Redirected || reply.URL != target.URL+"/end" || !strings.HasPrefix(body, "at /end") {
		t.Errorf("fetch that follows = %+v, %q, %v, want the page at %s/end", reply, body, err, target.URL)
	}
	reply, _, err = do(t, h, httpScope(frontHost), network.FetchRequest{URL: front.URL + "/go", Redirect: "manual"}, "")
	if err != nil || reply.Status != http.StatusFound || reply.Redirected {
		t.Errorf("fetch with manual redirects = %+v, %v, want status 302, not redirected", reply, err)
	}
	for name, tt := range map[string]struct {
		scope *Scope
		args  network.FetchRequest
		want  api.Code
	}{
		"error":                {httpScope("*:*"), network.FetchRequest{URL: front.URL + "/go", Redirect: "error"}, api.CodeHostFetchFailed},
		"to a host not listed": {httpScope(frontHost), network.FetchRequest{URL: front.URL + "/go"}, api.CodeRuntimeCapabilityDenied},
		"to metadata":          {httpScope("*:*"), network.FetchRequest{URL: front.URL + "/meta"}, api.CodeHostFetchBlocked},
		"to a file":            {httpScope("*:*"), network.FetchRequest{URL: front.URL + "/file"}, api.CodeHostFetchFailed},
		"in a loop":            {httpScope("*:*"), network.FetchRequest{URL: front.URL + "/loop"}, api.CodeHostFetchFailed},
	} {
		if _, _, err := do(t, h, tt.scope, tt.args, ""); api.ErrorCode(err) != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// A redirect to another origin, be it another port of the host, takes no
// credentials along, nor the URL that led there; one within the origin does.
func TestFetchRedirectsKeepCredentials(t *testing.T) {
	t.Parallel()
	show := func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		_, _ = fmt.Fprintf(w, "%q %q %q %q", h.Get("Authorization"), h.Get("Cookie"), h.Get("Referer"), h.Get("X-Kept")) // the client reads it
	}
	var home *httptest.Server
	away := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			http.Redirect(w, r, home.URL+"/end", http.StatusFound)
			return
		}
		show(w, r)
	})
	home = upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away", "/back":
			http.Redirect(w, r, away.URL+r.URL.Path, http.StatusFound)
		case "/within":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			show(w, r)
		}
	})
	h := newFetchCalls(loopback, nil)
	secrets := [][2]string{{"authorization", "Bearer s"}, {"cookie", "c=1"}, {"x-kept", "k"}}
	for _, tt := range []struct {
		path    string
		headers [][2]string
		want    string
	}{
		{"/within?token=s", secrets, `"Bearer s" "c=1" "" "k"`},
		{"/away?token=s", secrets, `"" "" "" "k"`},
		{"/back?token=s", secrets, `"" "" "" "k"`},
		{"/away", [][2]string{{"referer", "http://own.example/"}}, `"" "" "http://own.example/" ""`},
	} {
		_, body, err := do(t, h, httpScope("*:*"), network.FetchRequest{URL: home.URL + tt.path, Headers: tt.headers}, "")
		if err != nil || body != tt.want {
			t.Errorf("%s: the server saw %s, want %s (%v)", tt.path, body, tt.want, err)
		}
	}
}

func TestFetchLimits(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		chunk := make([]byte, 1<<20)
		for range 8 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	defer close(release)
	h := newFetchCalls(loopback, nil)
	s := httpScope("*:*")
	r, first, err := do(t, h, s, network.FetchRequest{URL: srv.URL + "/big"}, "")
	if err != nil || len(first) > smallReply || r.Body == 0 {
		t.Fatalf("8 MiB: got %d bytes and the rest as %d, %v, want at most %d and a rest", len(first), r.Body, err, smallReply)
	}
	total := len(first)
	for end := false; !end; {
		part, data, err := h.read(t.Context(), s, network.Handle{ID: r.Body}, nil)
		if err != nil || len(data) > smallReply {
			t.Fatalf("8 MiB: got a part of %d bytes, %v, want at most %d", len(data), err, smallReply)
		}
		total += len(data)
		end = part.End
	}
	if total != 8<<20 {
		t.Errorf("8 MiB: got %d bytes, want %d", total, 8<<20)
	}
	for name, other := range map[string]*Scope{"after its end": s, "of another activation": httpScope("*:*")} {
		if _, _, err := h.read(t.Context(), other, network.Handle{ID: r.Body}, nil); api.ErrorCode(err) != api.CodeHostInvalidArgument {
			t.Errorf("a body %s: got %v, want %s", name, err, api.CodeHostInvalidArgument)
		}
		if _, _, err := h.cancel(t.Context(), other, network.Handle{ID: r.Body}, nil); err != nil {
			t.Errorf("cancel of a body %s: got %v, want none", name, err)
		}
	}
	s = httpScope("*:*")
	s.Capabilities.HTTP.TimeoutMS = 30
	if _, _, err := do(t, h, s, network.FetchRequest{URL: srv.URL + "/slow"}, ""); api.ErrorCode(err) != api.CodeHostFetchTimeout {
		t.Errorf("fetch beyond the capability's timeout: got error %v, want code %s", err, api.CodeHostFetchTimeout)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, _, err := h.fetch(ctx, httpScope("*:*"), network.FetchRequest{URL: srv.URL + "/slow"}, nil); api.ErrorCode(err) != api.CodeHostFetchTimeout {
		t.Errorf("fetch beyond the caller's deadline: got error %v, want code %s", err, api.CodeHostFetchTimeout)
	}
}
