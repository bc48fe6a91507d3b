package documents_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// replicas are services of one store.
func replicas(t *testing.T, url string, n int) []*documents.Service {
	t.Helper()
	out := make([]*documents.Service, n)
	for i := range out {
		var err error
		out[i], err = documents.New(t.Context(), storagetest.Open(t, storage.Config{URL: url}), documents.Config{})
		if err != nil {
			t.Fatalf("documents.New: %v", err)
		}
	}
	return out
}

func putOf(key, value string) api.DocumentPut {
	return api.DocumentPut{Namespace: "settings", DocumentItem: api.DocumentItem{Key: key, Value: json.RawMessage(value)}}
}

// What one replica is told of a schema holds on all of them at once, whatever they
// remember: neither is a value let through by a schema of yesterday, nor refused by one.
func TestSchemasHoldOnAllReplicas(t *testing.T) {
	t.Parallel()
	two := replicas(t, storagetest.Redis(t).URL, 2)
	tenant := storagetest.Tenant(t)
	ctx := t.Context()
	wants := func(service *documents.Service, value string, code api.Code) {
		t.Helper()
		if _, err := service.Put(ctx, tenant, "crm", putOf("a", value)); api.ErrorCode(err) != code {
			t.Errorf("%s: %v, want %q", value, err, code)
		}
		_, err := service.BulkPut(ctx, tenant, "crm", api.DocumentBulkPut{Namespace: "settings", Items: []api.DocumentItem{{Key: "b", Value: json.RawMessage(value)}}})
		if bulk := api.ErrorCode(err); (bulk == "") != (code == "") || bulk != "" && bulk != api.CodeBulkPartialFailure {
			t.Errorf("BulkPut of %s: got error %v, want code %s if a Put has the code %q, else success", value, err, api.CodeBulkPartialFailure, code)
		}
	}
	set := func(service *documents.Service, schema string) {
		t.Helper()
		if err := service.SetSchema(ctx, tenant, "crm", "settings", []byte(schema)); err != nil {
			t.Fatalf("service.SetSchema: %v", err)
		}
	}
	for _, service := range two {
		wants(service, `1`, "")
		wants(service, `"x"`, "")
	}
	for i, service := range two {
		other := two[1-i]
		set(service, `{"type":"number"}`)
		wants(other, `"x"`, api.CodeDocumentInvalid)
		wants(other, `1`, "")
		set(service, `{"type":"string"}`)
		wants(other, `"x"`, "") // the one that it remembers would refuse it
		wants(other, `1`, api.CodeDocumentInvalid)
		if err := service.DeleteSchema(ctx, tenant, "crm", "settings"); err != nil {
			t.Fatalf("service.DeleteSchema: %v", err)
		}
		wants(other, `1`, "")
		wants(service, `1`, "")
	}
	set(two[0], `{"type":"number"}`)
	wants(two[1], `1`, "")
	if err := two[0].DeleteNamespace(ctx, tenant, "crm", "settings"); err != nil {
		t.Fatalf("DeleteNamespace: %v", err)
	}
	wants(two[1], `"x"`, "")
}

// A cursor is valid on every replica, and for no other tenant's documents.
func TestCursorsAreOneTenantsOnEveryReplica(t *testing.T) {
	t.Parallel()
	two := replicas(t, storagetest.Redis(t).URL, 2)
	ours, theirs := storagetest.Tenant(t), storagetest.Tenant(t)
	for _, key := range []string{"a", "b"} {
		for _, tenant := range []string{ours, theirs} {
			if _, err := two[0].Put(t.Context(), tenant, "crm", putOf(key, `1`)); err != nil {
				t.Fatalf("Put: %v", err)
			}
		}
	}
	page, err := two[0].List(t.Context(), ours, "crm", api.DocumentList{Namespace: "settings", Limit: 1})
	if err != nil || page.NextCursor == nil {
		t.Fatalf("List: got %+v and error %v, want a next cursor", page, err)
	}
	next := api.DocumentList{Namespace: "settings", Cursor: *page.NextCursor}
	if page, err := two[1].List(t.Context(), ours, "crm", next); err != nil || len(page.Items) != 1 || page.Items[0].Key != "b" {
		t.Errorf("List on another replica: got %+v and error %v, want only %q", page, err, "b")
	}
	for _, elsewhere := range []struct{ tenant, install string }{{theirs, "crm"}, {ours, "crm2"}} {
		if _, err := two[0].List(t.Context(), elsewhere.tenant, elsewhere.install, next); api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("List: got %+v: %v; want CodeDocumentInvalid", elsewhere, err)
		}
	}
	// No letter of it can be another.
	for i := range next.Cursor {
		changed := next
		letter := "A"
		if next.Cursor[i] == 'A' {
			letter = "B"
		}
		changed.Cursor = next.Cursor[:i] + letter + next.Cursor[i+1:]
		if _, err := two[0].List(t.Context(), ours, "crm", changed); api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("letter %d: %v; want CodeDocumentInvalid", i, err)
		}
	}
}

// roundTrips counts the requests that a client sends from now on. It passes over those that no
// operation waits for: a publish, and the greeting of a further connection, which the pool opens
// while a publish has the other.
func roundTrips(client redis.UniversalClient) func() int64 {
	n := &atomic.Int64{}
	client.AddHook(storagetest.Before(func(cmds []redis.Cmder) {
		switch cmds[0].Name() {
		case "publish", "spublish", "hello", "client":
		default:
			n.Add(1)
		}
	}))
	return n.Load
}

// An operation is one round trip to the store, also where the namespace has a schema.
func TestOperationsAreOneRoundTrip(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	service, err := documents.New(t.Context(), store, documents.Config{Quota: documents.DefaultQuota()})
	if err != nil {
		t.Fatalf("documents.New: %v", err)
	}
	tenant, ctx := storagetest.Tenant(t), t.Context()
	if err := service.SetSchema(ctx, tenant, "crm", "settings", []byte(`{"type":"number"}`)); err != nil {
		t.Fatalf("service.SetSchema: %v", err)
	}
	operations := map[string]func() error{
		"put": func() error { _, err := service.Put(ctx, tenant, "crm", putOf("a", `1`)); return err },
		"get": func() error {
			_, err := service.Get(ctx, tenant, "crm", api.DocumentGet{Namespace: "settings", Key: "a"})
			return err
		},
		"list": func() error {
			_, err := service.List(ctx, tenant, "crm", api.DocumentList{Namespace: "settings", IncludeValues: true})
			return err
		},
		"delete": func() error {
			return service.Delete(ctx, tenant, "crm", api.DocumentDelete{Namespace: "settings", Key: "b"})
		},
	}
	for _, name := range []string{"put", "get", "list", "delete"} { // which loads the scripts
		if err := operations[name](); err != nil {
			t.Fatalf("%s: operations: %v", name, err)
		}
	}
	trips := roundTrips(store.Client())
	for name, operation := range operations {
		before := trips()
		if err := operation(); err != nil {
			t.Errorf("%s: operation: %v", name, err)
		}
		if n := trips() - before; n != 1 {
			t.Errorf("%s: got %d round trips, want 1", name, n)
		}
	}
}

func TestMayUse(t *testing.T) {
	t.Parallel()
	service := replicas(t, storagetest.Redis(t).URL, 1)[0]
	tenant, ctx := storagetest.Tenant(t), t.Context()
	if _, err := service.RegisterInstall(ctx, tenant, api.Install{Install: "crm", Functions: []string{"payments/hello", "sales/*"}}); err != nil {
		t.Fatalf("service.RegisterInstall: %v", err)
	}
	for _, tc := range []struct {
		install, namespace, function string
		want                         api.Code
	}{
		{"fn.payments.hello", "payments", "hello", ""},
		{"fn.payments.hello", "payments", "other", api.CodeStorageDenied},
		{"fn.payments.hello", "sales", "hello", api.CodeStorageDenied},
		{"crm", "payments", "hello", ""},
		{"crm", "sales", "any", ""},
		{"crm", "payments", "other", api.CodeStorageDenied},
		{"none", "payments", "hello", api.CodeStorageDenied},
		{"a b", "payments", "hello", api.CodeDocumentInvalid},
	} {
		if err := service.MayUse(ctx, tenant, tc.install, tc.namespace, tc.function); api.ErrorCode(err) != tc.want {
			t.Errorf("service.MayUse: got %+v: %v; want the code tc.want", tc, err)
		}
	}
	if err := service.MayUse(ctx, storagetest.Tenant(t), "crm", "payments", "hello"); api.ErrorCode(err) != api.CodeStorageDenied {
		t.Errorf("another tenant's: %v; want CodeStorageDenied", err)
	}
}

// A tenant's rate is its own, and what it leaves comes back.
func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	service, err := documents.New(t.Context(), storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}),
		documents.Config{Rate: 3, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatalf("documents.New: %v", err)
	}
	burst := func(tenant string) (done int) {
		for {
			_, err := service.List(t.Context(), tenant, "crm", api.DocumentList{Namespace: "settings"})
			if err != nil && api.ErrorCode(err) != api.CodeRateLimited {
				t.Fatalf("List: got error %v, want success or code %s", err, api.CodeRateLimited)
			}
			if err != nil || done > 10 {
				return done
			}
			done++
		}
	}
	ours, theirs := storagetest.Tenant(t), storagetest.Tenant(t)
	for _, step := range []struct {
		tenant string
		wait   time.Duration
		want   int
	}{{ours, 0, 3}, {theirs, 0, 3}, {ours, 334 * time.Millisecond, 1}, {ours, -time.Hour, 0}, {ours, 2 * time.Hour, 3}, {theirs, 0, 3}} {
		now = now.Add(step.wait)
		if got := burst(step.tenant); got != step.want {
			t.Errorf("behind %v: %d operations, want %d", step.wait, got, step.want)
		}
	}
}

func TestServicesThatCannotBe(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	for _, bad := range []documents.Config{{Rate: -1}, {Quota: documents.Quota{TenantBytes: -1}}} {
		if _, err := documents.New(t.Context(), store, bad); err == nil {
			t.Errorf("New with %+v: got success, want an error", bad)
		}
	}
	if _, err := documents.New(t.Context(), nil, documents.Config{}); err == nil {
		t.Error("no store is taken")
	}
}

// A request with far too many items is refused before each of them is read.
//
//nolint:paralleltest // allocations are those of the whole process
func TestTooManyItemsAreNotLookedAt(t *testing.T) {
	service, tenant := replicas(t, storagetest.Redis(t).URL, 1)[0], storagetest.Tenant(t)
	bulk := api.DocumentBulkPut{Namespace: "settings", Items: make([]api.DocumentItem, 100_000)}
	all := api.DocumentTransact{Namespace: "settings", Operations: make([]api.DocumentStep, 100_000)}
	for name, operation := range map[string]func() error{
		"bulkPut":  func() error { _, err := service.BulkPut(t.Context(), tenant, "crm", bulk); return err },
		"transact": func() error { _, err := service.Transact(t.Context(), tenant, "crm", all); return err },
	} {
		n := testing.AllocsPerRun(1, func() {
			if err := operation(); api.ErrorCode(err) != api.CodeDocumentInvalid {
				t.Errorf("%s: operation: got %v; want CodeDocumentInvalid", name, err)
			}
		})
		if n > 1000 {
			t.Errorf("%s: got %.0f allocations, want at most 1000", name, n)
		}
	}
}

// A listing that finds little takes few round trips, however short its page is to be.
func TestListingsTakeFewRoundTrips(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixMilli())
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	service, err := documents.New(t.Context(), store, documents.Config{Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	if err != nil {
		t.Fatalf("documents.New: %v", err)
	}
	tenant, ctx := storagetest.Tenant(t), t.Context()
	ttl := int64(api.MinDocumentTTLSeconds)
	for bulk := range 20 {
		items := make([]api.DocumentItem, api.MaxDocumentBulkItems)
		for i := range items {
			items[i] = api.DocumentItem{Key: fmt.Sprintf("%03d", bulk*len(items)+i), Value: json.RawMessage(`1`), TTLSeconds: &ttl}
		}
		if _, err := service.BulkPut(ctx, tenant, "crm", api.DocumentBulkPut{Namespace: "settings", Items: items}); err != nil {
			t.Fatalf("service.BulkPut: %v", err)
		}
	}
	trips := roundTrips(store.Client())
	list := func(name string, query api.DocumentList) {
		t.Helper()
		query.Namespace, query.Limit = "settings", 1
		before := trips()
		page, err := service.List(ctx, tenant, "crm", query)
		if err != nil || len(page.Items) != 0 || page.NextCursor != nil {
			t.Errorf("%s: List: got %+v and error %v, want an empty last page", name, page, err)
		}
		if n := trips() - before; n > 6 {
			t.Errorf("%s: got %d round trips, want at most 6", name, n)
		}
	}
	list("a filter, with values", api.DocumentList{IncludeValues: true, Metadata: map[string]json.RawMessage{"kind": json.RawMessage(`1`)}})
	now.Add(ttl * 1000)
	list("all have expired", api.DocumentList{})
}

// A schema is given back as it came, so it is text.
func TestSchemasAreText(t *testing.T) {
	t.Parallel()
	service := replicas(t, storagetest.Redis(t).URL, 1)[0]
	err := service.SetSchema(t.Context(), storagetest.Tenant(t), "crm", "settings", []byte("{\"title\":\"\xff\"}"))
	if api.ErrorCode(err) != api.CodeDocumentInvalid {
		t.Errorf("service.SetSchema: got %v; want CodeDocumentInvalid", err)
	}
}
