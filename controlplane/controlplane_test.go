package controlplane_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/storagetest"
)

// engine is an Engine that answers by its function fields and records its calls.
type engine struct {
	mu          sync.Mutex
	invocations []api.Invocation
	checked     []string // tenant#entry#handler
	invalidated int

	invoke    func(context.Context, api.Invocation) (*api.Outcome, error)
	enqueue   func(api.Invocation) (*api.Queued, error)
	authorize func(*api.Invocation) error
	cancel    func(tenant, id string) (*api.Activation, error)
	check     func(entry, handler string, bundle []byte) error
}

func (e *engine) Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error) {
	e.mu.Lock()
	e.invocations = append(e.invocations, inv)
	e.mu.Unlock()
	if e.invoke == nil {
		return success(`{"ok":true}`), nil
	}
	return e.invoke(ctx, inv)
}

// Enqueue accepts every invocation, unless enqueue is set.
func (e *engine) Enqueue(_ context.Context, inv api.Invocation) (*api.Queued, error) {
	e.mu.Lock()
	e.invocations = append(e.invocations, inv)
	e.mu.Unlock()
	if e.enqueue == nil {
		return &api.Queued{ActivationID: activationID, Status: api.StatusQueued}, nil
	}
	return e.enqueue(inv)
}

// Authorize admits every caller, unless authorize is set.
func (e *engine) Authorize(_ context.Context, inv *api.Invocation) error {
	if e.authorize == nil {
		return nil
	}
	return e.authorize(inv)
}

func (e *engine) AuthorizeTrigger(ctx context.Context, inv *api.Invocation) error {
	return e.Authorize(ctx, inv)
}

func (e *engine) Cancel(_ context.Context, tenant, id string) (*api.Activation, error) {
	return e.cancel(tenant, id)
}

func (e *engine) Check(_ context.Context, tenant, entry, handler string, bundle []byte) error {
	e.mu.Lock()
	e.checked = append(e.checked, tenant+"#"+entry+"#"+handler)
	e.mu.Unlock()
	if e.check == nil {
		return nil
	}
	return e.check(entry, handler, bundle)
}

func (e *engine) Verify(context.Context, string, string, string, *api.VersionConfig, []byte) ([]string, error) {
	return nil, nil
}

func (*engine) FlushCalls(context.Context, string, string) {}

func (*engine) Warm(string, string, string, *api.Version) {}

func (e *engine) FunctionChanged(context.Context, string, string, string) {
	e.mu.Lock()
	e.invalidated++
	e.mu.Unlock()
}

// last is the invocation that came in last.
func (e *engine) last(t *testing.T) api.Invocation {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.invocations) == 0 {
		t.Fatal("the engine was not asked")
	}
	return e.invocations[len(e.invocations)-1]
}

func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.invocations)
}

const activationID = "0f9a1c52-6f5e-4b6b-9c7e-2f8a3f0d1e11"

// success is an activation that gave result; "" is undefined.
func success(result string) *api.Outcome {
	return &api.Outcome{Activation: api.Activation{
		ActivationID: activationID, Status: api.StatusSuccess, Result: json.RawMessage(result),
		StartMS: 1000, EndMS: 1012, DurationMS: 12, DeadlineMS: 4000,
	}}
}

// failed is an activation that ended otherwise.
func failed(status api.Status, kind api.ErrorType) *api.Outcome {
	o := success("")
	o.Activation.Status = status
	o.Activation.Error = &api.ActivationError{Type: kind, Message: "secret text"}
	return o
}

// harness is a server over a store of its own and an engine that is told what
// to answer.
type harness struct {
	*httptest.Server
	client   *http.Client
	control  *controlplane.Server
	store    *storage.Store
	queue    *queue.Broker
	engine   *engine
	tenant   string
	contract *contract
}

func start(t *testing.T, change ...func(*controlplane.Config)) *harness {
	t.Helper()
	return startOn(t, embedded(t), change...)
}

// embedded is a store of the test's own.
func embedded(t *testing.T) *storage.Store {
	t.Helper()
	return storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
}

func startOn(t *testing.T, store *storage.Store, change ...func(*controlplane.Config)) *harness {
	t.Helper()
	return startWith(t, store, queue.Config{}, change...)
}

// startWith starts a server with queues of a configuration.
func startWith(t *testing.T, store *storage.Store, queues queue.Config, change ...func(*controlplane.Config)) *harness {
	t.Helper()
	unopened, err := mirror.New(mirror.Config{Dir: "unused"}) // it is stopped
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	config := controlplane.Config{FollowInterval: time.Millisecond, Auth: access.Off, MirrorControl: unopened}
	for _, c := range change {
		c(&config)
	}
	h := &harness{store: store, engine: &engine{}, tenant: storagetest.Tenant(t)}
	broker, err := queue.New(t.Context(), store, queues)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	h.queue = broker
	h.control, err = controlplane.New(t.Context(), store, h.engine, broker, config)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(h.control.Close)
	h.Server = httptest.NewUnstartedServer(nil)
	h.Server.Config = h.control.HTTPServer("")
	h.Start()
	t.Cleanup(h.Close)
	h.client = &http.Client{
		Transport:     &http.Transport{}, // its own: tests close their connections, not each other's
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(h.client.CloseIdleConnections)
	h.contract = sharedContract.of(t, h)
	return h
}

// fn is the path of the function hello, with what follows it.
func (h *harness) fn(rest string) string {
	return "/v1/tenants/" + h.tenant + "/namespaces/payments/functions/hello" + rest
}

// web is the path of hello's endpoint, with what follows the alias.
func (h *harness) web(rest string) string {
	return "/v1/web/" + h.tenant + "/payments/hello/prod" + rest
}

// answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// problem is the body of an error.
type problem struct {
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Detail    string           `json:"detail"`
	Code      api.Code         `json:"code"`
	RequestID string           `json:"request_id"`
	Errors    []api.FieldError `json:"errors"`
	Error     struct {
		Code      api.Code `json:"code"`
		Message   string   `json:"message"`
		RequestID string   `json:"request_id"`
	} `json:"error"`
}

// call sends a request; headers are pairs of name and value.
func (h *harness) call(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, reader)
	if err != nil {
		t.Fatalf("NewRequestWithContext: %v", err)
	}
	return h.send(t, request, headers...)
}

func (h *harness) send(t *testing.T, request *http.Request, headers ...string) answer {
	t.Helper()
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
			continue
		}
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := h.client.Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("ReadAll: %v", err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: raw}
	host := strings.ToLower(request.Host)
	ofFunction := strings.Contains(host, functionDomain) || strings.Contains(host, customZone) // which answers as it likes
	if request.URL.Host == h.Listener.Addr().String() && !ofFunction && request.Method != http.MethodHead {
		h.holdsContract(t, request.Method, request.URL.EscapedPath(), a)
	}
	return a
}

// refused checks that a is a problem of code in every place where it must say so.
func (a answer) refused(t *testing.T, status int, code api.Code) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil {
		t.Fatalf("status %d, want a problem: %s", a.status, a.body)
	}
	if a.status != status || p.Code != code {
		t.Fatalf("got %d %s (%s), want %d %s", a.status, p.Code, p.Detail, status, code)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q, want \"application/problem+json\"", got)
	}
	id := a.header.Get("X-Request-Id")
	if p.Status != status || p.Title == "" || p.Detail == "" || p.Error.Code != code ||
		p.Error.Message != p.Detail || p.RequestID != id || p.Error.RequestID != id || !strings.HasPrefix(id, "req_") {
		t.Errorf("got problem %s with X-Request-Id %s, want status %d, code %s and the same request id in all places", a.body, id, status, code)
	}
	return p
}

// ok checks the status and reads the body into T.
func ok[T any](t *testing.T, a answer, status int) T {
	t.Helper()
	var v T
	if a.status != status {
		t.Fatalf("got %d, want %d: %s", a.status, status, a.body)
	}
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Fatalf("%v: Unmarshal: got %s, want no error", err, a.body)
		}
	}
	return v
}

// files is the JSON of a draft of one function.js.
func draftJSON(source string) string {
	return `{"files":{"function.js":"` + base64.StdEncoding.EncodeToString([]byte(source)) + `"}}`
}

// create makes the function hello.
func (h *harness) create(t *testing.T) {
	t.Helper()
	path := strings.TrimSuffix(h.fn(""), "/hello")
	ok[api.Function](t, h.call(t, "POST", path, `{"name":"hello"}`), http.StatusCreated)
}

// upload makes a draft of source.
func (h *harness) upload(t *testing.T, source string) api.DraftReceipt {
	t.Helper()
	return ok[api.DraftReceipt](t, h.call(t, "PUT", h.fn("/draft"), draftJSON(source)), http.StatusOK)
}

// deploy publishes source with config under the alias prod.
func (h *harness) deploy(t *testing.T, source, config string) {
	t.Helper()
	draft := h.upload(t, source)
	body := `{"draft_id":"` + draft.DraftID + `","alias":"prod"`
	if config != "" {
		body += `,"config":` + config
	}
	if a := h.call(t, "POST", h.fn("/versions"), body+"}"); a.status >= 300 {
		t.Fatalf("publish: %d %s, want status less than 300", a.status, a.body)
	}
}
