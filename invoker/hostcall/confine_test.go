package hostcall

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// hostile are spellings that have led out of prefixes elsewhere. Each is tried as it
// is, and before and after the prefix.
var hostile = []string{
	"", ":", "::", "ctr", "CTR:", "Ctr:", " ctr:", "ctr :", "ctr\x00:", "\x00ctr:", "\xffctr:", "ctr:\xff", "\xed\xa0\x80ctr:",
	"ctr:../x", "../ctr:", "ctr:/../../x", "..", "./ctr:", "ctr:\x00", "ctr:\r\nGET x", "ctr:*", "*", "?tr:", "[c]tr:", "ctr:{", "{ctr:}", "ctr:}{t_other}",
	"{t_other}:default:ctr:", "ctr:x:cs:kv:t_other:default:y", "cs:kv:t_other:default:ctr:", "ctr：", "ｃtr:", "ctr\u200b:", "\ufeffctr:", "c\u0074\u0301r:", "ctŕ:",
	"ctr\u0589", "ctr\ua789", "%63tr:", "ctr%3a", `\u0063tr:`, `ctr\u003a`, "ctr:\u202e", "ctr:" + strings.Repeat("x", 600), "default:ctr:", ":default:ctr:",
}

// confined is a function with all rights to keys of ctr: and the documents of ctr, and a
// store that holds values of others too.
type confined struct {
	host   *Table
	scope  *Scope
	rdb    redis.UniversalClient
	others map[string]string // keys that it must neither read nor change
}

// newConfined fills a store with values of others, under every key that a hostile
// spelling could aim at.
func newConfined(t testing.TB, s *storage.Store, rdb redis.UniversalClient) *confined {
	t.Helper()
	tenant := storagetest.Tenant(t)
	kv := kvstore.New(s)
	service, err := documents.New(context.Background(), s, documents.Config{})
	if err != nil {
		t.Fatalf("documents.New: %v", err)
	}
	c := &confined{
		host: New(Services{KV: kv, Documents: service}),
		rdb:  rdb,
		scope: &Scope{Tenant: tenant, Namespace: "default", Function: "greet", Capabilities: api.Capabilities{
			KV:      &api.KVCapability{Prefixes: []string{"ctr:"}, Ops: []string{"*"}},
			Storage: &api.StorageCapability{Namespaces: []string{"ctr"}, Ops: []string{"*"}},
		}},
	}
	for _, of := range []struct{ tenant, namespace string }{{tenant, "default"}, {tenant, "other"}, {tenant + "b", "default"}} {
		for _, key := range append([]string{"secret", "ct", "ctrl", "ctr"}, hostile...) {
			own := of.tenant == tenant && of.namespace == "default" && strings.HasPrefix(key, "ctr:")
			if key == "" || own || !utf8.ValidString(key) {
				continue
			}
			if err := kv.Set(context.Background(), of.tenant, of.namespace, key, []byte(`"theirs"`), 0); err != nil {
				t.Fatalf("kv.Set: %v", err)
			}
		}
	}
	for _, install := range []string{"fn.default.greet2", "fn.other.greet", "shared"} {
		if _, err := service.Put(context.Background(), tenant, install, put("ctr", `"theirs"`)); err != nil {
			t.Fatalf("service.Put: %v", err)
		}
	}
	for _, namespace := range []string{"ctr2", "ct", "secret"} {
		if _, err := service.Put(context.Background(), tenant, "fn.default.greet", put(namespace, `"theirs"`)); err != nil {
			t.Fatalf("service.Put: %v", err)
		}
	}
	c.others = c.dump(t)
	return c
}

func put(namespace, value string) api.DocumentPut {
	return api.DocumentPut{Namespace: namespace, DocumentItem: api.DocumentItem{Key: "k", Value: json.RawMessage(value)}}
}

// dump is what the store holds beside what the function may touch: its keys of ctr:,
// its own documents of ctr, and the indexes and counts of them all.
func (c *confined) dump(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	keys, err := c.rdb.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatalf("Keys: %v", err)
	}
	tags := strings.NewReplacer("{"+c.scope.Tenant+"}", c.scope.Tenant)
	for _, key := range keys {
		plain := tags.Replace(key)
		doc := "cs:doc:" + c.scope.Tenant + ":"
		switch {
		case strings.HasPrefix(plain, "cs:kv:"+c.scope.Tenant+":default:ctr:"),
			strings.HasPrefix(plain, "cs:kvindex:"+c.scope.Tenant+":default"), plain == "cs:kvusage:"+c.scope.Tenant,
			strings.HasPrefix(plain, doc+"fn.default.greet:ctr:"), strings.HasPrefix(plain, doc) && !strings.HasSuffix(plain, ":records"):
			continue
		}
		value, err := c.rdb.Dump(context.Background(), key).Result()
		if err != nil {
			t.Fatalf("Dump: %v", err)
		}
		out[key] = value
	}
	return out
}

// try makes every call with a spelling, and fails the test where it reads or changes a
// value of others.
func (c *confined) try(ctx context.Context, t rapid.TB, spelling string) {
	quotedSpelling, err := json.Marshal(spelling)
	if err != nil {
		return
	}
	text := string(quotedSpelling)
	type call struct{ name, head, blob string }
	calls := []call{
		{"kv.get", `{"key":` + text + `}`, ""}, {"kv.set", `{"key":` + text + `}`, `"mine"`}, {"kv.get", `{"key":` + text + `}`, ""}, {"kv.del", `{"key":` + text + `}`, ""},
		{"kv.get", `{"key":"ctr:x","key":` + text + `}`, ""}, {"kv.get", `{"KEY":` + text + `,"key":"ctr:x"}`, ""},
		{"kv.get", `{"key":"ctr:x","namespace":` + text + `}`, ""},
		// The spelling as it is, which may break out of its text.
		{"kv.get", `{"key":"` + spelling + `"}`, ""}, {"kv.get", `{"key":"ctr:` + spelling + `"}`, ""}, {"kv.set", `{"key":"` + spelling + `"}`, `"mine"`},
		{"storage.get", "{}", `{"namespace":"` + spelling + `","key":"k"}`}, {"storage.get", "{}", `{"namespace":"ctr","key":"k` + spelling + `"}`},
	}
	for op, rest := range map[string]string{
		"get": `"key":"k"`, "put": `"key":"k","value":"mine"`, "list": `"includeValues":true`, "delete": `"key":"k"`,
		"bulkPut": `"items":[{"key":"k","value":"mine"}]`, "transact": `"operations":[{"op":"put","key":"k","value":"mine"}]`,
	} {
		calls = append(calls, call{"storage." + op, "{}", `{"namespace":` + text + `,` + rest + `}`},
			call{"storage." + op, "{}", `{"namespace":"ctr","NameSpace":` + text + `,` + rest + `}`})
	}
	for _, key := range []string{"get", "put", "delete"} {
		calls = append(calls, call{"storage." + key, "{}", `{"namespace":"ctr","key":` + text + `,"value":"mine"}`})
	}
	for _, k := range calls {
		head, blob, err := c.host.Call(ctx, c.scope, k.name, []byte(k.head), []byte(k.blob))
		if strings.Contains(string(head)+string(blob), "theirs") {
			t.Errorf("%s %s %s returned data of another owner: got %s%s, want no \"theirs\"", k.name, k.head, k.blob, head, blob)
		}
		granted := err == nil || api.ErrorCode(err) != api.CodeRuntimeCapabilityDenied && api.ErrorCode(err) != api.CodeHostInvalidArgument
		if strings.HasPrefix(k.head, `{"key":`+text) && granted && !strings.HasPrefix(asJSON(text), "ctr:") {
			t.Errorf("%s %s: got it granted, with error %v, want it refused", k.name, k.head, err)
		}
	}
}

// asJSON is a text as a decoder reads it.
func asJSON(text string) (s string) {
	_ = json.Unmarshal([]byte(text), &s) // it was encoded a moment ago
	return s
}

func (c *confined) unharmed(t testing.TB) {
	t.Helper()
	after := c.dump(t)
	for key, value := range c.others {
		if after[key] != value {
			t.Errorf("key %q of another owner: got %q, want %q", key, after[key], value)
		}
	}
	for key := range after {
		if _, ok := c.others[key]; !ok {
			t.Errorf("got new key %q outside of the prefix, want none", key)
		}
	}
}

// eachTagging runs test on a store whose keys have hash tags and on one without.
func eachTagging(t testing.TB, test func(name string, c *confined)) {
	t.Helper()
	for name, tags := range map[string]bool{"plain": false, "hash tags": true} {
		srv := storagetest.Redis(t)
		s := storagetest.Open(t, storage.Config{URL: srv.URL, HashTags: &tags})
		options, err := redis.ParseURL(srv.URL)
		if err != nil {
			t.Fatalf("redis.ParseURL: %v", err)
		}
		rdb := redis.NewClient(options)
		t.Cleanup(func() { _ = rdb.Close() }) // it only looked
		test(name, newConfined(t, s, rdb))
	}
}

// A function with the prefix ctr: reads and changes no other key by any spelling, nor
// another namespace of documents, with hash tags in the keys and without.
func FuzzConfinement(f *testing.F) {
	var all []*confined
	eachTagging(f, func(_ string, c *confined) { all = append(all, c) })
	for _, spelling := range hostile {
		f.Add(spelling)
		f.Add("ctr:" + spelling)
		f.Add(spelling + "ctr:")
	}
	f.Fuzz(func(t *testing.T, spelling string) {
		for _, c := range all {
			c.try(t.Context(), t, spelling)
		}
	})
	for _, c := range all {
		c.unharmed(f)
	}
}

// The same for spellings made of their dangerous parts.
func TestConfinementOfAnySpelling(t *testing.T) {
	t.Parallel()
	parts := rapid.SampledFrom(append([]string{"ctr", "ctr:", "cs:kv:", "t_", "default", "\x00", "/", "{", "}", "\\", "\"", "\xff", "\u0301", "ﬃ", "K"}, hostile...))
	spellings := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 24), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SliceOfN(parts, 1, 5), func(p []string) string { return strings.Join(p, "") }),
	)
	eachTagging(t, func(name string, c *confined) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { c.try(t.Context(), rt, spellings.Draw(rt, "spelling")) })
			c.unharmed(t)
		})
	})
}
