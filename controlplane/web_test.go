package controlplane_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
)

// raw sends bytes as they are and returns the answer.
func (h *harness) raw(t *testing.T, request string) *http.Response {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatalf("DialContext: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatalf("Fprint: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("ReadResponse: %v", err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func TestWebEvent(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.Unconfined = true })
	head := "Host: localhost:8080\r\n"
	for name, tc := range map[string]struct {
		request string
		want    string // TARGET is the path up to the alias
	}{
		"everything": {
			"POST " + h.web("/a%2Fb//ü/?q=1&q=2&r=%C3%A9&s&bad=%zz&t=a+b") + " HTTP/1.1\r\n" + head +
				"User-Agent: test \"ua\"\r\nX-Twice: 1\r\nX-Twice: 2\r\nCookie: a=1; b=2\r\nCookie: c=3\r\n" +
				"X-Latin: caf\xe9\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nhi\x00\xff",
			`{"version":"2.0","routeKey":"$default","rawPath":"TARGET/a%2Fb//ü/",
			  "rawQueryString":"q=1&q=2&r=%C3%A9&s&bad=%zz&t=a+b",
			  "cookies":["a=1","b=2","c=3"],
			  "headers":{"content-length":"4","content-type":"text/plain","host":"localhost:8080",
			    "user-agent":"test \"ua\"","x-latin":"caf` + "\ufffd" + `","x-twice":"1,2"},
			  "queryStringParameters":{"q":"1,2","r":"é","s":"","t":"a b"},
			  "requestContext":{"http":{"method":"POST","path":"TARGET/a%2Fb//ü/","sourceIp":"127.0.0.1","userAgent":"test \"ua\""}},
			  "path":"/a%2Fb//ü/","body":"aGkA/w==","isBase64Encoded":true}`,
		},
		"nothing": {
			"GET " + h.web("") + " HTTP/1.1\r\n" + head + "\r\n",
			`{"version":"2.0","routeKey":"$default","rawPath":"TARGET","rawQueryString":"","cookies":[],
			  "headers":{"host":"localhost:8080"},"queryStringParameters":{},
			  "requestContext":{"http":{"method":"GET","path":"TARGET","sourceIp":"127.0.0.1","userAgent":""}},
			  "path":"/","body":"","isBase64Encoded":false}`,
		},
		"a trailing slash, another method, a chunked body": {
			"PROPFIND " + h.web("/") + " HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
			`{"version":"2.0","routeKey":"$default","rawPath":"TARGET/","rawQueryString":"","cookies":[],
			  "headers":{"host":"localhost:8080"},"queryStringParameters":{},
			  "requestContext":{"http":{"method":"PROPFIND","path":"TARGET/","sourceIp":"127.0.0.1","userAgent":""}},
			  "path":"/","body":"hi","isBase64Encoded":false}`,
		},
		"the absolute form": {
			"GET http://localhost:8080" + h.web("/x?y=1") + " HTTP/1.1\r\n" + head + "\r\n",
			`{"version":"2.0","routeKey":"$default","rawPath":"TARGET/x","rawQueryString":"y=1","cookies":[],
			  "headers":{"host":"localhost:8080"},"queryStringParameters":{"y":"1"},
			  "requestContext":{"http":{"method":"GET","path":"TARGET/x","sourceIp":"127.0.0.1","userAgent":""}},
			  "path":"/x","body":"","isBase64Encoded":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if response := h.raw(t, tc.request); response.StatusCode != 200 {
				t.Fatalf("status %d, want status 200", response.StatusCode)
			}
			inv := h.engine.last(t)
			var got, want any
			if err := json.Unmarshal(inv.Event, &got); err != nil {
				t.Fatalf("%v: Unmarshal: got %s, want no error", err, inv.Event)
			}
			target := strings.TrimSuffix(h.web(""), "/")
			if err := json.Unmarshal([]byte(strings.ReplaceAll(tc.want, "TARGET", target)), &want); err != nil {
				t.Fatalf("Unmarshal: %v", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			inv.Event = nil
			if inv.RequestID == "" {
				t.Error("no request id")
			}
			inv.RequestID = ""
			if !inv.Early || inv.CheckResult == nil || inv.CheckResult([]byte(`{"statusCode":"x"}`)) == nil {
				t.Error("want an invocation with Early and a check of its result")
			}
			inv.Early, inv.Stream, inv.CheckResult, inv.Started, inv.OwnWait = false, false, nil, nil, nil
			meta := api.Invocation{
				Tenant: h.tenant, Namespace: "payments", Function: "hello", Ref: api.Ref{Alias: "prod"},
				Trigger: api.Trigger{Type: "http"}, Principal: api.Principal{Sub: "local", Roles: []string{"admin"}},
				Access: api.AccessUnrestricted, AllNamespaces: true, MaxTimeout: 30 * time.Second,
			}
			if diff := cmp.Diff(meta, inv); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWebTakesVersions(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.call(t, "GET", "/v1/web/"+h.tenant+"/payments/hello/17/x", "")
	if got := h.engine.last(t).Ref; got != (api.Ref{Version: 17}) {
		t.Errorf("got ref %+v, want version 17", got)
	}
}

func TestEqualRequestsMakeEqualEvents(t *testing.T) {
	t.Parallel()
	h := start(t)
	var first string
	for i := range 20 {
		h.call(t, "POST", h.web("/?b=1&a=2"), "x", "B", "1", "A", "2", "D", "3", "C", "4", "Idempotency-Key", "k")
		if event := string(h.engine.last(t).Event); i == 0 {
			first = event
		} else if event != first {
			t.Fatalf("got event %s, want the first one again: %s", event, first)
		}
	}
}

func TestFingerprintLeavesHeadersOut(t *testing.T) {
	t.Parallel()
	h := start(t)
	fingerprint := func(method, path, body string, headers ...string) string {
		h.call(t, method, path, body, append(headers, "Idempotency-Key", "k")...)
		return string(h.engine.last(t).Fingerprint)
	}
	first := fingerprint("POST", h.web("/a?b=1"), "x", "Traceparent", "00-1")
	if first == "" {
		t.Fatal("a call with a key has no fingerprint")
	}
	if again := fingerprint("POST", h.web("/a?b=1"), "x", "Traceparent", "00-2", "Cookie", "a=b"); again != first {
		t.Errorf("other headers: %q, want %q", again, first)
	}
	for name, other := range map[string]string{
		"method": fingerprint("PUT", h.web("/a?b=1"), "x"),
		"path":   fingerprint("POST", h.web("/b?b=1"), "x"),
		"query":  fingerprint("POST", h.web("/a?b=2"), "x"),
		"body":   fingerprint("POST", h.web("/a?b=1"), "y"),
		"caller": fingerprint("POST", h.web("/a?b=1"), "x", "Authorization", "Bearer of the function's own"),
	} {
		if other == first {
			t.Errorf("another %s: got fingerprint %q, want another than that of the first request", name, other)
		}
	}
	h.call(t, "POST", h.web("/"), "x")
	if got := h.engine.last(t).Fingerprint; got != nil {
		t.Errorf("got fingerprint %q of a call without a key, want none", got)
	}
}

func TestAnswersLeaveMarkupAlone(t *testing.T) {
	t.Parallel()
	h := start(t)
	const markup = `"<b>&amp;</b>"`
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(markup), nil }
	if a := h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`); !strings.Contains(string(a.body), `"result":`+markup+`,`) {
		t.Errorf("POST :invoke: got %s, want the result %s unescaped", a.body, markup)
	}
	if a := h.call(t, "GET", h.web("/"), ""); string(a.body) != markup {
		t.Errorf("web: %s, want body %v", a.body, markup)
	}
	if a := h.call(t, "POST", h.fn(":invoke"), `{"<b>":1}`); a.status != 422 || !strings.Contains(string(a.body), `"path":"<b>"`) {
		t.Errorf("problem: %s, want status 422 and a body that contains \"path\":\"<b>\"", a.body)
	}
}

func TestWebResponse(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.Unconfined = true })
	const sent = "application/json"
	type row struct {
		result string
		status int
		header map[string][]string // nil value: must be absent
		body   string
	}
	for name, tc := range map[string]row{
		"undefined":             {``, 204, map[string][]string{"Content-Type": nil}, ``},
		"null":                  {`null`, 200, map[string][]string{"Content-Type": {sent}}, `null`},
		"number":                {`1e3`, 200, map[string][]string{"Content-Type": {sent}}, `1e3`},
		"string":                {`"statusCode"`, 200, nil, `"statusCode"`},
		"array":                 {`[{"statusCode":404}]`, 200, nil, `[{"statusCode":404}]`},
		"object":                {`{"ok":true}`, 200, map[string][]string{"Content-Type": {sent}, "Content-Length": {"11"}}, `{"ok":true}`},
		"nested statusCode":     {`{"a":{"statusCode":404}}`, 200, nil, `{"a":{"statusCode":404}}`},
		"statusCode in a case":  {`{"statuscode":404,"x":"statusCode"}`, 200, nil, `{"statuscode":404,"x":"statusCode"}`},
		"only a statusCode":     {`{"statusCode":204}`, 204, map[string][]string{"Content-Type": nil, "Content-Length": nil}, ``},
		"body of a 204":         {`{"statusCode":204,"body":"x"}`, 204, nil, ``},
		"body of a 304":         {`{"statusCode":304,"body":"x","headers":{"etag":"\"1\""}}`, 304, map[string][]string{"Etag": {`"1"`}}, ``},
		"error status":          {`{"statusCode":599,"body":"sorry"}`, 599, map[string][]string{"Content-Type": {sent}}, `sorry`},
		"text":                  {`{"statusCode":200,"body":"<b>","headers":{"Content-Type":"text/html"}}`, 200, map[string][]string{"Content-Type": {"text/html"}}, `<b>`},
		"content type in lower": {`{"statusCode":200,"body":"<b>","headers":{"content-type":"text/html"}}`, 200, map[string][]string{"Content-Type": {"text/html"}}, `<b>`},
		"binary":                {`{"statusCode":200,"body":"AP8A","isBase64Encoded":true}`, 200, map[string][]string{"Content-Type": {"application/octet-stream"}, "Content-Length": {"3"}}, "\x00\xff\x00"},
		"repeated headers":      {`{"statusCode":200,"headers":{"x-a":["1","2"],"X-B":"3"}}`, 200, map[string][]string{"X-A": {"1", "2"}, "X-B": {"3"}}, ``},
		"cookies":               {`{"statusCode":200,"cookies":["a=1; HttpOnly","b=2"],"headers":{"set-cookie":"c=3"}}`, 200, map[string][]string{"Set-Cookie": {"c=3", "a=1; HttpOnly", "b=2"}}, ``},
		"null fields":           {`{"statusCode":200,"headers":null,"body":null,"cookies":null,"isBase64Encoded":null}`, 200, map[string][]string{"Content-Type": nil}, ``},
		"connection headers":    {`{"statusCode":200,"body":"hi","headers":{"connection":"close","transfer-encoding":"chunked","content-length":"99","upgrade":"x"}}`, 200, map[string][]string{"Connection": nil, "Content-Length": {"2"}, "Upgrade": nil}, `hi`},
		"headers of ours":       {`{"statusCode":200,"headers":{"x-request-id":"mine","x-cs-activation-id":"mine"}}`, 200, map[string][]string{"X-Cs-Activation-Id": {activationID}}, ``},
		"unicode":               {`{"statusCode":200,"body":"h\u00e9 \ud83d\ude00"}`, 200, nil, "hé 😀"},
	} {
		t.Run(name, func(t *testing.T) {
			h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(tc.result), nil }
			a := h.call(t, "GET", h.web("/"), "")
			if a.status != tc.status || string(a.body) != tc.body {
				t.Errorf("got %d %q, want %d %q", a.status, a.body, tc.status, tc.body)
			}
			for name, want := range tc.header {
				if diff := cmp.Diff(want, a.header[name]); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", name, diff)
				}
			}
			if a.header.Get("X-Cs-Activation-Id") != activationID || !strings.HasPrefix(a.header.Get("X-Request-Id"), "req_") {
				t.Errorf("headers %v, want X-Cs-Activation-Id %v and X-Request-Id with the prefix \"req_\"", a.header, activationID)
			}
		})
	}
}

func TestMalformedResponsesAreTheFunctionsFault(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, result := range []string{
		`{"statusCode":99}`, `{"statusCode":600}`, `{"statusCode":"200"}`, `{"statusCode":200.5}`, `{"statusCode":null}`,
		`{"statusCode":100}`, `{"statusCode":101}`,
		`{"statusCode":200,"headers":[]}`, `{"statusCode":200,"headers":{"a":1}}`, `{"statusCode":200,"headers":{"a":null}}`,
		`{"statusCode":200,"headers":{"a b":"c"}}`, `{"statusCode":200,"headers":{"a":"b\nc"}}`, `{"statusCode":200,"headers":{"a":["b","c\u0000"]}}`,
		`{"statusCode":200,"cookies":"a=1"}`, `{"statusCode":200,"cookies":["a\r\nb"]}`,
		`{"statusCode":200,"body":{}}`, `{"statusCode":200,"body":"%","isBase64Encoded":true}`, `{"statusCode":200,"isBase64Encoded":"yes"}`,
		`{"statusCode":200`,
	} {
		t.Run(result, func(t *testing.T) {
			h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(result), nil }
			a := h.call(t, "GET", h.web("/"), "")
			a.refused(t, 502, api.CodeRuntimeException)
			if a.header.Get("X-Cs-Activation-Id") != activationID {
				t.Error("no activation id")
			}
		})
	}
}

func TestHeadHasNoBody(t *testing.T) {
	t.Parallel()
	h := start(t)
	for result, length := range map[string]string{
		`{"statusCode":200,"body":"hello"}`:                       "5",
		`{"statusCode":200,"headers":{"content-length":"1234"}}`:  "1234",
		`{"statusCode":200,"body":"AAAA","isBase64Encoded":true}`: "3",
		`{"any":"value"}`: "15",
		`{"statusCode":200,"headers":{"content-length":["1","2"]}}`:                "0",
		`{"statusCode":200,"headers":{"content-length":"1","Content-Length":"2"}}`: "0",
		`{"statusCode":200,"headers":{"content-length":"+5"}}`:                     "0",
		`{"statusCode":200,"headers":{"content-length":"-1"}}`:                     "0",
	} {
		h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(result), nil }
		response := h.raw(t, "HEAD "+h.web("/")+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if got := response.Header["Content-Length"]; !slices.Equal(got, []string{length}) || response.StatusCode != 200 {
			t.Errorf("%s: %d, lengths %s, want %s", result, response.StatusCode, got, length)
		}
	}
}

// A 205 has no body: its client would take one for the next answer of the connection.
func TestResetContentHasNoBody(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		return success(`{"statusCode":205,"body":"hello"}`), nil
	}
	if a := h.call(t, "GET", h.web("/"), ""); a.status != 205 || len(a.body) != 0 || a.header.Get("Content-Length") != "0" {
		t.Errorf("got %d with %q and length %s, want 205 without a body", a.status, a.body, a.header.Get("Content-Length"))
	}
}

func TestFailuresOfFunctions(t *testing.T) {
	t.Parallel()
	h := start(t)
	truncated := success(`"{\"statusCode\":200"`)
	truncated.Activation.ResultTruncated, truncated.Replayed = true, true
	for name, tc := range map[string]struct {
		outcome *api.Outcome
		err     error
		status  int
		code    api.Code
		retry   string
	}{
		"exception":         {failed(api.StatusError, api.ErrException), nil, 502, api.CodeRuntimeException, ""},
		"memory":            {failed(api.StatusError, api.ErrMemoryLimit), nil, 502, api.CodeRuntimeMemoryLimit, ""},
		"crash":             {failed(api.StatusError, api.ErrSandboxCrash), nil, 502, api.CodeRuntimeException, ""},
		"unsettled":         {failed(api.StatusError, api.ErrUnsettled), nil, 502, api.CodeRuntimeException, ""},
		"lost":              {failed(api.StatusError, api.ErrLost), nil, 502, api.CodeRuntimeException, ""},
		"result too large":  {failed(api.StatusError, api.ErrResultTooLarge), nil, 502, api.CodeRuntimeResultTooLarge, ""},
		"result invalid":    {failed(api.StatusError, api.ErrResultInvalid), nil, 502, api.CodeRuntimeException, ""},
		"timeout":           {failed(api.StatusTimeout, api.ErrTimeout), nil, 504, api.CodeRuntimeTimeout, ""},
		"cancelled":         {failed(api.StatusCancelled, ""), nil, 502, api.CodeRuntimeCancelled, ""},
		"replay of a cut":   {truncated, nil, 502, api.CodeRuntimeResultTooLarge, ""},
		"no function":       {nil, api.Errorf(api.CodeFunctionNotFound, "x"), 404, api.CodeFunctionNotFound, ""},
		"concurrency":       {nil, api.Errorf(api.CodeConcurrencyLimit, "x"), 429, api.CodeConcurrencyLimit, "1"},
		"capacity":          {nil, &api.Error{Code: api.CodeCapacityLimit, Message: "x", RetryAfter: 1500 * time.Millisecond}, 429, api.CodeCapacityLimit, "2"},
		"store":             {nil, api.Errorf(api.CodeStoreUnavailable, "x"), 503, api.CodeStoreUnavailable, "1"},
		"shutting down":     {nil, api.Errorf(api.CodeShuttingDown, "x"), 503, api.CodeShuttingDown, "1"},
		"key still running": {nil, api.Errorf(api.CodeIdempotencyRunning, "x"), 409, api.CodeIdempotencyRunning, ""},
		"key of another":    {nil, api.Errorf(api.CodeIdempotencyMismatch, "x"), 422, api.CodeIdempotencyMismatch, ""},
		"no code":           {nil, fmt.Errorf("secret text"), 500, api.CodeInternal, ""},
		"gone":              {nil, context.Canceled, 503, api.CodeShuttingDown, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return tc.outcome, tc.err }
			a := h.call(t, "GET", h.web("/"), "", "Idempotency-Key", "k")
			p := a.refused(t, tc.status, tc.code)
			if got := a.header.Get("Retry-After"); got != tc.retry {
				t.Errorf("Retry-After %q, want %q", got, tc.retry)
			}
			want := api.DerivedActivationID(h.tenant, "payments", "hello", api.Ref{Alias: "prod"}, "k")
			if tc.outcome != nil {
				want = activationID
			}
			if got := a.header.Get("X-Cs-Activation-Id"); got != want {
				t.Errorf("activation id %q, want %q", got, want)
			}
			if strings.Contains(string(a.body), "secret text") {
				t.Errorf("got answer %s with detail %q, want nothing of the function's error in it", a.body, p.Detail)
			}
		})
	}
}

func TestIdempotentReplaysSaySo(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		o := success(`1`)
		o.Replayed = true
		return o, nil
	}
	for _, a := range []answer{
		h.call(t, "GET", h.web("/"), "", "Idempotency-Key", "k"),
		h.call(t, "POST", h.fn(":invoke"), `{"ref":{"version":1}}`, "Idempotency-Key", "k"),
	} {
		if a.status != 200 || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %d %v, want status 200 and Idempotent-Replayed \"true\"", a.status, a.header)
		}
		if got := h.engine.last(t).IdempotencyKey; got != "k" {
			t.Errorf("key %q, want \"k\"", got)
		}
	}
}

func TestWebSaysThatItClampsTheTimeout(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, tc := range []struct {
		timeoutMS int64
		want      string
	}{{30_000, "30000"}, {29_999, ""}} {
		h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
			o := success(`1`)
			o.Activation.DeadlineMS = o.Activation.StartMS + tc.timeoutMS
			return o, nil
		}
		if got := h.call(t, "GET", h.web("/"), "").header.Get("X-Cs-Timeout-Limit-Ms"); got != tc.want {
			t.Errorf("%d ms: %q, want %v", tc.timeoutMS, got, tc.want)
		}
	}
}

func TestClientThatGoesAwayCancelsTheRun(t *testing.T) {
	t.Parallel()
	for name, request := range map[string][3]string{
		"web":    {"POST", "web", "body"},
		"invoke": {"POST", "invoke", `{"ref":{"version":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			running, ended := make(chan struct{}), make(chan error, 1)
			h.engine.invoke = func(ctx context.Context, _ api.Invocation) (*api.Outcome, error) {
				close(running)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}
			path := h.web("/")
			if request[1] == "invoke" {
				path = h.fn(":invoke")
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, err := http.NewRequestWithContext(ctx, request[0], h.URL+path, strings.NewReader(request[2]))
			if err != nil {
				t.Fatalf("NewRequestWithContext: %v", err)
			}
			go func() {
				<-running
				leave()
			}()
			if response, err := http.DefaultClient.Do(r); err == nil {
				response.Body.Close()
				t.Errorf("got status %d, want no answer", response.StatusCode)
			}
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("the run was not cancelled")
			}
		})
	}
}
