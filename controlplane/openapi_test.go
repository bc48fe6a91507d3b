package controlplane_test

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is the OpenAPI document, to hold answers to.
type contract struct {
	// mu guards compiler and what it made, which are not safe for concurrent use.
	mu         sync.Mutex
	compiler   *jsonschema.Compiler
	paths      map[string]any
	components map[string]any            // the answers that operations share
	patterns   map[string]*regexp.Regexp // of paths
}

// sharedContract is the contract of all servers of this package's tests: their routes
// are the same.
var sharedContract contractOnce

type contractOnce struct {
	mu       sync.Mutex
	contract *contract
}

// of reads the contract from h, which has none yet, unless it was read before.
func (o *contractOnce) of(t *testing.T, h *harness) *contract {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.contract == nil {
		o.contract = readContract(t, h.call(t, "GET", "/openapi.json", "").body)
	}
	return o.contract
}

const documentURL = "https://test.invalid/openapi.json"

func readContract(t *testing.T, raw []byte) *contract {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("UnmarshalJSON: %v", err)
	}
	c := &contract{
		compiler: jsonschema.NewCompiler(), paths: document.(map[string]any)["paths"].(map[string]any),
		components: document.(map[string]any)["components"].(map[string]any)["responses"].(map[string]any),
		patterns:   map[string]*regexp.Regexp{},
	}
	for path := range c.paths {
		c.patterns[path] = regexp.MustCompile("^" + templatePart.ReplaceAllString(regexp.QuoteMeta(path), `[^/:]+`) + "$")
	}
	if err := c.compiler.AddResource(documentURL, document); err != nil {
		t.Fatalf("AddResource: %v", err)
	}
	return c
}

var templatePart = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

// template returns the document's path that a real path matches, "" if there is none.
func (c *contract) template(path string) string {
	for _, template := range slices.Sorted(maps.Keys(c.paths)) {
		if c.patterns[template].MatchString(path) {
			return template
		}
	}
	return ""
}

// holdsContract checks an answer against what the document says of it: every
// call of every test of this package goes through here.
func (h *harness) holdsContract(t *testing.T, method, path string, a answer) {
	t.Helper()
	if h.contract == nil {
		return // the document itself is being asked for
	}
	template := h.contract.template(path)
	operation, ok := any(nil), false
	if item, exists := h.contract.paths[template].(map[string]any); exists {
		operation, ok = item[strings.ToLower(method)]
	}
	if !ok {
		return // no route of the document: a function's endpoint, or a 404
	}
	status, response := h.contract.response(operation.(map[string]any)["responses"].(map[string]any), a.status)
	if response == nil {
		t.Errorf("%s %s: got status %d, want one that the document names", method, template, a.status)
		return
	}
	pointer := []string{"paths", template, strings.ToLower(method), "responses", status}
	if ref, referred := response["$ref"].(string); referred {
		pointer = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		response = h.contract.components[pointer[len(pointer)-1]].(map[string]any)
	}
	contentType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	content, _ := response["content"].(map[string]any)
	if _, open := content["*/*"]; open || len(a.body) == 0 && len(content) == 0 {
		return
	}
	if _, named := content[contentType]; !named {
		t.Errorf("%s %s: got status %s with content type %q, want a type that the document names", method, template, status, contentType)
		return
	}
	if !strings.HasSuffix(contentType, "json") {
		return
	}
	h.contract.validate(t, method+" "+template, a.body, append(pointer, "content", contentType, "schema"))
}

// response returns the document's answer for a status, and its key there; nil if the
// document does not name it.
func (c *contract) response(responses map[string]any, status int) (string, map[string]any) {
	keys := []string{strconv.Itoa(status), strconv.Itoa(status/100) + "XX"}
	if status >= 400 {
		keys = append(keys, "default")
	}
	for _, key := range keys {
		if response, ok := responses[key].(map[string]any); ok {
			return key, response
		}
	}
	return "", nil
}

// validate checks raw against the schema at a place of the document.
func (c *contract) validate(t *testing.T, what string, raw []byte, pointer []string) {
	t.Helper()
	for i := range pointer {
		pointer[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(pointer[i])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	schema, err := c.compiler.Compile(documentURL + "#/" + strings.Join(pointer, "/"))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("UnmarshalJSON: %v", err)
	}
	if err := schema.Validate(body); err != nil {
		t.Errorf("%s: breaks its schema: %v: %s, want a valid one", what, err, raw)
	}
}

func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "GET", "/openapi.json", "")
	c := readContract(t, a.body)
	var got []string
	for path, item := range c.paths {
		for method := range item.(map[string]any) {
			got = append(got, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(got)
	const (
		tenant = "/v1/tenants/{tenant}"
		fns    = tenant + "/namespaces/{namespace}/functions"
		fn     = fns + "/{function}"
		act    = tenant + "/activations/{activation_id}"
		jobs   = tenant + "/jobs"
		job    = jobs + "/{job_id}"
		queues = tenant + "/namespaces/{namespace}/queues"
		queue  = queues + "/{queue}"
		batch  = tenant + "/namespaces/{namespace}/batches"
		crons  = tenant + "/namespaces/{namespace}/schedules"
		cron   = crons + "/{schedule}"
		binds  = tenant + "/namespaces/{namespace}/cadence/workers"
		bind   = binds + "/{worker}"
		safe   = tenant + "/namespaces/{namespace}/secrets"
		task   = tenant + "/tasks/{task_type}/{task_id}"
		value  = tenant + "/namespaces/{namespace}/kv/value"
		inst   = tenant + "/installs/{install}"
		docs   = inst + "/storage"
		web    = "/v1/web/{tenant}/{namespace}/{function}/{alias}/{path}"
		space  = docs + "/namespaces/{document_namespace}"
	)
	want := []string{
		"GET /healthz", "GET /readyz", "GET /v1/limits", "GET /v1/whoami", "GET /v1/admin/mirror", "POST /v1/admin/mirror:rebuild", "POST /v1/mcp",
		"GET " + tenant, "GET " + tenant + "/namespaces",
		"POST " + fns, "GET " + fns, "GET " + fns + ":calls", "GET " + fn, "DELETE " + fn,
		"PUT " + fn + "/draft",
		"POST " + fn + "/versions", "GET " + fn + "/versions", "GET " + fn + "/versions/{version}", "GET " + fn + "/versions/{version}/bundle",
		"GET " + fn + "/aliases", "PUT " + fn + "/aliases/{alias}", "GET " + fn + "/aliases/{alias}", "DELETE " + fn + "/aliases/{alias}",
		"POST " + fn + ":invoke",
		"GET " + tenant + "/keys", "POST " + tenant + "/keys", "GET " + tenant + "/keys/{key_id}", "DELETE " + tenant + "/keys/{key_id}",
		"GET " + tenant + "/audit",
		"GET " + tenant + "/activations", "GET " + tenant + "/activations:series", "GET " + jobs, "GET " + jobs + ":series", "GET " + act, "GET " + act + "/logs", "POST " + act + ":cancel",
		"POST " + queue + "/jobs", "GET " + queue + "/jobs",
		"POST " + jobs + ":fetch", "POST " + jobs + ":ack", "POST " + jobs + ":fail", "POST " + jobs + ":heartbeat",
		"GET " + tenant + "/events", "GET " + tenant + "/events:follow",
		"POST " + tenant + "/bulk", "GET " + tenant + "/bulk", "POST " + tenant + "/bulk:preview", "GET " + tenant + "/bulk/{bulk_id}", "POST " + tenant + "/bulk/{bulk_id}:cancel",
		"GET " + job, "GET " + job + "/iterations", "GET /v1/tenants/{tenant}/runs/{run_id}", "POST /v1/tenants/{tenant}/runs/{run_id}/events",
		"POST /v1/tenants/{tenant}/namespaces/{namespace}/events", "DELETE " + job, "POST " + job + ":retry", "POST " + job + ":cancel", "POST " + job + ":hold",
		"POST " + job + ":approve", "POST " + job + ":reject", "POST " + job + ":move",
		"GET " + queues, "GET " + queue, "PATCH " + queue, "DELETE " + queue,
		"POST " + queue + ":clear", "POST " + queue + ":drain", "POST " + queue + ":resume", "POST " + queue + ":redrive",
		"POST " + batch, "GET " + batch, "GET " + batch + "/{batch_id}", "DELETE " + batch + "/{batch_id}", "POST " + batch + "/{batch_id}:seal",
		"GET " + tenant + "/workers", "GET " + tenant + "/limits", "PUT " + tenant + "/limits", "GET " + tenant + "/usage", "GET " + tenant + "/usage/ai",
		"GET " + tenant + "/providers", "GET " + tenant + "/providers/{provider}", "PUT " + tenant + "/providers/{provider}", "DELETE " + tenant + "/providers/{provider}",
		"GET " + tenant + "/prices", "PUT " + tenant + "/prices", "DELETE " + tenant + "/prices",
		"GET " + tenant + "/approvals", "GET " + tenant + "/approvals/{job_id}", "POST " + tenant + "/approvals/{job_id}:approve", "POST " + tenant + "/approvals/{job_id}:reject",
		"POST " + tenant + "/approvals/{job_id}:link", "GET " + tenant + "/approval-links", "DELETE " + tenant + "/approval-links/{link}",
		"GET " + tenant + "/approval-policies", "GET " + tenant + "/approval-policies/{policy}", "PUT " + tenant + "/approval-policies/{policy}", "DELETE " + tenant + "/approval-policies/{policy}",
		"GET " + tenant + "/approval-delegations", "POST " + tenant + "/approval-delegations", "DELETE " + tenant + "/approval-delegations/{delegation}",
		"GET " + tenant + "/budgets", "GET " + tenant + "/budgets/{budget}", "PUT " + tenant + "/budgets/{budget}", "DELETE " + tenant + "/budgets/{budget}",
		"GET " + tenant + "/webhooks", "POST " + tenant + "/webhooks",
		"GET " + tenant + "/webhooks/{webhook}", "PUT " + tenant + "/webhooks/{webhook}",
		"PATCH " + tenant + "/webhooks/{webhook}", "DELETE " + tenant + "/webhooks/{webhook}",
		"POST " + tenant + "/webhooks/{webhook}:rotate", "POST " + tenant + "/webhooks/{webhook}:test",
		"GET " + tenant + "/webhooks/{webhook}/deliveries",
		"POST " + tenant + "/webhooks/{webhook}/deliveries/{delivery}:redeliver",
		"GET " + tenant + "/namespaces/{namespace}/kv", "GET " + value, "DELETE " + value,
		"PUT " + task, "GET " + task, "GET " + tenant + "/tasks", "GET " + task + ":events", "GET " + tenant + "/tasks/{task_type}:events",
		"POST " + task + ":claim", "POST " + task + ":step", "POST " + task + ":complete", "POST " + task + ":fail", "POST " + task + ":cancel",
		"POST " + crons, "GET " + crons, "GET " + cron, "PATCH " + cron, "DELETE " + cron, "POST " + cron + ":run",
		"GET " + tenant + "/namespaces/{namespace}/triggers",
		"GET " + tenant + "/namespaces/{namespace}/queues/{queue}/trigger", "PUT " + tenant + "/namespaces/{namespace}/queues/{queue}/trigger",
		"DELETE " + tenant + "/namespaces/{namespace}/queues/{queue}/trigger",
		"POST " + binds, "GET " + binds, "GET " + bind, "PATCH " + bind, "DELETE " + bind,
		"GET " + safe, "PUT " + safe + "/{secret}", "GET " + safe + "/{secret}", "DELETE " + safe + "/{secret}", "POST " + tenant + "/secrets:rewrap",
		"GET " + tenant + "/domains", "GET " + tenant + "/domains/{domain}", "PUT " + tenant + "/domains/{domain}", "DELETE " + tenant + "/domains/{domain}",
		"POST " + tenant + "/domains/{domain}:verify",
		"GET " + tenant + "/installs", "PUT " + inst, "GET " + inst, "DELETE " + inst,
		"GET " + docs + "/get", "POST " + docs + "/put", "POST " + docs + "/list", "POST " + docs + "/delete",
		"POST " + docs + "/bulkPut", "POST " + docs + "/transact",
		"GET " + docs + "/namespaces", "GET " + space, "DELETE " + space, "PUT " + space + "/schema", "GET " + space + "/schema", "DELETE " + space + "/schema",
		"GET " + space + "/changes", "GET " + space + "/records",
		"PUT " + space + "/records/{key}", "GET " + space + "/records/{key}", "DELETE " + space + "/records/{key}",
		"POST /api/internal/ext-storage/install/{install}",
		"GET " + web, "POST " + web, "PUT " + web, "PATCH " + web, "DELETE " + web,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		t.Fatalf("UnmarshalJSON: %v", err)
	}
	for path, item := range c.paths {
		for method, operation := range item.(map[string]any) {
			security := operation.(map[string]any)["security"].([]any)
			want := 1
			switch path {
			case "/healthz", "/readyz":
				want = 0
			case web: // a key, or none
				want = 2
			}
			if len(security) != want {
				t.Errorf("%s %s: got security %v, want %d schemes", method, path, security, want)
			}
		}
	}
	if version := document.(map[string]any)["openapi"]; version != "3.1.0" {
		t.Errorf("got OpenAPI version %v, want 3.1.0", version)
	}
	if a.header.Get("Content-Type") != "application/openapi+json" {
		t.Errorf("content type %q, want Content-Type \"application/openapi+json\"", a.header.Get("Content-Type"))
	}
}

func TestDocsNeedNoNetwork(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.call(t, "GET", "/docs/reference", "")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("GET: got %d %v, want status 200 and Content-Type \"text/html; charset=utf-8\"", a.status, a.header)
	}
	// Texts of examples, and of what a field has.
	page := strings.NewReplacer("https://example.com/hooks", "", "https://api.openai.com/v1", "", "https://api.anthropic.com", "").Replace(string(a.body))
	for _, outside := range []string{"http://", "https://", "<script ", "src="} {
		if strings.Contains(page, outside) {
			t.Errorf("page: got %q in it, want none", outside)
		}
	}
	if requests, operations := bytes.Count(a.body, []byte(`<pre class="request">`)), bytes.Count(a.body, []byte("<details")); requests != operations {
		t.Errorf("got %d example requests for %d operations, want one each", requests, operations)
	}
	for _, part := range []string{
		"publish-version", "POST", ":invoke", "draft_id",
		`curl -X GET &#34;$SOUS_URL/v1/tenants/t_acme01/activations?function=hello`, `&#34;next_cursor&#34;: null`,
	} {
		if !strings.Contains(string(a.body), part) {
			t.Errorf("page: got no %q, want it", part)
		}
	}
}
