package storage_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/storagetest"
)

// model is one function and what lies below it, as plain data.
type model struct {
	exists, deleted bool
	versions        []string // digests, version n at n-1
	aliases         map[string]int64
	drafts          map[string]*modelDraft
	activations     map[string]*modelActivation
	kv              map[string]string
}

type modelDraft struct {
	sha      string
	consumed bool
}

type modelActivation struct {
	status api.Status
	result string
	start  int64
}

// machine applies each step to a store and to the model, and compares what they
// answer.
type machine struct {
	f     *fixture
	m     model
	clock int64
}

// TestRepositoriesMatchTheModel compares the repositories with the model over
// random histories.
func TestRepositoriesMatchTheModel(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		rapid.Check(t, func(rt *rapid.T) {
			f := &fixture{
				Store: s, functions: storage.NewFunctions(s), drafts: storage.NewDrafts(s), versions: storage.NewVersions(s),
				aliases: storage.NewAliases(s), activations: activations.New(s),
				fn: api.Function{Tenant: storagetest.Tenant(t), Namespace: "payments", Name: "reconcile", CreatedAtMS: 1},
			}
			// The machine's clock never meets the store's: two writes of one
			// record at one time count as one.
			m := &machine{f: f, clock: s.NowMS() - time.Hour.Milliseconds(), m: model{
				aliases: map[string]int64{}, drafts: map[string]*modelDraft{},
				activations: map[string]*modelActivation{}, kv: map[string]string{},
			}}
			rt.Repeat(map[string]func(*rapid.T){
				"create": m.create, "delete": m.delete, "draft": m.draft, "publish": m.publish,
				"alias": m.alias, "unalias": m.unalias, "start": m.start, "end": m.end, "kv": m.kvStep,
				"": m.compare,
			})
		})
	})
}

// want fails unless err carries the code.
func want(t *rapid.T, op string, code api.Code, err error) {
	if api.ErrorCode(err) != code {
		t.Fatalf("%s: got %v, the model says %q; want the code code", op, err, code)
	}
}

func (m *machine) live() bool { return m.m.exists && !m.m.deleted }

func (m *machine) tick() int64 { m.clock++; return m.clock }

func (m *machine) create(t *rapid.T) {
	fn := m.f.fn
	fn.CreatedAtMS = m.tick()
	_, err := m.f.functions.Create(t.Context(), fn)
	if m.live() {
		want(t, "create", api.CodeFunctionExists, err)
		return
	}
	want(t, "create", "", err)
	m.f.fn, m.m.exists, m.m.deleted = fn, true, false
}

func (m *machine) delete(t *rapid.T) {
	fn := m.f.fn
	err := m.f.functions.Delete(t.Context(), fn.Tenant, fn.Namespace, fn.Name, m.tick())
	if !m.live() {
		want(t, "delete", api.CodeFunctionNotFound, err)
		return
	}
	want(t, "delete", "", err)
	m.m.deleted = true
}

func (m *machine) draft(t *rapid.T) {
	fn, sha := m.f.fn, rapid.SampledFrom([]string{"aa", "bb", "cc"}).Draw(t, "sha")
	id := api.NewDraftID(m.tick())
	err := m.f.drafts.Put(t.Context(), fn.Tenant, fn.Namespace, fn.Name, api.Draft{
		DraftID: id, SHA256: sha, CreatedAtMS: m.clock, ExpiresAtMS: m.clock + api.DraftTTLMS,
	})
	if !m.live() {
		want(t, "draft", api.CodeFunctionNotFound, err)
		return
	}
	want(t, "draft", "", err)
	m.m.drafts[id] = &modelDraft{sha: sha}
}

func (m *machine) publish(t *rapid.T) {
	if len(m.m.drafts) == 0 {
		t.Skip("no draft")
	}
	id := rapid.SampledFrom(sorted(m.m.drafts)).Draw(t, "draft")
	alias := rapid.SampledFrom([]string{"", "prod", "next"}).Draw(t, "alias")
	d := m.m.drafts[id]
	v, created, err := m.f.publish(id, d.sha, alias)
	switch {
	case !m.live():
		want(t, "publish", api.CodeFunctionNotFound, err)
		return
	case d.consumed:
		want(t, "publish", api.CodeDraftConsumed, err)
		return
	}
	want(t, "publish", "", err)
	n := len(m.m.versions)
	fresh := n == 0 || m.m.versions[n-1] != d.sha
	if fresh {
		m.m.versions = append(m.m.versions, d.sha)
		n++
	}
	if created != fresh || v.Version != int64(n) || v.SHA256 != d.sha {
		t.Fatalf("Publish: got %+v and created %v, want version %d with digest %s and created %v", v, created, n, d.sha, fresh)
	}
	d.consumed = true
	if alias != "" {
		m.m.aliases[alias] = int64(n)
	}
}

func (m *machine) alias(t *rapid.T) {
	fn := m.f.fn
	name := rapid.SampledFrom([]string{"prod", "next"}).Draw(t, "alias")
	version := rapid.Int64Range(0, 5).Draw(t, "version")
	ifMatch := rapid.Ptr(rapid.Int64Range(0, 3), true).Draw(t, "if match")
	_, err := m.f.aliases.Set(t.Context(), fn.Tenant, fn.Namespace, fn.Name, name, version, ifMatch, m.tick())
	switch {
	case version < 1:
		want(t, "alias", api.CodeVersionNotFound, err)
	case !m.live():
		want(t, "alias", api.CodeFunctionNotFound, err)
	case version > int64(len(m.m.versions)):
		want(t, "alias", api.CodeVersionNotFound, err)
	case ifMatch != nil && *ifMatch != m.m.aliases[name]:
		want(t, "alias", api.CodePreconditionFailed, err)
	default:
		want(t, "alias", "", err)
		m.m.aliases[name] = version
	}
}

func (m *machine) unalias(t *rapid.T) {
	fn := m.f.fn
	name := rapid.SampledFrom([]string{"prod", "next"}).Draw(t, "alias")
	ifMatch := rapid.Ptr(rapid.Int64Range(1, 3), true).Draw(t, "if match")
	err := m.f.aliases.Delete(t.Context(), fn.Tenant, fn.Namespace, fn.Name, name, ifMatch)
	held, ok := m.m.aliases[name]
	switch {
	case !ok:
		want(t, "unalias", api.CodeAliasNotFound, err)
	case ifMatch != nil && *ifMatch != held:
		want(t, "unalias", api.CodePreconditionFailed, err)
	default:
		want(t, "unalias", "", err)
		delete(m.m.aliases, name)
	}
}

func (m *machine) start(t *rapid.T) {
	a := m.f.running()
	a.StartMS -= rapid.Int64Range(0, 3).Draw(t, "earlier")
	created, _, err := m.f.activations.Start(t.Context(), a)
	want(t, "start", "", err)
	if !created {
		t.Fatal("a new id was taken")
	}
	m.m.activations[a.ActivationID] = &modelActivation{status: api.StatusRunning, start: a.StartMS}
}

func (m *machine) end(t *rapid.T) {
	if len(m.m.activations) == 0 {
		t.Skip("no activation")
	}
	id := rapid.SampledFrom(sorted(m.m.activations)).Draw(t, "activation")
	held := m.m.activations[id]
	if rapid.Bool().Draw(t, "cancel") {
		_, err := m.f.activations.Cancel(t.Context(), m.f.fn.Tenant, id, m.tick())
		if held.status.Terminal() {
			want(t, "cancel", api.CodeActivationTerminal, err)
			return
		}
		want(t, "cancel", "", err)
		held.status = api.StatusCancelled
		return
	}
	current, err := m.f.activations.Get(t.Context(), m.f.fn.Tenant, id)
	want(t, "get", "", err)
	result := fmt.Sprintf("%q", make([]byte, rapid.IntRange(0, 1200).Draw(t, "size"))) // six characters a byte
	done := succeeded(current, m.tick(), jsonString(result))
	done.Error = nil
	won, _, err := m.f.activations.Finish(t.Context(), done)
	want(t, "finish", "", err)
	if won == held.status.Terminal() {
		t.Fatalf("Finish of an activation with status %s: got won %v, want %v", held.status, won, !held.status.Terminal())
	}
	if won {
		held.status, held.result = api.StatusSuccess, string(done.Result)
	}
}

func jsonString(s string) string {
	raw, _ := json.Marshal(s) // a string always encodes
	return string(raw)
}

func (m *machine) kvStep(t *rapid.T) {
	kv, tenant := kvstore.New(m.f.Store), m.f.fn.Tenant
	key := rapid.SampledFrom([]string{"a", "b", "a:b"}).Draw(t, "key")
	if rapid.Bool().Draw(t, "delete") {
		was, err := kv.Del(t.Context(), tenant, "n", key)
		want(t, "del", "", err)
		if _, ok := m.m.kv[key]; was != ok {
			t.Fatalf("Del of %s: got %v, want %v", key, was, ok)
		}
		delete(m.m.kv, key)
		return
	}
	value := rapid.StringN(0, 8, -1).Draw(t, "value")
	want(t, "set", "", kv.Set(t.Context(), tenant, "n", key, []byte(value), 0))
	m.m.kv[key] = value
}

// compare reads everything back.
func (m *machine) compare(t *rapid.T) {
	ctx, fn := t.Context(), m.f.fn
	detail, err := m.f.functions.Detail(ctx, fn.Tenant, fn.Namespace, fn.Name)
	if !m.live() {
		want(t, "detail", api.CodeFunctionNotFound, err)
	} else {
		want(t, "detail", "", err)
		latest := int64(0)
		if detail.LatestVersion != nil {
			latest = *detail.LatestVersion
		}
		got := map[string]int64{}
		for _, a := range detail.Aliases {
			got[a.Alias] = a.Version
		}
		if d := cmp.Diff(m.m.aliases, got); d != "" || latest != int64(len(m.m.versions)) {
			t.Fatalf("got latest version %d, want %d; aliases differ (-want +got):\n%s", latest, len(m.m.versions), d)
		}
	}
	items, _, err := m.f.versions.List(ctx, fn.Tenant, fn.Namespace, fn.Name, 0, api.MaxPageLimit)
	want(t, "versions", "", err)
	shas := make([]string, 0, len(items))
	for _, v := range items {
		shas = append(shas, v.SHA256)
	}
	slices.Reverse(shas)
	if !slices.Equal(shas, m.m.versions) {
		t.Fatalf("got versions %v, want %v", shas, m.m.versions)
	}
	for id, held := range m.m.drafts {
		_, err := m.f.drafts.Get(ctx, fn.Tenant, fn.Namespace, fn.Name, id)
		code := api.Code("")
		if held.consumed {
			code = api.CodeDraftConsumed
		}
		want(t, "draft", code, err)
	}
	m.compareActivations(t)
	for key, value := range m.m.kv {
		got, found, err := kvstore.New(m.f.Store).Get(ctx, fn.Tenant, "n", key)
		want(t, "kv", "", err)
		if !found || string(got) != value {
			t.Fatalf("Get of %s: got %q and found %v, want %q", key, got, found, value)
		}
	}
}

func (m *machine) compareActivations(t *rapid.T) {
	fn := m.f.fn
	items, _, err := m.f.activations.List(t.Context(), activations.Filter{
		Tenant: fn.Tenant, Namespace: fn.Namespace, Function: fn.Name, Limit: api.MaxPageLimit,
	})
	want(t, "list", "", err)
	if len(items) != len(m.m.activations) {
		t.Fatalf("got %d activations listed, want %d", len(items), len(m.m.activations))
	}
	for i, a := range items {
		held := m.m.activations[a.ActivationID]
		if held == nil || a.Status != held.status || i > 0 && a.StartMS > items[i-1].StartMS {
			t.Fatalf("List: got %+v at position %d, want it as in the model, %+v, and newest first", a, i, held)
		}
		got, err := m.f.activations.Get(t.Context(), fn.Tenant, a.ActivationID)
		want(t, "get", "", err)
		if string(got.Result) != held.result {
			t.Fatalf("got a result of %d bytes, want the model's %d", len(got.Result), len(held.result))
		}
	}
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
