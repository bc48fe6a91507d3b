package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	jobevent "github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/webhooks"
)

var update = flag.Bool("update", false, "write the examples of the OpenAPI document")

// examplesFile holds the examples of the document, by operation.
const examplesFile = "rest/examples.json"

// exampleTenant stands in the examples for the tenant of the test.
const exampleTenant = "t_acme01"

// example is the example of an operation.
type example struct {
	Parameters map[string]string `json:"parameters,omitempty"`
	Request    json.RawMessage   `json:"request,omitempty"`
	Status     int               `json:"status"`
	Answer     json.RawMessage   `json:"answer,omitempty"`
}

// storyServer is a server on which every line of the story succeeds. It returns the values
// that the lines name.
func storyServer(t *testing.T) (*harness, map[string]string) {
	t.Helper()
	store := embedded(t)
	m, mirrored := openMirror(t)
	h := startOn(t, store, withSecrets(t, store), mirrored, func(c *controlplane.Config) {
		c.StorageToken, c.DomainResolver, c.MirrorControl = runnerToken, everyRecord{t, store}, m
	})
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		return success(`{"statusCode":200,"headers":{"content-type":"text/plain"},"body":"hello Ada"}`), nil
	}
	if err := kvstore.New(store).Set(t.Context(), h.tenant, "payments", "user:1", []byte(`{"name":"Ada"}`), 0); err != nil {
		t.Fatalf("Set: %v", err)
	}
	found := searchedJob(1, "payments", api.JobDead)
	found.CreatedAtMS, found.StartedAtMS, found.EndedAtMS = 1_795_523_920_000, 1_795_523_921_000, 1_795_523_925_000
	mirrorJobs(t, m, h.tenant, found)
	h.appendEvents(t, eventEntry{kind: jobevent.JobCompleted, queue: "payments/emails", ids: activationID})
	run := h.run(t, 1_795_523_925_000)
	h.write(t, run, 1, `"greeting Ada"`)
	h.finish(t, run, api.StatusSuccess, `{"hello":"Ada"}`)
	h.engine.cancel = func(string, string) (*api.Activation, error) { return &run.Activation, nil }
	return h, map[string]string{"tenant": h.tenant, "activation": run.ActivationID, "tomorrow": fmt.Sprint(store.NowMS() + 86_400_000)}
}

// storyPrefix is the abbreviation that a path of the story begins with.
var storyPrefix = regexp.MustCompile(`^[TNFS](/|:|$)`)

// line sends a request of the story. It returns the answer, the path and the body.
func (h *harness) line(t *testing.T, text string, values map[string]string) (a answer, path, body string) {
	t.Helper()
	text, capture, _ := strings.Cut(text, " -> ")
	for name, value := range values {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	method, rest, _ := strings.Cut(text, " ")
	path, body, _ = strings.Cut(rest, " ")
	tenant := "/v1/tenants/" + h.tenant
	if storyPrefix.MatchString(path) {
		path = map[byte]string{
			'T': tenant, 'N': tenant + "/namespaces/payments", 'F': h.fn(""), 'S': tenant + "/installs/crm/storage",
		}[path[0]] + path[1:]
	}
	if strings.HasSuffix(path, "/webhooks/alerts/deliveries") {
		h.recordAttempt(t)
	}
	a = h.call(t, method, path, body, "Content-Type", "application/json", "Authorization", "Bearer "+runnerToken)
	if a.status >= 300 {
		t.Errorf("%s: got %d %s, want success", text, a.status, a.body)
	}
	if name, at, ok := strings.Cut(capture, "="); ok {
		values[name] = member(t, a.body, at)
	}
	return a, path, body
}

// member returns the value at a path of names and indexes in JSON, as text.
func member(t *testing.T, raw []byte, path string) string {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("Decode(%s): %v", raw, err)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch in := value.(type) {
		case map[string]any:
			value = in[part]
		case []any:
			index, err := strconv.Atoi(part)
			if err != nil || index >= len(in) {
				t.Fatalf("got %s, want a value at %s", raw, path)
			}
			value = in[index]
		}
	}
	return fmt.Sprint(value)
}

// parameters returns the parameters of a path and its query.
func (c *contract) parameters(t *testing.T, template, path string) map[string]string {
	t.Helper()
	at, query, _ := strings.Cut(path, "?")
	found := map[string]string{}
	names := templatePart.FindAllString(regexp.QuoteMeta(template), -1)
	pattern := regexp.MustCompile("^" + templatePart.ReplaceAllString(regexp.QuoteMeta(template), `([^/:]+)`) + "$")
	for i, value := range pattern.FindStringSubmatch(at)[1:] {
		found[strings.Trim(names[i], `\{}`)] = value
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatalf("ParseQuery: %v", err)
	}
	for name := range values {
		found[name] = values.Get(name)
	}
	return found
}

// asJSON returns the body as an example: JSON as it is, other text as a string.
func (h *harness) asJSON(t *testing.T, body []byte, contentType string) json.RawMessage {
	t.Helper()
	body = bytes.ReplaceAll(bytes.TrimSpace(body), []byte(h.tenant), []byte(exampleTenant))
	body = keyText.ReplaceAll(body, []byte("sous_01M7ZBPKNXHSGMWVY24PRT2QCX_…"))
	body = webhookSecret.ReplaceAll(body, []byte("whsec_…"))
	switch {
	case len(body) == 0 || contentType == "application/x-tar":
		return nil
	case json.Valid(body):
		return body
	}
	text, err := json.Marshal(string(body))
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	return text
}

// keyText is an API key: examples must not contain one.
var keyText = regexp.MustCompile(`sous_[0-9A-Z]{26}_[0-9A-Za-z_-]{43}`)

// webhookSecret is the secret of a webhook: examples must not contain one.
var webhookSecret = regexp.MustCompile(`whsec_[0-9A-Za-z+/=]+`)

// recordAttempt adds an attempt to the delivery log of the only webhook: no dispatcher runs here.
func (h *harness) recordAttempt(t *testing.T) {
	t.Helper()
	records, err := webhooks.New(h.store, nil).All(t.Context(), h.tenant)
	if err != nil || len(records) != 1 {
		t.Fatalf("All: got %+v and error %v, want one webhook", records, err)
	}
	raw, err := storage.Encode(webhook.Delivery{
		Event: jobevent.Event{
			SpecVersion: "1.0", ID: "1760000001000-0.0", Source: "/v1/tenants/" + h.tenant, Type: jobevent.JobDead,
			Subject: "jobs/" + activationID, Time: "2025-10-09T08:53:21.000Z", Data: jobevent.Data{Namespace: "payments", Queue: "mail", Attempt: 5},
		},
		Attempt: 1, Result: webhook.Delivered, Status: http.StatusNoContent, DurationMS: 42, AtMS: 1_760_000_001_200,
	})
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	log := h.store.Keys().Webhook(h.tenant, records[0].ID).Log()
	if err := h.store.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: log, ID: "1760000001200-0", Values: []string{"attempt", raw}}).Err(); err != nil {
		t.Fatalf("XAdd: %v", err)
	}
}

// The story is told to a server. Its answers must have the fields of the document's examples,
// and every operation must have an example.
func TestExamplesAreAnswersOfTheServer(t *testing.T) {
	t.Parallel()
	h, values := storyServer(t)
	story, err := os.ReadFile("testdata/story.txt")
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	got := map[string]example{}
	for text := range strings.Lines(string(story)) {
		if strings.HasPrefix(text, "#") {
			continue
		}
		a, path, body := h.line(t, strings.TrimSpace(text), values)
		method, _, _ := strings.Cut(text, " ")
		at, _, _ := strings.Cut(path, "?")
		template := h.contract.template(at)
		operation := h.contract.paths[template].(map[string]any)[strings.ToLower(method)].(map[string]any)
		id := operation["operationId"].(string)
		if _, again := got[id]; again {
			continue
		}
		parameters := h.contract.parameters(t, template, path)
		if _, ok := parameters["tenant"]; ok {
			parameters["tenant"] = exampleTenant
		}
		got[id] = example{
			Parameters: parameters, Status: a.status,
			Request: h.asJSON(t, []byte(body), "application/json"), Answer: h.asJSON(t, a.body, a.header.Get("Content-Type")),
		}
	}
	for path, item := range h.contract.paths {
		for method, operation := range item.(map[string]any) {
			if _, ok := got[operation.(map[string]any)["operationId"].(string)]; !ok {
				t.Errorf("%s %s: got no example, want one: add a line to testdata/story.txt", method, path)
			}
		}
	}
	if *update {
		writeExamples(t, got)
	}
	want := readExamples(t)
	for id, e := range got {
		if diff := cmp.Diff(shapes(t, want[id]), shapes(t, e)); diff != "" {
			t.Errorf("%s: the example of the document has other fields than the answer (-want +got), run with -update:\n%s", id, diff)
		}
	}
	if len(want) != len(got) {
		t.Errorf("got %d examples, want %d: run with -update", len(got), len(want))
	}
}

// Every example of the document must match its schema.
func TestExamplesMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	c := start(t).contract
	checked := 0
	var walk func(value any, pointer []string)
	walk = func(value any, pointer []string) {
		switch in := value.(type) {
		case map[string]any:
			sample, exemplified := in["example"]
			if _, typed := in["schema"]; typed && exemplified {
				raw, err := json.Marshal(sample)
				if err != nil {
					t.Fatalf("Marshal: %v", err)
				}
				checked++
				c.validate(t, "the example of "+strings.Join(pointer, "/"), raw, append(slices.Clone(pointer), "schema"))
				return
			}
			for name, v := range in {
				walk(v, append(slices.Clone(pointer), name))
			}
		case []any:
			for i, v := range in {
				walk(v, append(slices.Clone(pointer), strconv.Itoa(i)))
			}
		}
	}
	walk(c.paths, []string{"paths"})
	walk(c.components, []string{"components", "responses"})
	if checked < 3*len(c.paths) {
		t.Errorf("got %d examples for %d paths, want parameters, requests and answers", checked, len(c.paths))
	}
}

func writeExamples(t *testing.T, all map[string]example) {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		t.Fatalf("Encode: %v", err)
	}
	if err := os.WriteFile(examplesFile, text.Bytes(), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
}

func readExamples(t *testing.T) map[string]example {
	t.Helper()
	text, err := os.ReadFile(examplesFile)
	if err != nil {
		t.Fatalf("ReadFile: %v", err)
	}
	all := map[string]example{}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	return all
}

// shapes returns the paths of all fields of an example, with the types of their values.
func shapes(t *testing.T, e example) []string {
	t.Helper()
	found := []string{"status " + http.StatusText(e.Status)}
	for part, raw := range map[string]json.RawMessage{"request": e.Request, "answer": e.Answer} {
		if raw == nil {
			continue
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatalf("Unmarshal(%s): %v", raw, err)
		}
		found = append(found, fields(part, value)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func fields(at string, value any) []string {
	found := []string{fmt.Sprintf("%s %T", at, value)}
	switch in := value.(type) {
	case map[string]any:
		for name, v := range in {
			found = append(found, fields(at+"."+name, v)...)
		}
	case []any:
		for _, v := range in {
			found = append(found, fields(at+"[]", v)...)
		}
	}
	return found
}
