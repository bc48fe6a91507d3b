package documents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
)

// TestAnInstallHas32Namespaces tests the limit, also while writers race for the last
// namespace. A schema occupies a namespace as well, and clearing a namespace frees it.
func TestAnInstallHas32Namespaces(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		errs := storagetest.Concurrently(40, func(i int) error {
			mine := *d
			mine.path.Namespace = fmt.Sprintf("ns-%02d", i)
			if i%4 == 0 {
				_, err := d.SetSchema(t.Context(), mine.path, []byte(`{}`), documents.Quota{}, d.now)
				return err
			}
			_, err := mine.write(put("a", "1"))
			return err
		})
		refused := 0
		for _, err := range errs {
			if api.ErrorCode(err) == api.CodeDocumentInvalid {
				refused++
			} else if err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		namespaces, err := d.Namespaces(t.Context(), d.path.Tenant, d.path.Install)
		if err != nil || len(namespaces) != api.MaxDocumentNamespaces || refused != 8 {
			t.Fatalf("got %d namespaces, %d writes refused and error %v, want %d and 8", len(namespaces), refused, err, api.MaxDocumentNamespaces)
		}
		d.path.Namespace = namespaces[0].Name
		if _, more, err := d.Clear(t.Context(), d.path, 10); more || err != nil {
			t.Fatalf("Clear: got %+v, %v; want more false and no error", more, err)
		}
		d.path.Namespace = "another"
		d.mustWrite(put("a", "1"))
		d.audit("after all")
	})
}

// TestATenantHasSoManyInstalls: no more come into being, and those that are there go on.
func TestATenantHasSoManyInstalls(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.mustWrite(put("a", "1"))
		installs := storagetest.Keys(t, s.Client(), "cs:doc:*"+d.path.Tenant+"*:installs")
		if len(installs) != 1 {
			t.Fatalf("got keys of installs %v, want 1", installs)
		}
		var members []redis.Z
		for i := range api.MaxDocumentInstalls - 1 {
			members = append(members, redis.Z{Member: fmt.Sprintf("install-%05d", i)})
		}
		if err := s.Client().ZAdd(t.Context(), installs[0], members...).Err(); err != nil {
			t.Fatalf("ZAdd: %v", err)
		}
		other := *d
		other.path.Install = "one-more"
		if _, err := other.write(put("a", "1")); api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("other.write: got %v; want CodeDocumentInvalid", err)
		}
		if _, err := d.RegisterInstall(t.Context(), d.path.Tenant, api.Install{Install: "one-more"}); api.ErrorCode(err) != api.CodeDocumentInvalid {
			t.Errorf("RegisterInstall: got %v; want CodeDocumentInvalid", err)
		}
		other.path.Install = "install-00000"
		other.mustWrite(put("a", "1"))
		d.path.Namespace = "another"
		d.mustWrite(put("a", "1"))
	})
}

// TestNamespacesOfDocuments: what an install holds where, and with which schema; a namespace
// goes in steps, with all that it had.
func TestNamespacesOfDocuments(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.fill(250)
		digest, err := d.SetSchema(t.Context(), storage.DocumentPath{Tenant: d.path.Tenant, Install: d.path.Install, Namespace: "bare"}, []byte(`{"type":"object"}`), documents.Quota{}, d.now)
		if err != nil {
			t.Fatalf("SetSchema: %v", err)
		}
		const size = int64(len(`key 0000000{}"value"`))
		want := []documents.Namespace{
			{Name: "bare", Schema: digest, Use: documents.Count{Bytes: int64(len(digest) + len(`{"type":"object"}`))}},
			{Name: "settings", Use: documents.Count{Records: 250, Bytes: 250 * size}},
		}
		got, err := d.Namespaces(t.Context(), d.path.Tenant, d.path.Install)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("got error %v, difference (-want +got):\n%s", err, diff)
		}
		for _, step := range []struct {
			removed int
			more    bool
		}{{120, true}, {120, true}, {10, false}, {0, false}} {
			if removed, more, err := d.Clear(t.Context(), d.path, 120); removed != step.removed || more != step.more || err != nil {
				t.Errorf("Clear: got %d removed, more %v and error %v, want %+v", removed, more, err, step)
			}
		}
		got, err = d.Namespaces(t.Context(), d.path.Tenant, d.path.Install)
		if err != nil || len(got) != 1 {
			t.Errorf("Namespaces: got %+v and error %v, want 1", got, err)
		}
		d.audit("cleared")
		for _, part := range []string{"records", "index", "expiry", "schema"} {
			if n, err := s.Client().Exists(t.Context(), d.key(d.path.Install, d.path.Namespace, part)).Result(); n != 0 || err != nil {
				t.Errorf("EXISTS of %s of the deleted namespace: got %d and error %v, want 0", part, n, err)
			}
		}
	})
}

// TestSchemasOfDocuments tests that a write that was validated against an outdated schema is
// refused, for every change of the schema.
func TestSchemasOfDocuments(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d, ctx := newHarness(t, s), t.Context()
		write := func(schema string, steps ...documents.Step) api.Code {
			_, err := d.Write(ctx, d.path, steps, d.q, schema, d.now)
			return api.ErrorCode(err)
		}
		raw := bytes.Repeat([]byte(`{"é":"x"}`), 5_000)
		if raw, digest, err := d.Schema(ctx, d.path); raw != nil || digest != "" || err != nil {
			t.Errorf("Schema of a namespace without one: got %s, digest %q and error %v, want none", raw, digest, err)
		}
		digest, err := d.SetSchema(ctx, d.path, raw, documents.Quota{}, d.now)
		if err != nil {
			t.Fatalf("SetSchema: %v", err)
		}
		if got, of, err := d.Schema(ctx, d.path); err != nil || of != digest || !bytes.Equal(got, raw) {
			t.Errorf("Schema: got %d bytes, digest %q and error %v, want the %d bytes that were set, with digest %q", len(got), of, err, len(raw), digest)
		}
		if code := write("", put("a", "1")); code != api.CodeStoreConflict {
			t.Errorf("write without the digest of the schema: got code %q, want %s", code, api.CodeStoreConflict)
		}
		if code := write(digest, put("a", "1")); code != "" {
			t.Errorf("write with the digest of the schema: got code %q, want success", code)
		}
		another, err := d.SetSchema(ctx, d.path, []byte(`{}`), documents.Quota{}, d.now)
		if err != nil || another == digest {
			t.Fatalf("SetSchema of another schema: got digest %q and error %v, want another digest than the first", another, err)
		}
		if code := write(digest, put("a", "1")); code != api.CodeStoreConflict {
			t.Errorf("write with the digest of the earlier schema: got code %q, want %s", code, api.CodeStoreConflict)
		}
		if code := write("", check("a"), remove("b")); code != "" {
			t.Errorf("check and delete without a digest: got code %q, want success: they write no value", code)
		}
		if existed, err := d.DeleteSchema(ctx, d.path); !existed || err != nil {
			t.Errorf("DeleteSchema: got %+v, %v; want existed and no error", existed, err)
		}
		if existed, err := d.DeleteSchema(ctx, d.path); existed || err != nil {
			t.Errorf("DeleteSchema: got %+v, %v; want existed false and no error", existed, err)
		}
		if code := write("", put("a", "1")); code != "" {
			t.Errorf("write after the schema was deleted: got code %q, want success", code)
		}
	})
}

// TestInstalls: registered, in use, listed, and gone.
func TestInstalls(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d, ctx := newHarness(t, s), t.Context()
		tenant := d.path.Tenant
		if _, err := d.GetInstall(ctx, tenant, "shop"); api.ErrorCode(err) != api.CodeDocumentNotFound {
			t.Errorf("GetInstall: got %v; want CodeDocumentNotFound", err)
		}
		made := api.NewMoment(1_000)
		if _, err := d.RegisterInstall(ctx, tenant, api.Install{Install: "shop", CreatedAt: made}); err != nil {
			t.Fatalf("RegisterInstall: %v", err)
		}
		want := &api.Install{Install: "shop", Description: "of tests", CreatedAt: made}
		got, err := d.RegisterInstall(ctx, tenant, api.Install{Install: "shop", Description: "of tests", CreatedAt: api.NewMoment(3_600_000)})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("got error %v, difference (-want +got):\n%s", err, diff)
		}
		got, err = d.GetInstall(ctx, tenant, "shop")
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("GetInstall: got %+v and error %v, want %+v", got, err, want)
		}
		d.mustWrite(put("a", "1"))
		d.path.Install = "shop"
		d.mustWrite(put("a", "1"))
		d.path.Namespace = "other"
		d.fill(30)
		items, next, err := d.Installs(ctx, tenant, "", 1)
		if err != nil || next != "fn.payments.reconcile" || !cmp.Equal(items, []api.Install{{Install: next}}) {
			t.Errorf("Installs, first page: got %+v, next %q and error %v, want %q with its id only", items, next, err, "fn.payments.reconcile")
		}
		items, next, err = d.Installs(ctx, tenant, next, 1)
		if err != nil || next != "" || !cmp.Equal(items, []api.Install{*want}) {
			t.Errorf("Installs, last page: got %+v, next %q and error %v, want %+v", items, next, err, *want)
		}
		for _, more := range []bool{true, true, false} {
			if _, left, err := d.DeleteInstall(ctx, tenant, "shop", 11); left != more || err != nil {
				t.Errorf("DeleteInstall: got more %v and error %v, want %v", left, err, more)
			}
		}
		if _, _, err := d.DeleteInstall(ctx, tenant, "shop", 11); api.ErrorCode(err) != api.CodeDocumentNotFound {
			t.Errorf("DeleteInstall: got %v; want CodeDocumentNotFound", err)
		}
		if _, err := d.GetInstall(ctx, tenant, "shop"); api.ErrorCode(err) != api.CodeDocumentNotFound {
			t.Errorf("GetInstall: got %v; want CodeDocumentNotFound", err)
		}
		d.audit("after all")
		if s := d.stored("after all"); s.tenant.Records != 1 {
			t.Errorf("tenant after the deletion: got %+v, want 1 record", s)
		}
		if known, err := storage.NewTenants(s).Exists(ctx, tenant); !known || err != nil {
			t.Errorf("Tenants.Exists: got the registry has no such tenant %v; want known and no error", err)
		}
	})
}

// TestTheCursorKeyIsOne for all processes, however they start.
func TestTheCursorKeyIsOne(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		keys := make([][]byte, 8)
		for _, err := range storagetest.Concurrently(len(keys), func(i int) (err error) {
			keys[i], err = documents.NewRepository(s).CursorKey(t.Context())
			return err
		}) {
			if err != nil {
				t.Errorf("unexpected error: %v", err)
			}
		}
		for _, key := range keys {
			if len(key) != 32 || !bytes.Equal(key, keys[0]) {
				t.Errorf("cursor keys: got %x, want equal keys of 32 bytes", keys)
			}
		}
	})
}

// TestAnInstallInUseStays: who writes while an install is being deleted keeps it, and what
// was written can be found.
func TestAnInstallInUseStays(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	d := newHarness(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	late := *d
	late.path.Namespace = "late"
	other := storagetest.Open(t, storage.Config{URL: server.URL})
	other.Client().AddHook(&before{key: d.key(d.path.Install, "meta"), do: func() { late.mustWrite(put("a", "1")) }})
	d.mustWrite(put("a", "1"))
	if removed, more, err := documents.NewRepository(other).DeleteInstall(t.Context(), d.path.Tenant, d.path.Install, 10); removed != 1 || !more || err != nil {
		t.Errorf("DeleteInstall that is interrupted: got %d removed, more %v and error %v, want 1 and more", removed, more, err)
	}
	items, _, err := d.Installs(t.Context(), d.path.Tenant, "", 10)
	if err != nil || len(items) != 1 || items[0].Install != d.path.Install {
		t.Errorf("Installs after the interruption: got %+v and error %v, want only %s", items, err, d.path.Install)
	}
	d.audit("after all")
}

// before does something once before the first command that names a key.
type before struct {
	key  string
	do   func()
	once sync.Once
}

func (b *before) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (b *before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any(b.key)) {
			b.once.Do(b.do)
		}
		return next(ctx, cmd)
	}
}

// TestSchemasCountAsBytes: the bytes of schemas count against the quotas of bytes, until they are
// replaced by smaller ones or deleted. Those that an earlier release has set are counted by a
// recount.
func TestSchemasCountAsBytes(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d, ctx := newHarness(t, s), t.Context()
		set := func(p storage.DocumentPath, size int) string {
			t.Helper()
			_, err := d.SetSchema(ctx, p, bytes.Repeat([]byte("x"), size-64), d.q, d.now)
			return wrote(nil, err)
		}
		other := d.path
		other.Namespace = "other"
		d.q = documents.Quota{NamespaceBytes: 1_000, TenantBytes: 1_500}
		for _, step := range []struct {
			p    storage.DocumentPath
			size int
			want string
		}{
			{d.path, 1_001, "QUOTA_EXCEEDED namespace bytes 0/1000"},
			{d.path, 900, ""},
			{d.path, 1_000, ""},
			{other, 501, "QUOTA_EXCEEDED tenant bytes 1000/1500"},
			{d.path, 600, ""},
			{other, 900, ""},
			{d.path, 601, "QUOTA_EXCEEDED tenant bytes 1500/1500"},
		} {
			if got := set(step.p, step.size); got != step.want {
				t.Errorf("SetSchema of %d bytes in %q: got %q, want %q", step.size, step.p.Namespace, got, step.want)
			}
			d.audit("a schema was set")
		}
		if _, err := d.DeleteSchema(ctx, d.path); err != nil {
			t.Fatalf("DeleteSchema: %v", err)
		}
		d.audit("a schema was deleted")
		if _, more, err := d.Clear(ctx, other, 10); more || err != nil {
			t.Fatalf("Clear: got more %v and error %v, want neither", more, err)
		}
		d.audit("a namespace with a schema was deleted")
		// Expired documents leave room for a schema.
		d.mustWrite(until(d.now+1, put("a", `"`+strings.Repeat("x", 900)+`"`)))
		d.now++
		if got := set(d.path, 800); got != "" {
			t.Errorf("SetSchema in the room of an expired document: got %q, want success", got)
		}
		d.audit("an expired document was removed")

		if err := s.Client().Set(ctx, d.key(d.path.Install, d.path.Namespace, "schema"), strings.Repeat("x", 900), 0).Err(); err != nil { // by an earlier release
			t.Fatalf("Set: %v", err)
		}
		d.recount()
		d.audit("a recount")
	})
}

// TestNamespacesOfATenantAreLimited: a tenant can have no more namespaces of documents, one after
// the other, than its limit, because their feeds and numbers of changes outlive them.
func TestNamespacesOfATenantAreLimited(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d, ctx := newHarness(t, s), t.Context()
		d.mustWrite(put("a", "1"))
		// An earlier release did not list the names.
		if err := s.Client().Del(ctx, d.key("names")).Err(); err != nil {
			t.Fatalf("Del: %v", err)
		}
		d.recount()
		quotastest.Limit(t, s, quota.TenantLimits{DocNamespaces: 3})
		if _, err := quotas.Count(ctx, s, d.path.Tenant); err != nil {
			t.Fatalf("Count: %v", err)
		}
		in := func(install, namespace string) *harness {
			other := *d
			other.path.Install, other.path.Namespace = install, namespace
			return &other
		}
		for _, name := range []string{"b", "c"} {
			other := in("install-"+name, "settings")
			other.mustWrite(put("a", "1"))
			if _, more, err := d.Clear(ctx, other.path, 10); more || err != nil {
				t.Fatalf("Clear: got more %v and error %v, want neither", more, err)
			}
		}
		another := in("install-d", "settings")
		for what, call := range map[string]func() error{
			"write":     func() error { _, err := another.write(put("a", "1")); return err },
			"SetSchema": func() error { _, err := d.SetSchema(ctx, another.path, []byte(`{}`), d.q, d.now); return err },
		} {
			var e *api.Error
			err := documents.Failure(call())
			if !errors.As(err, &e) || e.Code != api.CodeQuotaExceeded || e.Quota == nil || *e.Quota != (api.QuotaUse{Scope: "tenant", Unit: "document_namespaces", Limit: 3, Used: 3}) {
				t.Errorf("%s in a fourth namespace: got error %v, want %s with the limit", what, err, api.CodeQuotaExceeded)
			}
		}
		in("install-b", "settings").mustWrite(put("a", "1"))
		d.mustWrite(put("b", "1"))
		d.audit("after all")
	})
}
