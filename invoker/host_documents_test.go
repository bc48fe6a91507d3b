package invoker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/documents/documentstest"
	"github.com/codesous/sous/storage/storagetest"
)

// storing is a config that may do all in namespaces.
func storing(namespaces ...string) api.VersionConfig {
	config := defaults()
	config.TimeoutMS = 20_000
	config.Capabilities.Storage = &api.StorageCapability{Namespaces: namespaces, Ops: []string{"*"}}
	return config
}

// storer does an operation and answers as a problem would.
const storer = `export default async ({ op, request, text }) => {
  try {
    const value = await cs.storage[op](text === undefined ? request : JSON.parse(text));
    return value === undefined ? { status: 204 } : { status: 200, value };
  } catch (e) {
    if (e instanceof SyntaxError) return { syntax: e.message };
    return { status: e.status, value: { code: e.code, detail: e.message, items: e.items, quota: e.quota, errors: e.errors } };
  }
};`

// newStoring is a bench with a document storage.
func newStoring(t *testing.T, s *storage.Store, cfg documents.Config) (*bench, *documents.Service) {
	t.Helper()
	service, err := documents.New(t.Context(), s, cfg)
	if err != nil {
		t.Fatalf("documents.New: %v", err)
	}
	return newBench(t, s, func(c *invoker.Config) { c.Documents = service }), service
}

// hostFace is the document storage as functions have it.
type hostFace struct{ b *bench }

func (f hostFace) Do(t *testing.T, operation, body, ifRevision string) (int, []byte) {
	t.Helper()
	var request struct {
		Op   string `json:"op"`
		Text string `json:"text"`
	}
	request.Op, request.Text = operation, body
	if ifRevision != "" {
		request.Text = strings.TrimSuffix(body, "}") + `,"ifRevision":` + ifRevision + "}"
	}
	event, err := json.Marshal(request)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	out, err := f.b.engine.Invoke(t.Context(), f.b.granted("storer", string(event)))
	if err != nil || out.Activation.Status != api.StatusSuccess {
		t.Fatalf("invoke storer: got %+v and error %v, want success", out, err)
	}
	var answer struct {
		Status int
		Syntax string
		Value  json.RawMessage
	}
	if err := json.Unmarshal(out.Activation.Result, &answer); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if answer.Syntax != "" {
		// A function passes objects, not texts: it cannot send malformed JSON.
		t.Skipf("no object has this text: %s", answer.Syntax)
	}
	return answer.Status, answer.Value
}

func TestStorageOfFunctionsKeepsTheContract(t *testing.T) {
	t.Parallel()
	documentstest.Run(t, func(t *testing.T, cfg documents.Config) documentstest.Face {
		b, _ := newStoring(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), cfg)
		b.publish("storer", storer, storing(documentstest.Namespaces()...))
		return hostFace{b}
	})
}

// do runs an operation and returns status and answer.
func (b *bench) do(function, op, request string) string {
	b.t.Helper()
	return b.result(b.granted(function, fmt.Sprintf(`{"op":%q,"request":%s}`, op, request)))
}

// Two functions of one namespace do not see each other's documents, nor those of a
// function of that name in another namespace.
func TestStorageIsTheFunctionsOwn(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		b, service := newStoring(t, s, documents.Config{Quota: documents.DefaultQuota()})
		b.publish("alpha", storer, storing("settings"))
		b.publish("beta", storer, storing("settings"))
		if got := b.do("alpha", "put", `{"namespace":"settings","key":"k","value":{"of":"alpha<&>","n":[]}}`); !strings.HasPrefix(got, `{"status":200,"value":{"namespace":"settings","key":"k","revision":1,`) {
			t.Fatalf("put of alpha: got %s, want status 200 and revision 1 of settings/k", got)
		}
		if got := b.do("beta", "get", `{"namespace":"settings","key":"k"}`); !strings.Contains(got, `"status":404`) || !strings.Contains(got, `"NOT_FOUND"`) {
			t.Errorf("get by the other function = %s, want status 404 with NOT_FOUND", got)
		}
		if got := b.do("alpha", "get", `{"namespace":"settings","key":"k"}`); !strings.Contains(got, `"value":{"of":"alpha<&>","n":[]}`) {
			t.Errorf("get by the function itself = %s, want its value", got)
		}
		tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(storer)})
		if err != nil {
			t.Fatalf("bundle.Pack: %v", err)
		}
		b.publishIn("other", "alpha", tar, bundle.Digest(tar), storing("settings"))
		namesake := b.granted("alpha", `{"op":"get","request":{"namespace":"settings","key":"k"}}`)
		namesake.Namespace = "other"
		if got := b.result(namesake); !strings.Contains(got, `"NOT_FOUND"`) {
			t.Errorf("get by the function of that name in another namespace = %s, want NOT_FOUND", got)
		}
		found, err := service.Get(t.Context(), b.tenant, api.FunctionInstall(namespace, "alpha"), api.DocumentGet{Namespace: "settings", Key: "k"})
		if err != nil || string(found.Value) != `{"of":"alpha<&>","n":[]}` {
			t.Errorf("Get under its install = %+v, %v, want the value of alpha", found, err)
		}
	})
}

// What a manifest does not declare is refused with the contract's code, and the text
// says what to declare.
func TestStorageIsDeniedByDefault(t *testing.T) {
	t.Parallel()
	b, service := newStoring(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), documents.Config{})
	limited := defaults()
	limited.Capabilities.Storage = &api.StorageCapability{Namespaces: []string{"settings"}, Ops: []string{"get", "list"}}
	b.publish("none", storer, defaults())
	b.publish("limited", storer, limited)
	foreign := storing("settings")
	foreign.Capabilities.Storage.Install = "shared"
	b.publish("foreign", storer, foreign)
	others := storing("settings")
	others.Capabilities.Storage.Install = api.FunctionInstall(namespace, "limited")
	b.publish("others", storer, others)
	refused := func(function, op, request, text string) {
		t.Helper()
		got := b.do(function, op, request)
		if !strings.HasPrefix(got, `{"status":403,"value":{"code":"UNAUTHORIZED","detail":`) || !strings.Contains(got, text) {
			t.Errorf("%s %s %s: got %s, want status 403 with code UNAUTHORIZED and a text that contains %q", function, op, request, got, text)
		}
	}
	const get, put = `{"namespace":"settings","key":"k"}`, `{"namespace":"settings","key":"k","value":1}`
	refused("none", "get", get, `declare capabilities {\"storage\": {\"namespaces\": [\"settings\"], \"ops\": [\"get\"]}} in the manifest`)
	refused("none", "transact", `{"namespace":"settings","operations":[]}`, `[\"transact\"]`)
	refused("limited", "put", put, `\"ops\": [\"put\"]`)
	refused("limited", "delete", get, `[\"delete\"]`)
	refused("limited", "get", `{"namespace":"settings2","key":"k"}`, `[\"settings2\"]`)
	refused("limited", "get", `{"namespace":"settings","NAMESPACE":"other","key":"k"}`, `[\"other\"]`)
	refused("foreign", "put", put, `the install \"shared\" is not registered for the function default/foreign`)
	refused("others", "get", get, "is not registered for")

	register := func(functions ...string) {
		t.Helper()
		if _, err := service.RegisterInstall(t.Context(), b.tenant, api.Install{Install: "shared", Functions: functions}); err != nil {
			t.Fatalf("service.RegisterInstall: %v", err)
		}
	}
	register("default/somebody")
	refused("foreign", "put", put, "is not registered for")
	register("default/*")
	if got := b.do("foreign", "put", put); !strings.HasPrefix(got, `{"status":200`) {
		t.Errorf("put in a registered namespace = %s, want status 200", got)
	}
	if _, err := service.Get(t.Context(), b.tenant, "shared", api.DocumentGet{Namespace: "settings", Key: "k"}); err != nil {
		t.Errorf("under the install: %v", err)
	}
	register()
	refused("foreign", "get", get, "is not registered for")
	if got := b.do("limited", "put", `{"namespace":"Settings/..","key":"k","value":1}`); !strings.Contains(got, `"VALIDATION_FAILED"`) {
		t.Errorf("put in a malformed namespace = %s, want VALIDATION_FAILED", got)
	}
}

// Large pages arrive whole, a request that is too large is refused, and many writers
// of one document lose no update.
func TestStorageFromWithinFunctions(t *testing.T) {
	t.Parallel()
	b, _ := newStoring(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), documents.Config{Quota: documents.DefaultQuota()})
	config := storing("n")
	config.MemoryMB = 256
	b.publish("pages", `export default async () => {
  const value = "x".repeat((64 << 10) - 2);
  for (let i = 0; i < 100; i += 5) await cs.storage.bulkPut({ namespace: "n", items: [0, 1, 2, 3, 4].map((k) => ({ key: "k" + String(i + k).padStart(3, "0"), value })) });
  const page = await cs.storage.list({ namespace: "n", limit: 100, includeValues: true });
  const said = async (p) => { try { return await p } catch (e) { return e.code + " " + e.status } };
  return [page.items.length, page.items.every((d) => d.value === value), page.nextCursor, await said(cs.storage.put({ namespace: "n", key: "k", value: "x".repeat(2 << 20) }))];
};`, config)
	if got := b.result(b.granted("pages", "null")); got != `[100,true,null,"CS_BODY_LIMIT 413"]` {
		t.Errorf(`got %s, want [100,true,null,"CS_BODY_LIMIT 413"]`, got)
	}
	b.publish("adder", `export default async (n) => {
  for (let i = 0; i < n; i++) for (;;) {
    const d = await cs.storage.get({ namespace: "n", key: "sum" }).catch((e) => { if (e.code !== "NOT_FOUND") throw e; return { revision: 0, value: 0 } });
    try { await cs.storage.put({ namespace: "n", key: "sum", value: d.value + 1, ifRevision: d.revision }); break } catch (e) { if (e.code !== "REVISION_MISMATCH" || e.status !== 409) throw e }
  }
};`, func() api.VersionConfig { c := storing("n"); c.Capabilities.Storage.Install = "sums"; return c }())
	b.publish("reader", storer, func() api.VersionConfig { c := storing("n"); c.Capabilities.Storage.Install = "sums"; return c }())
	service, err := documents.New(t.Context(), b.store, documents.Config{})
	if err != nil {
		t.Fatalf("documents.New: %v", err)
	}
	if _, err := service.RegisterInstall(t.Context(), b.tenant, api.Install{Install: "sums", Functions: []string{"default/adder", "default/reader"}}); err != nil {
		t.Fatalf("service.RegisterInstall: %v", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			out, err := b.engine.Invoke(t.Context(), b.granted("adder", "5"))
			if err != nil || out.Activation.Status != api.StatusSuccess {
				t.Errorf("invoke adder: got %+v and error %v, want success", out, err)
			}
		})
	}
	wg.Wait()
	if got := b.do("reader", "get", `{"namespace":"n","key":"sum"}`); !strings.Contains(got, `"revision":40,`) || !strings.Contains(got, `"value":40}`) {
		t.Errorf("get of the sum = %s, want revision 40 and value 40", got)
	}
}
