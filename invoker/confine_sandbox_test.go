package invoker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// What a script can write that no JSON text of ours holds: lone surrogates, objects
// that are texts when they are looked at, requests that change while they are read.
func TestConfinementOfScripts(t *testing.T) {
	t.Parallel()
	b, service := newStoring(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), documents.Config{})
	config := storing("ctr")
	config.Capabilities.KV = &api.KVCapability{Prefixes: []string{"ctr:"}, Ops: []string{"*"}}
	config.Capabilities.HTTP = &api.HTTPCapability{AllowHosts: []string{"*:*"}}
	for _, key := range []string{"secret", "ctr", "ct", "\ufffdctr:", "ctr\ufffd:", "\x00ctr:", "CTR:", "ctr\u0301:"} {
		b.setKV(key, `"theirs"`)
	}
	b.setKV("ctr:x", `"mine"`)
	for _, namespace := range []string{"secret", "ctr2"} {
		_, err := service.Put(t.Context(), b.tenant, "fn.default.confined", api.DocumentPut{
			Namespace: namespace, DocumentItem: api.DocumentItem{Key: "k", Value: json.RawMessage(`"theirs"`)},
		})
		if err != nil {
			t.Fatalf("service.Put: %v", err)
		}
	}
	b.publish("confined", `
const said = async (f) => { try { const v = await f(); return v?.value ?? v ?? null } catch (e) { return e.code ?? String(e) } };
const texts = ["secret", "ctr", "\ud800ctr:", "ctr\ud800:", "ctr\udfff\ud800:", "\0ctr:", "CTR:", "ctr\u0301:", "ｃtr:", "ctr：x"];
let reads = 0;
const shifty = { toString: () => reads++ ? "secret" : "ctr:x", toJSON: () => reads++ ? "secret" : "ctr" };
const getter = () => { let n = 0; return { get namespace() { return n++ ? "secret" : "ctr" }, key: "k" } };
export default async () => ({
  keys: await Promise.all(texts.flatMap((k) => [said(() => cs.kv.get(k)), said(() => cs.kv.set(k, "mine")), said(() => cs.kv.del(k))])),
  objects: await Promise.all([shifty, ["ctr:x"], new String("ctr:x"), { length: 4 }, 5, null].map((k) => said(() => cs.kv.get(k)))),
  under: await Promise.all(["ctr:x", "ctr:\ud800", "ctr:../secret", "ctr:\0", "ctr:{secret}"].map((k) => said(() => cs.kv.get(k)))),
  namespaces: await Promise.all(["secret", "ctr2", "ctr\ud800", "\0ctr", "CTR", "../secret", "ctr/../secret"].flatMap((namespace) =>
    [said(() => cs.storage.get({ namespace, key: "k" })), said(() => cs.storage.put({ namespace, key: "k", value: "mine" }))])),
  requests: await Promise.all([getter(), { namespace: shifty, key: "k" }, { namespace: ["secret"], key: "k" }, { toJSON: () => ({ namespace: "secret", key: "k" }) },
    { __proto__: { namespace: "secret" }, key: "k" }, new Proxy({}, { ownKeys: () => ["namespace", "key"], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: (_, k) => k === "namespace" ? "secret" : "k" })]
    .map((r) => said(() => cs.storage.get(r)))),
  hosts: await Promise.all(["2130706433", "0x7f000001", "017700000001", "127.1", "0", "[::ffff:7f00:1]", "①②⑦.0.0.1", "127.0.0.1.", "[::]", "169.254.169.254", "0xa9fea9fe", "[64:ff9b::a9fe:a9fe]", "u@127.0.0.1", "127.0.0.1\\@example.com", "127%2e0.0.1"]
    .map((h) => said(async () => (await fetch("http://" + h + ":1/")).status))),
});`, config)
	got := b.result(b.granted("confined", "null"))
	if strings.Contains(got, "theirs") {
		t.Errorf("the function read data of another owner: got %s, want no \"theirs\"", got)
	}
	var said map[string][]any
	if err := json.Unmarshal([]byte(got), &said); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	want := map[string]func(i int, v any) bool{
		"keys":       func(_ int, v any) bool { return v == "CS_RUNTIME_CAPABILITY_DENIED" },
		"objects":    func(_ int, v any) bool { return v == "CS_RUNTIME_INVALID_ARGUMENT" },
		"under":      func(i int, v any) bool { return i == 0 && v == "mine" || i > 0 && v == nil },
		"namespaces": func(_ int, v any) bool { return v == "UNAUTHORIZED" || v == "VALIDATION_FAILED" },
		"requests":   func(_ int, v any) bool { return v == "NOT_FOUND" || v == "UNAUTHORIZED" || v == "VALIDATION_FAILED" },
		"hosts": func(_ int, v any) bool {
			return v == "CS_RUNTIME_FETCH_BLOCKED" || v == "CS_RUNTIME_INVALID_ARGUMENT" || strings.HasPrefix(v.(string), "TypeError: ")
		},
	}
	for name, fits := range want {
		for i, v := range said[name] {
			if !fits(i, v) {
				t.Errorf("attempt %d of %s: got %v, want a refusal", i, name, v)
			}
		}
	}
	if b.kv("secret") != `"theirs"` || b.kv("ctr:x") != `"mine"` {
		t.Errorf("got stored values %s and %s, want \"theirs\" and \"mine\"", b.kv("secret"), b.kv("ctr:x"))
	}
}
