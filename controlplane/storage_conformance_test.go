package controlplane_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/documents/documentstest"
	"github.com/codesous/sous/storage/storagetest"
)

const runnerToken = "runner-token-of-the-test"

// storageHarness is a harness over a document storage that cfg configures.
func storageHarness(t *testing.T, store *storage.Store, cfg documents.Config) *harness {
	t.Helper()
	service, err := documents.New(t.Context(), store, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return startOn(t, store, func(c *controlplane.Config) { c.Documents, c.StorageToken = service, runnerToken })
}

// documentFace is a way into a harness's document storage.
type documentFace struct {
	*harness
	do func(f documentFace, t *testing.T, operation, body string, headers []string) answer
}

func (f documentFace) Do(t *testing.T, operation, body, ifRevision string) (int, []byte) {
	t.Helper()
	var headers []string
	if ifRevision != "" {
		headers = []string{"If-Revision-Match", ifRevision}
	}
	a := f.do(f, t, operation, body, headers)
	return a.status, a.body
}

// request takes a request apart: its namespace and key, and what else it says.
func request(t *testing.T, body string) (namespace, key string, rest map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &rest); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	for name, to := range map[string]*string{"namespace": &namespace, "key": &key} {
		if raw, has := rest[name]; has {
			if err := json.Unmarshal(raw, to); err != nil {
				t.Fatalf("Unmarshal: %v", err)
			}
			delete(rest, name)
		}
	}
	return namespace, key, rest
}

// byForm uses the forms of the contract.
func byForm(f documentFace, t *testing.T, operation, body string, headers []string) answer {
	t.Helper()
	base := f.at("T/installs/crm/storage/") + operation
	if operation != "get" {
		return f.call(t, "POST", base, body, headers...)
	}
	namespace, key, _ := request(t, body)
	return f.call(t, "GET", base+"?"+url.Values{"namespace": {namespace}, "key": {key}}.Encode(), "", headers...)
}

// byPath uses the paths of records, where there are some.
func byPath(f documentFace, t *testing.T, operation, body string, headers []string) answer {
	t.Helper()
	namespace, key, rest := request(t, body)
	records := f.at("T/installs/crm/storage/namespaces/") + url.PathEscape(namespace) + "/records"
	record := records + "/" + url.PathEscape(key)
	switch {
	case namespace == "", operation != "list" && (key == "" || key == ".."), operation == "bulkPut", operation == "transact":
		return byForm(f, t, operation, body, headers)
	case operation == "get":
		return f.call(t, "GET", record, "", headers...)
	case operation == "list":
		return f.call(t, "GET", records+"?"+listParameters(rest).Encode(), "")
	}
	if operation == "delete" {
		if _, guarded := rest["ifRevision"]; guarded { // as If-Match it has another code
			return byForm(f, t, operation, body, headers)
		}
		return f.call(t, "DELETE", record, "", headers...)
	}
	raw, err := json.Marshal(rest)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	return f.call(t, "PUT", record, string(raw), headers...)
}

// listParameters are a list's request as a query.
func listParameters(rest map[string]json.RawMessage) url.Values {
	query := url.Values{}
	for name, raw := range rest {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		switch name {
		case "keyPrefix":
			query.Set("prefix", text)
		case "metadata":
			var members map[string]json.RawMessage
			_ = json.Unmarshal(raw, &members) // cases hold objects
			for member, value := range members {
				query.Set("metadata."+member, string(value))
			}
		default:
			query.Set(name, text)
		}
	}
	return query
}

// byToken uses the internal endpoint.
func byToken(f documentFace, t *testing.T, operation, body string, headers []string) answer {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatalf("Unmarshal: %v", err)
	}
	text := func(s string) json.RawMessage { raw, _ := json.Marshal(s); return raw } // texts can always be encoded
	fields["operation"], fields["tenantId"] = text("storage."+operation), text(f.tenant)
	if len(headers) > 0 {
		fields["ifRevision"] = json.RawMessage(headers[1])
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatalf("Marshal: %v", err)
	}
	return f.call(t, "POST", "/api/internal/ext-storage/install/crm", string(raw), "Authorization", "Bearer "+runnerToken)
}

func TestFacesOfTheDocumentStorageKeepToItsContract(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	for name, do := range map[string]func(documentFace, *testing.T, string, string, []string) answer{
		"forms": byForm, "paths": byPath, "internal endpoint": byToken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documentstest.Run(t, func(t *testing.T, cfg documents.Config) documentstest.Face {
				t.Helper()
				return documentFace{harness: storageHarness(t, storagetest.Open(t, storage.Config{URL: server.URL, Clock: cfg.Clock}), cfg), do: do}
			})
		})
	}
}
