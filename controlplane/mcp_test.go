package controlplane_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/queue"
)

// agent connects the SDK's client to the endpoint of a server.
func (h *harness) agent(t *testing.T, key, query string, options *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: h.URL + "/v1/mcp" + query, HTTPClient: &http.Client{Transport: bearer{h.client.Transport, key}}, MaxRetries: -1,
	}, &sdk.ClientSessionOptions{})
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// mcpQuery is the query of the harness's tenant and namespace.
func (h *harness) mcpQuery() string { return "?tenant=" + h.tenant + "&namespace=payments" }

// toolCall calls a tool and returns its result as JSON.
func toolCall(t *testing.T, session *sdk.ClientSession, name string, arguments any) (result *sdk.CallToolResult, value map[string]any) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("CallTool %s: %v", name, err)
	}
	value, _ = result.StructuredContent.(map[string]any)
	return result, value
}

// text is the text of a result.
func text(result *sdk.CallToolResult) string {
	if len(result.Content) == 0 {
		return ""
	}
	content, _ := result.Content[0].(*sdk.TextContent)
	return content.Text
}

// toolNames lists all tools of a session.
func toolNames(t *testing.T, session *sdk.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatalf("Tools: %v", err)
		}
		names = append(names, tool.Name)
	}
	return names
}

const adderConfig = `{"description":"adds","input_schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}},` +
	`"output_schema":{"type":"object","required":["sum"],"properties":{"sum":{"type":"integer"}}}}`

// An agent publishes a function, calls it, rolls it back, and reads what became of it.
func TestAgentManagesAFunction(t *testing.T) {
	t.Parallel()
	h := start(t)
	session := h.agent(t, "", h.mcpQuery(), nil)
	files := map[string]string{"function.js": "export default () => 1;", "lib/a.js": "export {};"}
	result, made := toolCall(t, session, "sous_publish_function", map[string]any{"function": "hello", "files": files, "config": map[string]any{"env": map[string]string{"A": "b"}}})
	if result.IsError || made["version"] != 1.0 || made["created"] != true {
		t.Fatalf("publish: got %s, want version 1", text(result))
	}
	files["function.js"] = "export default () => 2;"
	result, made = toolCall(t, session, "sous_publish_function", map[string]any{"function": "hello", "files": files})
	if made["version"] != 2.0 {
		t.Fatalf("publish: got %s, want version 2", text(result))
	}
	version := ok[api.Version](t, h.call(t, "GET", h.fn("/versions/2"), ""), http.StatusOK)
	if diff := cmp.Diff(map[string]string{"A": "b"}, version.Config.Env); diff != "" {
		t.Errorf("the settings of the running version: (-want +got):\n%s", diff)
	}
	if _, got := toolCall(t, session, "sous_read_source", map[string]any{"function": "hello", "path": "function.js"}); !strings.Contains(fmt.Sprint(got), "=> 2") {
		t.Errorf("read_source: got %v, want the second version", got)
	}
	if _, got := toolCall(t, session, "sous_rollback_function", map[string]any{"function": "hello"}); got["version"] != 1.0 || got["was"] != 2.0 {
		t.Errorf("rollback: got %v, want version 1", got)
	}
	result, _ = toolCall(t, session, "sous_rollback_function", map[string]any{"function": "hello"})
	if !result.IsError {
		t.Errorf("rollback of version 1: got %s, want an error", text(result))
	}
	_, got := toolCall(t, session, "sous_invoke_function", map[string]any{"function": "hello", "event": map[string]int{"n": 1}})
	if got["status"] != "success" || string(h.engine.last(t).Event) != `{"n":1}` {
		t.Errorf("invoke: got %v with the event %s, want success with {\"n\":1}", got, h.engine.last(t).Event)
	}
	for name, arguments := range map[string]any{
		"sous_list_functions": nil, "sous_get_function": map[string]any{"function": "hello"}, "sous_list_versions": map[string]any{"function": "hello"},
		"sous_list_activations": map[string]any{"function": "hello"}, "sous_list_queues": map[string]any{},
		"sous_test_function": map[string]any{"function": "hello", "files": files, "event": 1},
	} {
		if result, _ := toolCall(t, session, name, arguments); result.IsError {
			t.Errorf("%s: got %s, want no error", name, text(result))
		}
	}
}

func TestAgentWorksWithJobs(t *testing.T) {
	t.Parallel()
	h := start(t)
	session := h.agent(t, "", h.mcpQuery(), nil)
	arguments := map[string]any{"queue": "mail", "payload": map[string]int{"n": 7}, "options": map[string]any{"max_attempts": 3}, "idempotency_key": "k1"}
	var ids []string
	for range 2 { // the second is a repeat
		_, got := toolCall(t, session, "sous_enqueue_job", arguments)
		jobs, _ := got["jobs"].([]any)
		if len(jobs) != 1 {
			t.Fatalf("enqueue: got %v, want one job", got)
		}
		ids = append(ids, fmt.Sprint(jobs[0].(map[string]any)["id"]))
	}
	if ids[0] != ids[1] {
		t.Errorf("enqueue: got the jobs %v, want one", ids)
	}
	if _, got := toolCall(t, session, "sous_get_job", map[string]any{"job_id": ids[0]}); got["state"] != "pending" {
		t.Errorf("get_job: got %v, want state pending", got)
	}
	if _, got := toolCall(t, session, "sous_list_jobs", map[string]any{"queue": "mail", "state": "pending"}); len(got["items"].([]any)) != 1 {
		t.Errorf("list_jobs: got %v, want one job", got)
	}
}

// Functions with an input_schema are tools, with checked arguments and results.
func TestFunctionsAreTools(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.deploy(t, "x", adderConfig)
	session := h.agent(t, "", h.mcpQuery(), nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatalf("ListTools: %v", err)
	}
	at := slices.IndexFunc(list.Tools, func(tool *sdk.Tool) bool { return tool.Name == "hello" })
	if at < 0 || list.Tools[at].Description != "adds" || list.Tools[at].InputSchema == nil || list.Tools[at].OutputSchema == nil {
		t.Fatalf("tools: got %v, want hello with its schemas", list.Tools)
	}
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(`{"sum":3}`), nil }
	result, got := toolCall(t, session, "hello", map[string]int{"n": 1})
	if result.IsError || got["sum"] != 3.0 || text(result) != `{"sum":3}` {
		t.Errorf("got %s and %v, want the sum 3", text(result), got)
	}
	if result.Meta["code-sous/activation_id"] != activationID {
		t.Errorf("got the metadata %v, want the activation", result.Meta)
	}
	before := h.engine.count()
	result, _ = toolCall(t, session, "hello", map[string]string{"n": "one"})
	if !result.IsError || h.engine.count() != before {
		t.Errorf("wrong arguments: got %s and %d calls, want an error and no call", text(result), h.engine.count()-before)
	}
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(`{"sum":"3"}`), nil }
	result, _ = toolCall(t, session, "hello", map[string]int{"n": 1})
	if !result.IsError {
		t.Errorf("a wrong result: got %s, want an error", text(result))
	}
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		return failed(api.StatusTimeout, "Timeout"), nil
	}
	result, _ = toolCall(t, session, "hello", map[string]int{"n": 1})
	if !result.IsError || !strings.Contains(text(result), "timeout") {
		t.Errorf("a failed activation: got %s, want an error", text(result))
	}
}

// addTools makes functions that are tools.
func (h *harness) addTools(t *testing.T, names ...string) {
	t.Helper()
	base := "/v1/tenants/" + h.tenant + "/namespaces/payments/functions"
	for _, name := range names {
		ok[api.Function](t, h.call(t, "POST", base, `{"name":"`+name+`"}`), http.StatusCreated)
		draft := ok[api.DraftReceipt](t, h.call(t, "PUT", base+"/"+name+"/draft", draftJSON("x")), http.StatusOK)
		body := `{"draft_id":"` + draft.DraftID + `","alias":"prod","config":{"input_schema":{"type":"object"}}}`
		if a := h.call(t, "POST", base+"/"+name+"/versions", body); a.status != http.StatusCreated {
			t.Fatalf("publish: got %d %s, want 201", a.status, a.body)
		}
	}
}

// Lists of tools have pages. Functions with names of the platform's tools have others.
func TestToolListHasPages(t *testing.T) {
	t.Parallel()
	h := start(t)
	want := []string{"F_sous_list_jobs"}
	h.addTools(t, "sous_list_jobs", "sous_"+strings.Repeat("x", 59)) // the latter has no name for a tool
	for i := range 120 {
		want = append(want, fmt.Sprintf("f%03d", i))
	}
	h.addTools(t, want[1:]...)
	session := h.agent(t, "", h.mcpQuery(), nil)
	first, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatalf("ListTools: %v", err)
	}
	if first.NextCursor == "" {
		t.Errorf("got %d tools on one page, want several pages", len(first.Tools))
	}
	got := toolNames(t, session)
	got = slices.DeleteFunc(got, func(name string) bool { return strings.HasPrefix(name, "sous_") })
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools: (-want +got):\n%s", diff)
	}
	if result, _ := toolCall(t, session, "F_sous_list_jobs", nil); result.IsError || h.engine.last(t).Function != "sous_list_jobs" {
		t.Errorf("got %s and the function %s, want sous_list_jobs", text(result), h.engine.last(t).Function)
	}
	if _, err := session.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: "x"}); err == nil {
		t.Error("a wrong cursor: got no error, want one")
	}
}

// A key sees and does by MCP what it may by the other routes.
func TestAgentsHaveTheRightsOfTheirKey(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	k.publish(t, "payments", "open", adderConfig)
	k.publish(t, "payments", "closed", strings.TrimSuffix(adderConfig, "}")+`,"authz":{"invoke_http_roles":["role:billing"]}}`)
	viewer, _ := k.key(t, api.RoleViewer)
	invoker, _ := k.key(t, api.RoleInvoker)
	const query = "?namespace=payments"
	session := k.agent(t, viewer, query, nil)
	if names := toolNames(t, session); !slices.Contains(names, "sous_get_function") || slices.Contains(names, "sous_publish_function") || slices.Contains(names, "open") {
		t.Errorf("tools of a viewer: got %v, want those that read", names)
	}
	for name, arguments := range map[string]any{
		"sous_publish_function":  map[string]any{"function": "open", "files": map[string]string{"function.js": "x"}},
		"sous_rollback_function": map[string]any{"function": "open", "version": 1},
		"sous_invoke_function":   map[string]any{"function": "open"},
		"sous_enqueue_job":       map[string]any{"queue": "q"},
	} {
		if result, _ := toolCall(t, session, name, arguments); !result.IsError || !strings.Contains(text(result), string(api.CodeAuthzDenied)) {
			t.Errorf("%s by a viewer: got %s, want %s", name, text(result), api.CodeAuthzDenied)
		}
	}
	session = k.agent(t, invoker, query, nil)
	if names := toolNames(t, session); !slices.Contains(names, "open") || slices.Contains(names, "closed") || slices.Contains(names, "sous_get_function") {
		t.Errorf("tools of an invoker: got %v, want open and not closed", names)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "closed", Arguments: map[string]int{"n": 1}}); err == nil {
		t.Error("a function of another role: got no error, want one")
	}
	if result, _ := toolCall(t, session, "open", map[string]int{"n": 1}); !result.IsError { // by its output schema
		t.Errorf("open: got %s, want an error about its result", text(result))
	}
	// Another tenant's functions do not exist.
	other, _ := k.key(t, api.RoleAdmin, ofTenant("t_other01"))
	if names := toolNames(t, k.agent(t, other, query, nil)); slices.Contains(names, "open") {
		t.Errorf("tools of another tenant: got %v, want none of this one", names)
	}
	k.as(t, other, "POST", "/v1/mcp?tenant="+k.tenant, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, mcpHeaders...).refused(t, 404, api.CodeTenantNotFound)
	bound, _ := k.key(t, api.RoleAdmin, inNamespace("other"))
	k.as(t, bound, "POST", "/v1/mcp"+query, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, mcpHeaders...).refused(t, 403, api.CodeAuthzDenied)
	if result, _ := toolCall(t, k.agent(t, bound, "", nil), "sous_list_functions", map[string]any{"namespace": "payments"}); !result.IsError {
		t.Errorf("another namespace: got %s, want an error", text(result))
	}
}

// A revoked key ends with the next request, and every change is in the audit.
func TestAgentKeyEnds(t *testing.T) {
	t.Parallel()
	k := startKeyed(t, embedded(t))
	key, record := k.key(t, api.RoleDeveloper)
	session := k.agent(t, key, "", nil)
	if result, _ := toolCall(t, session, "sous_publish_function", map[string]any{"function": "hello", "files": map[string]string{"function.js": "x"}}); result.IsError {
		t.Fatalf("publish: got %s, want no error", text(result))
	}
	var actions []string
	for _, e := range k.audit(t, k.tenant) {
		if e.Sub == record.ID {
			actions = append(actions, e.Action)
		}
	}
	for _, want := range []string{"cs:function:create", "cs:function:publish", "cs:function:draft:upload"} {
		if !slices.Contains(actions, want) {
			t.Errorf("audit: got %v, want %s", actions, want)
		}
	}
	admin, _ := k.key(t, api.RoleAdmin)
	if a := k.as(t, admin, "DELETE", "/v1/tenants/"+k.tenant+"/keys/"+record.ID, ""); a.status != http.StatusNoContent && a.status != http.StatusOK {
		t.Fatalf("revoke: got %d %s, want success", a.status, a.body)
	}
	if _, err := session.ListTools(t.Context(), nil); err == nil {
		t.Error("a list with a revoked key: got no error, want one")
	}
}

var mcpHeaders = []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}

// Hostile messages are refused before the SDK reads them.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	h := start(t)
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	many := `{"jsonrpc":"2.0","id":1,"method":"ping"` + strings.Repeat(`,"a":1`, 1)
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `,"m%d":1`, i)
	}
	for name, tc := range map[string]struct {
		body string
		code api.Code
	}{
		"no JSON":          {`{`, api.CodeInvalid},
		"an empty body":    {``, api.CodeInvalid},
		"null":             {`null`, api.CodeInvalid},
		"a batch":          {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, api.CodeInvalid},
		"another version":  {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, api.CodeInvalid},
		"no method":        {`{"jsonrpc":"2.0","id":1}`, api.CodeInvalid},
		"no id":            {`{"jsonrpc":"2.0","method":"tools/list"}`, api.CodeInvalid},
		"an object as id":  {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, api.CodeInvalid},
		"a long id":        {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, api.CodeInvalid},
		"a list of params": {`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, api.CodeInvalid},
		"deep arguments":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":` + deep + `}}`, api.CodeInvalid},
		"large metadata":   {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"` + strings.Repeat("x", 70_000) + `"}}}`, api.CodeInvalid},
		"many members":     {many + members.String() + "}", api.CodeInvalid},
		"a large body":     {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"arguments":"` + strings.Repeat("x", 5<<20) + `"}}`, api.CodeBodyLimit},
	} {
		if got := h.call(t, "POST", "/v1/mcp", tc.body, mcpHeaders...); got.status < 400 || !strings.Contains(string(got.body), string(tc.code)) {
			t.Errorf("%s: got %d %.300s, want %s", name, got.status, got.body, tc.code)
		}
	}
	for _, method := range []string{"subscriptions/listen", "logging/setLevel", "prompts/list", "resources/subscribe", "completion/complete", "x"} {
		got := h.call(t, "POST", "/v1/mcp", `{"jsonrpc":"2.0","id":7,"method":"`+method+`","params":{}}`, mcpHeaders...)
		if !strings.Contains(string(got.body), "-32601") {
			t.Errorf("%s: got %d %s, want the code -32601", method, got.status, got.body)
		}
	}
	h.call(t, "POST", "/v1/mcp", `{}`, "Content-Type", "text/plain", "Accept", "*/*").refused(t, 415, api.CodeMediaType)
	h.call(t, "POST", "/v1/mcp", `{}`, "Content-Type", "application/json", "Accept", "application/json").refused(t, 422, api.CodeInvalid)
	h.call(t, "GET", "/v1/mcp", "").refused(t, 405, api.CodeMethodNotAllowed)
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		h.call(t, "POST", "/v1/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(headers, mcpHeaders...)...).refused(t, 403, api.CodeAuthzDenied)
	}
	h.call(t, "POST", "/v1/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append([]string{"Host", "evil.example"}, mcpHeaders...)...).refused(t, 403, api.CodeHostHeaderRefused)
	session := h.agent(t, "", "", nil)
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "none"}); err == nil {
		t.Error("an unknown tool: got no error, want one")
	}
	if result, _ := toolCall(t, session, "sous_get_job", map[string]any{"job_id": "x", "more": 1}); !result.IsError {
		t.Errorf("an unknown argument: got %s, want an error", text(result))
	}
}

// Messages without params, and a panic behind a method, are answered: the SDK runs methods where a panic
// would end the process.
func TestMessagesDoNotEndTheServer(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.addTools(t, "hello")
	for _, method := range []string{"initialize", "ping", "server/discover", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"} {
		for _, params := range []string{"", `,"params":{}`, `,"params":{"name":5,"uri":{},"cursor":[],"arguments":"x"}`} {
			got := h.call(t, "POST", "/v1/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`"`+params+`}`)
			if len(got.body) == 0 || got.status >= 500 {
				t.Errorf("%s%s: got %d %s, want an answer", method, params, got.status, got.body)
			}
		}
	}
	h.engine.authorize = func(*api.Invocation) error { panic("oops") }
	got := h.call(t, "POST", "/v1/mcp"+h.mcpQuery(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if !strings.Contains(string(got.body), "an internal error occurred") {
		t.Errorf("a panic: got %d %s, want an internal error", got.status, got.body)
	}
}

// slow makes the engine wait until its context ends. ended is closed then.
func (h *harness) slow() (begun, ended chan struct{}) {
	begun, ended = make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.engine.invoke = func(ctx context.Context, _ api.Invocation) (*api.Outcome, error) {
		once.Do(func() { close(begun) })
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	return begun, ended
}

// A call with a progressToken reports progress; a notifications/cancelled on another replica ends it.
func TestLongCallReportsAndEnds(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	h := startOn(t, store)
	h.create(t)
	h.deploy(t, "x", `{"input_schema":{"type":"object"},"timeout_ms":60000}`)
	broker, err := queue.New(t.Context(), store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(broker.Close)
	second, err := controlplane.New(t.Context(), store, &engine{}, broker, controlplane.Config{Auth: access.Off})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(second.Close)
	replica := httptest.NewServer(second.Handler())
	t.Cleanup(replica.Close)
	begun, ended := h.slow()
	reported := make(chan *sdk.ProgressNotificationParams, 100)
	session := h.agent(t, "", h.mcpQuery(), &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		reported <- r.Params
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	params := &sdk.CallToolParams{Name: "hello"}
	params.SetProgressToken("p1")
	failed := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, params)
		failed <- err
	}()
	await(t, begun, "the call")
	select {
	case got := <-reported:
		if got.ProgressToken != "p1" || got.Progress <= 0 || got.Total != 60 {
			t.Errorf("progress: got %+v, want seconds of 60", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("got no progress, want some")
	}
	cancel()
	await(t, ended, "the end of the function")
	if err := <-failed; err == nil {
		t.Error("the cancelled call: got no error, want one")
	}
	// By a notification to another replica.
	begun, ended = h.slow()
	answered := make(chan answer, 1)
	go func() {
		answered <- h.call(t, "POST", "/v1/mcp"+h.mcpQuery(), `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"hello","arguments":{}}}`,
			append([]string{"Mcp-Session-Id", "s1"}, mcpHeaders...)...)
	}()
	await(t, begun, "the call")
	notify := func(url, session, id string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
		if err != nil {
			t.Fatalf("NewRequestWithContext: %v", err)
		}
		for i := 0; i < len(mcpHeaders); i += 2 {
			r.Header.Set(mcpHeaders[i], mcpHeaders[i+1])
		}
		r.Header.Set("Mcp-Session-Id", session)
		response, err := h.client.Do(r)
		if err != nil {
			t.Fatalf("Do: %v", err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusAccepted {
			t.Fatalf("cancelled: got %d, want 202", response.StatusCode)
		}
	}
	for _, wrong := range []struct{ session, id string }{{"s2", "9"}, {"s1", "8"}, {"", "9"}} {
		notify(h.URL, wrong.session, wrong.id)
	}
	select {
	case <-ended:
		t.Error("another request was cancelled: the function ended, want it to run")
	default:
	}
	notify(replica.URL, "s1", "9")
	await(t, ended, "the end of the function")
	if a := <-answered; !strings.Contains(string(a.body), "error") {
		t.Errorf("the cancelled call: got %s, want an error", a.body)
	}
}

// await waits for a channel to close.
func await(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(30 * time.Second):
		t.Fatalf("got no %s, want it", what)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create(t)
	h.deploy(t, "export default 1;", "")
	session := h.agent(t, "", h.mcpQuery(), nil)
	list, err := session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatalf("ListResources: %v", err)
	}
	var uris []string
	for _, r := range list.Resources {
		uris = append(uris, r.URI)
	}
	for _, want := range []string{"sous://docs/functions", "sous://functions/payments/hello"} {
		if !slices.Contains(uris, want) {
			t.Errorf("resources: got %v, want %s", uris, want)
		}
	}
	activation := h.run(t, time.Now().UnixMilli())
	h.write(t, activation, 0, `"a line"`)
	for uri, want := range map[string]string{
		"sous://docs/functions":                                   "# Writing functions",
		"sous://functions/payments/hello":                         "sous://functions/payments/hello/1/function.js",
		"sous://functions/payments/hello/1/function.js":           "export default 1;",
		"sous://functions/payments/hello/prod/function.js":        "export default 1;",
		"sous://activations/" + activation.ActivationID:           `"status"`,
		"sous://activations/" + activation.ActivationID + "/logs": "a line",
	} {
		got, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !strings.Contains(got.Contents[0].Text, want) {
			t.Errorf("%s: got %v %v, want %s", uri, got, err, want)
		}
	}
	for _, uri := range []string{"sous://docs/../x", "sous://docs/none", "sous://functions/payments/hello/1/../x", "sous://functions/payments/none", "file:///etc/passwd", "sous://activations/x", ""} {
		if got, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: got %v, want an error", uri, got)
		}
	}
	if templates, err := session.ListResourceTemplates(t.Context(), nil); err != nil || len(templates.ResourceTemplates) < 4 {
		t.Errorf("templates: got %v %v, want those of sources, logs and pages", templates, err)
	}
}
