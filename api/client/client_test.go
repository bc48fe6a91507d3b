package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// seen is one request as the server received it.
type seen struct {
	Method, URI, Body, ContentType, Auth, IfMatch, IfNoneMatch, Idempotency string
}

// serve answers every request with status and body, and tells what it saw.
func serve(t *testing.T, status int, body string) (*client.Client, *[]seen) {
	t.Helper()
	var all []seen
	return start(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read body: %v", err)
		}
		all = append(all, seen{r.Method, r.RequestURI, string(got), r.Header.Get("Content-Type"),
			r.Header.Get("Authorization"), r.Header.Get("If-Match"), r.Header.Get("If-None-Match"), r.Header.Get("Idempotency-Key")})
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}), &all
}

func start(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.Config{Key: "k1", MaxRetryWait: time.Millisecond})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	return c
}

func hello(c *client.Client) *client.Function {
	return c.Tenant("t_default").Namespace("default").Function("hello")
}

const helloPath = "/v1/tenants/t_default/namespaces/default/functions/hello"

func TestRequests(t *testing.T) {
	t.Parallel()
	const bearer = "Bearer k1"
	type call func(ctx context.Context, c *client.Client) error
	tests := map[string]struct {
		call   call
		status int
		body   string
		want   seen
	}{
		"create a function": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := c.Tenant("t_default").Namespace("default").CreateFunction(ctx, client.NewFunction{Name: "hello"})
				return err
			},
			status: 201, body: `{"name":"hello"}`,
			want: seen{Method: "POST", URI: "/v1/tenants/t_default/namespaces/default/functions", Body: `{"name":"hello"}`, ContentType: "application/json", Auth: bearer},
		},
		"read a version": {
			call: func(ctx context.Context, c *client.Client) error {
				v, err := hello(c).Version(ctx, 3)
				if err == nil && v.Version != 3 {
					err = fmt.Errorf("version %+v", v)
				}
				return err
			},
			status: 200, body: `{"version":3}`,
			want: seen{Method: "GET", URI: helloPath + "/versions/3", Auth: bearer},
		},
		"download a bundle": {
			call: func(ctx context.Context, c *client.Client) error {
				tar, err := hello(c).Bundle(ctx, 3)
				if err == nil && string(tar) != "the tar" {
					err = fmt.Errorf("bundle %q", tar)
				}
				return err
			},
			status: 200, body: "the tar",
			want: seen{Method: "GET", URI: helloPath + "/versions/3/bundle", Auth: bearer},
		},
		"list functions": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := c.Tenant("t_default").Namespace("default").Functions(ctx, client.PageOptions{Cursor: "a/b", Limit: 7})
				return err
			},
			status: 200, body: `{"items":[],"next_cursor":null}`,
			want: seen{Method: "GET", URI: "/v1/tenants/t_default/namespaces/default/functions?cursor=a%2Fb&limit=7", Auth: bearer},
		},
		"a name cannot become a path": {
			call: func(ctx context.Context, c *client.Client) error {
				return c.Tenant("t_default").Namespace("default").Function("../x?y").Delete(ctx)
			},
			status: 204,
			want:   seen{Method: "DELETE", URI: "/v1/tenants/t_default/namespaces/default/functions/..%2Fx%3Fy", Auth: bearer},
		},
		"upload files": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := hello(c).UploadFiles(ctx, map[string][]byte{"function.js": []byte("x")})
				return err
			},
			status: 200, body: `{"draft_id":"drf_1"}`,
			want: seen{Method: "PUT", URI: helloPath + "/draft", Body: `{"files":{"function.js":"eA=="}}`, ContentType: "application/json", Auth: bearer},
		},
		"upload a tar": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := hello(c).UploadTar(ctx, []byte("tar"))
				return err
			},
			status: 200, body: `{"draft_id":"drf_1"}`,
			want: seen{Method: "PUT", URI: helloPath + "/draft", Body: `tar`, ContentType: "application/x-tar", Auth: bearer},
		},
		"publish": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := hello(c).Publish(ctx, client.Publish{DraftID: "drf_1", Alias: "prod", Config: json.RawMessage(`{"timeout_ms":5}`)})
				return err
			},
			status: 201, body: `{"version":1}`,
			want: seen{Method: "POST", URI: helloPath + "/versions", Body: `{"draft_id":"drf_1","config":{"timeout_ms":5},"alias":"prod"}`, ContentType: "application/json", Auth: bearer},
		},
		"set a guarded alias": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := hello(c).SetAlias(ctx, "prod", 3, client.AliasGuard{Version: 2})
				return err
			},
			status: 200, body: `{"alias":"prod","version":3}`,
			want: seen{Method: "PUT", URI: helloPath + "/aliases/prod", Body: `{"version":3}`, ContentType: "application/json", Auth: bearer, IfMatch: `"2"`},
		},
		"set a new alias": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := hello(c).SetAlias(ctx, "prod", 3, client.AliasGuard{Absent: true})
				return err
			},
			status: 200, body: `{"alias":"prod","version":3}`,
			want: seen{Method: "PUT", URI: helloPath + "/aliases/prod", Body: `{"version":3}`, ContentType: "application/json", Auth: bearer, IfNoneMatch: "*"},
		},
		"invoke": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := hello(c).Invoke(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(`{"a":1}`), IdempotencyKey: "once"})
				return err
			},
			status: 200, body: `{"status":"success"}`,
			want: seen{Method: "POST", URI: helloPath + ":invoke", Body: `{"ref":{"alias":"prod"},"mode":"sync","event":{"a":1}}`, ContentType: "application/json", Auth: bearer, Idempotency: "once"},
		},
		"list activations": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := c.Tenant("t_default").Activations(ctx, client.ActivationFilter{Namespace: "default", Function: "hello", Status: api.StatusError, Trigger: "http", FromMS: 1, ToMS: 2}, client.PageOptions{})
				return err
			},
			status: 200, body: `{"items":[],"next_cursor":null}`,
			want: seen{Method: "GET", URI: "/v1/tenants/t_default/activations?from_ms=1&function=hello&namespace=default&status=error&to_ms=2&trigger=http", Auth: bearer},
		},
		"cancel": {
			call: func(ctx context.Context, c *client.Client) error {
				_, err := c.Tenant("t_default").CancelActivation(ctx, "id1")
				return err
			},
			status: 200, body: `{"activation_id":"id1"}`,
			want: seen{Method: "POST", URI: "/v1/tenants/t_default/activations/id1:cancel", Auth: bearer},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, tt.status, tt.body)
			if err := tt.call(t.Context(), c); err != nil {
				t.Fatalf("call: %v", err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemBecomesTypedError(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, 422, `{"status":422,"title":"Unprocessable","detail":"syntax error","code":"CS_VALIDATION_SOURCE",
		"request_id":"req_1","errors":[{"path":"function.js","message":"Unexpected }","line":3,"column":5}]}`)
	_, err := hello(c).Publish(t.Context(), client.Publish{DraftID: "drf_1"})
	var answered *client.ResponseError
	if !errors.As(err, &answered) || answered.Status != 422 || answered.RequestID != "req_1" {
		t.Fatalf("error %#v, want a 422 with its request id", err)
	}
	want := []api.FieldError{{Path: "function.js", Message: "Unexpected }", Line: 3, Column: 5}}
	if diff := cmp.Diff(want, answered.Err.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if api.ErrorCode(err) != api.CodeValidationSource || answered.Err.Message != "syntax error" {
		t.Errorf(`got error %v, want code %s and the message "syntax error"`, err, api.CodeValidationSource)
	}
}

func TestAnswerThatIsNoProblem(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, 502, "<html>bad gateway</html>")
	_, err := hello(c).Get(t.Context())
	if api.ErrorCode(err) != api.CodeInternal || !strings.Contains(err.Error(), "502 Bad Gateway") || !strings.Contains(err.Error(), "<html>") {
		t.Errorf("got error %v, want code %s with 502 Bad Gateway and <html>", err, api.CodeInternal)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c, err := client.New(server.URL, client.Config{})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	err = c.Ready(t.Context())
	var gone *client.UnreachableError
	if !errors.As(err, &gone) || gone.URL != server.URL {
		t.Errorf("got %v, want UnreachableError", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Ready(ctx); !errors.Is(err, context.Canceled) || errors.As(err, new(*client.UnreachableError)) {
		t.Errorf("cancelled: got %v, want the context's error alone", err)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	get := func(ctx context.Context, c *client.Client) error { _, err := hello(c).Get(ctx); return err }
	invoke := func(key string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := hello(c).Invoke(ctx, client.InvokeOptions{Ref: api.Ref{Version: 1}, IdempotencyKey: key})
			return err
		}
	}
	tests := map[string]struct {
		call       func(context.Context, *client.Client) error
		failures   int32
		status     int
		retryAfter string
		wantTries  int32
		wantErr    bool
	}{
		"a read is repeated":                     {get, 2, 503, "1", 3, false},
		"zero seconds is a wish to be asked":     {get, 2, 503, "0", 3, false},
		"not without Retry-After":                {get, 2, 503, "", 1, true},
		"not another status":                     {get, 2, 429, "1", 1, true},
		"a bounded number of times":              {get, 99, 503, "1", 4, true},
		"an invoke is not repeated":              {invoke(""), 2, 503, "1", 1, true},
		"an invoke with a key is":                {invoke("once"), 2, 503, "1", 3, false},
		"a date in the past asks again at once":  {get, 1, 503, "Mon, 02 Jan 2006 15:04:05 GMT", 2, false},
		"a Retry-After of another kind asks not": {get, 1, 503, "soon", 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			c := start(t, func(w http.ResponseWriter, _ *http.Request) {
				if tries.Add(1) <= tt.failures {
					if tt.retryAfter != "" {
						w.Header().Set("Retry-After", tt.retryAfter)
					}
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, `{"code":"CS_STORE_UNAVAILABLE","detail":"gone"}`)
					return
				}
				_, _ = io.WriteString(w, `{}`)
			})
			err := tt.call(t.Context(), c)
			if (err != nil) != tt.wantErr {
				t.Errorf("error %v, want one: %v", err, tt.wantErr)
			}
			if tries.Load() != tt.wantTries {
				t.Errorf("%d tries, want %d", tries.Load(), tt.wantTries)
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := hello(c).Get(t.Context()); err == nil {
		t.Error("a redirect was taken for a success")
	}
	if asked.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	c := start(t, func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range 20 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	if _, err := hello(c).Bundle(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("got %v, want a refusal of 20 MiB", err)
	}
}

func TestAllWalksPages(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"items":[{"name":"a"},{"name":"b"}],"next_cursor":"2"}`,
		"2": `{"items":[],"next_cursor":"3"}`,
		"3": `{"items":[{"name":"c"}],"next_cursor":null}`,
	}
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("cursor")])
	})
	var got []string
	for f, err := range client.All(t.Context(), c.Tenant("t_default").Namespace("default").Functions, client.PageOptions{}) {
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		got = append(got, f.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "localhost:8080", "ftp://h", "http://", "http://h/?a=b", "http://h/#f", "http://u:p@h"} {
		if _, err := client.New(u, client.Config{}); err == nil {
			t.Errorf("New(%q): got no error, want one", u)
		} else if strings.Contains(err.Error(), "u:p@") {
			t.Errorf("New(%q): got error %q, want one without the password", u, err)
		}
	}
}

func TestWebURL(t *testing.T) {
	t.Parallel()
	c, err := client.New("http://127.0.0.1:8080/", client.Config{})
	if err != nil {
		t.Fatalf("client.New: %v", err)
	}
	want := "http://127.0.0.1:8080/v1/web/t_default/default/hello/prod"
	if got := hello(c).WebURL(api.Ref{Alias: "prod"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func ExampleFunction_Invoke() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"activation_id":"x","status":"success","result":{"hello":"world"}}`)
	}))
	defer server.Close()
	c, err := client.New(server.URL, client.Config{})
	if err != nil {
		panic(err)
	}
	fn := c.Tenant("t_default").Namespace("default").Function("hello")
	out, err := fn.Invoke(context.Background(), client.InvokeOptions{Ref: api.Ref{Alias: "prod"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(out.Status, string(out.Result))
	// Output: success {"hello":"world"}
}
