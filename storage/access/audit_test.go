package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/storagetest"
)

func auditPages(t *testing.T, s *storage.Store, f access.AuditFilter) (all []api.AuditEvent, pages int) {
	t.Helper()
	for {
		items, next, err := access.NewAudit(s).List(t.Context(), f)
		if err != nil {
			t.Fatalf("Audit.List: %v", err)
		}
		if f.Limit > 0 && len(items) > f.Limit {
			t.Errorf("List: got %d events on a page, want at most %d", len(items), f.Limit)
		}
		all = append(all, items...)
		pages++
		f.Cursor = next
		if next == "" {
			return all, pages
		}
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		audit, tenant, ctx := access.NewAudit(s), storagetest.Tenant(t), t.Context()
		var want []api.AuditEvent
		for i := range 10 {
			e := api.AuditEvent{
				AtMS: int64(1000 + i), Sub: fmt.Sprintf("key_%d", i%2), Action: fmt.Sprintf("cs:function:%d", i%5), Method: "POST",
				Path: "/v1/tenants/" + tenant, Made: "it", Status: 403, Code: api.CodeAuthzDenied, RequestID: fmt.Sprintf("req_%d", i),
				Refused: true,
			}
			if i%3 == 0 {
				e.Status, e.Code, e.Refused = 200, "", false
			}
			if err := audit.Append(ctx, tenant, e); err != nil {
				t.Fatalf("audit.Append: %v", err)
			}
			want = append(want, e)
		}
		slices.Reverse(want)
		withoutIDs := cmpopts.IgnoreFields(api.AuditEvent{}, "ID")
		for _, limit := range []int{0, 1, 3, 10, 500} {
			got, _ := auditPages(t, s, access.AuditFilter{Tenant: tenant, Limit: limit})
			if d := cmp.Diff(want, got, withoutIDs); d != "" {
				t.Errorf("pages of %d differ (-want +got):\n%s", limit, d)
			}
		}
		for name, f := range map[string]access.AuditFilter{
			"action":  {Tenant: tenant, Action: "cs:function:3", Limit: 1},
			"sub":     {Tenant: tenant, Sub: "key_1", Limit: 2},
			"both":    {Tenant: tenant, Sub: "key_1", Action: "cs:function:2"},
			"none":    {Tenant: tenant, Action: "cs:function:none"},
			"refused": {Tenant: tenant, Refused: new(true), Limit: 2},
			"changes": {Tenant: tenant, Refused: new(false), Limit: 1},
			"all":     {Tenant: tenant, Sub: "key_1", Refused: new(true)},
		} {
			var filtered []api.AuditEvent
			for _, e := range want {
				if (f.Action == "" || e.Action == f.Action) && (f.Sub == "" || e.Sub == f.Sub) && (f.Refused == nil || e.Refused == *f.Refused) {
					filtered = append(filtered, e)
				}
			}
			got, _ := auditPages(t, s, f)
			if d := cmp.Diff(filtered, got, withoutIDs); d != "" {
				t.Errorf("%s: events differ (-want +got):\n%s", name, d)
			}
		}
		if got, _ := auditPages(t, s, access.AuditFilter{Tenant: storagetest.Tenant(t)}); len(got) != 0 {
			t.Errorf("audit of another tenant: got %+v, want no events", got)
		}
		for _, bad := range []string{"x", "1", "1-", "-1", "1-x", "+", "(1-1", "1-1-1", "_", "+_", "1-1_", "1-1_x", "1-1_1-1_1-1"} {
			if _, _, err := audit.List(ctx, access.AuditFilter{Tenant: tenant, Cursor: bad}); api.ErrorCode(err) != api.CodeValidationCursor {
				t.Errorf("cursor %q: %v; want CodeValidationCursor", bad, err)
			}
		}
	})
}

// A page looks at a bounded number of events, and the audit keeps as many as it
// says.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	const kept, more, rare = 10_000, 7, 10
	server := storagetest.Redis(t)
	client := storeClient(t, server.URL)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	tenant, ctx := storagetest.Tenant(t), t.Context()
	pipe := client.Pipeline()
	for i := range kept - rare {
		pipe.Do(ctx, "XADD", "cs:audit:"+tenant, "*", "at_ms", i, "sub", "local", "action", "often", "status", 200)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatalf("pipe.Exec: %v", err)
	}
	for i := range rare + more {
		if err := access.NewAudit(s).Append(ctx, tenant, api.AuditEvent{AtMS: int64(i), Action: "rare"}); err != nil {
			t.Fatalf("Audit.Append: %v", err)
		}
	}
	if n, err := client.XLen(ctx, "cs:audit:"+tenant).Result(); err != nil || n != kept {
		t.Errorf("got %d events kept and error %v, want %d", n, err, kept)
	}
	got, pages := auditPages(t, s, access.AuditFilter{Tenant: tenant, Action: "rare"})
	if len(got) != rare+more || pages != 5 {
		t.Errorf("got %d events on %d pages, want %d on 5", len(got), pages, rare+more)
	}
}

// TestRefusalsDisplaceNoChanges: they have a stream of their own, which is bounded as well.
func TestRefusalsDisplaceNoChanges(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	client := storeClient(t, server.URL)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	audit, tenant, ctx := access.NewAudit(s), storagetest.Tenant(t), t.Context()
	if err := audit.Append(ctx, tenant, api.AuditEvent{AtMS: 1, Action: "change", Status: 200}); err != nil {
		t.Fatalf("Audit.Append: %v", err)
	}
	pipe := client.Pipeline()
	for i := range 10_200 {
		pipe.Do(ctx, "XADD", "cs:refusals:"+tenant, "*", "at_ms", i, "action", "refused", "status", 403)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatalf("pipe.Exec: %v", err)
	}
	if err := audit.Append(ctx, tenant, api.AuditEvent{AtMS: 2, Action: "refused", Status: 403, Refused: true}); err != nil {
		t.Fatalf("Audit.Append: %v", err)
	}
	if n, err := client.XLen(ctx, "cs:refusals:"+tenant).Result(); err != nil || n != 10_000 {
		t.Errorf("got %d refusals kept and error %v, want 10000", n, err)
	}
	if got, _ := auditPages(t, s, access.AuditFilter{Tenant: tenant, Refused: new(false)}); len(got) != 1 || got[0].Action != "change" {
		t.Errorf("got changes %+v, want the one that was made before the refusals", got)
	}
}

// TestAuditIsKeptForATime: an older event is neither listed nor stored, once an event follows.
func TestAuditIsKeptForATime(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	client := storeClient(t, server.URL)
	tenant, ctx := storagetest.Tenant(t), t.Context()
	s := storagetest.Open(t, storage.Config{URL: server.URL, Audit: storage.Retention{Tenants: map[string]time.Duration{tenant: 48 * time.Hour}}})
	now := s.NowMS()
	for _, age := range []time.Duration{72 * time.Hour, 47 * time.Hour} {
		id := fmt.Sprintf("%d-0", now-age.Milliseconds())
		if err := client.Do(ctx, "XADD", "cs:audit:"+tenant, id, "at_ms", 1, "action", age.String(), "status", 200).Err(); err != nil {
			t.Fatalf("XADD: %v", err)
		}
	}
	if got, _ := auditPages(t, s, access.AuditFilter{Tenant: tenant}); len(got) != 1 || got[0].Action != "47h0m0s" {
		t.Errorf("got events %+v, want the one of the last 48 hours", got)
	}
	if err := access.NewAudit(s).Append(ctx, tenant, api.AuditEvent{AtMS: now, Action: "new"}); err != nil {
		t.Fatalf("Audit.Append: %v", err)
	}
	if n, err := client.XLen(ctx, "cs:audit:"+tenant).Result(); err != nil || n != 2 {
		t.Errorf("got %d events stored and error %v, want 2", n, err)
	}
	if ttl, err := client.PTTL(ctx, "cs:audit:"+tenant).Result(); err != nil || ttl < 47*time.Hour || ttl > 48*time.Hour {
		t.Errorf("got %v to the end of the stream and error %v, want 48h", ttl, err)
	}
}

// Events keep their ids, and keys their expiry, over a snapshot and over a kill
// that is followed by a pause.
func TestEmbeddedKeepsAuditAndKeys(t *testing.T) {
	t.Parallel()
	dir, killed := t.TempDir(), t.TempDir()
	s := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, dir)})
	ctx, tenant := t.Context(), storagetest.Tenant(t)
	const life, pause = 4 * time.Second, 2200 * time.Millisecond // counted twice, the pause would be the end
	add := func() (k api.Key) {
		t.Helper()
		if err := access.NewAudit(s).Append(ctx, tenant, api.AuditEvent{Action: "a"}); err != nil {
			t.Fatalf("Audit.Append: %v", err)
		}
		k, _ = createKey(t, s, tenant, func(k *api.Key) { k.ExpiresAtMS = s.NowMS() + life.Milliseconds() })
		return k
	}
	add()
	storagetest.Eventually(t, func() bool { // it is in a snapshot
		_, err := os.Stat(filepath.Join(dir, "store.journal.1"))
		return os.IsNotExist(err)
	})
	want := add()
	events, _ := auditPages(t, s, access.AuditFilter{Tenant: tenant})
	storagetest.Eventually(t, func() bool { return storagetest.CopyEmbedded(t, dir, killed) })
	over := time.Now().Add(pause)
	storagetest.Eventually(t, func() bool { return time.Now().After(over) })
	again := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, killed)})
	got, _ := auditPages(t, again, access.AuditFilter{Tenant: tenant})
	if d := cmp.Diff(events, got); d != "" || len(got) != 2 {
		t.Errorf("got %d events, want 2 (-want +got):\n%s", len(got), d)
	}
	k, err := access.NewAPIKeys(again).Get(ctx, tenant, want.ID)
	if err != nil {
		t.Fatalf("APIKeys.Get: %v", err)
	}
	if d := cmp.Diff(want, k); d != "" {
		t.Errorf("difference (-want +k):\n%s", d)
	}
}

// TestAuditOfOlderReleases: their entries have empty values, for which KVRocks replies
// nil. New entries have none.
func TestAuditOfOlderReleases(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	tenant, ctx := storagetest.Tenant(t), t.Context()
	err := storeClient(t, server.URL).XAdd(ctx, &redis.XAddArgs{Stream: "cs:audit:" + tenant, Values: []any{
		"at_ms", 1, "sub", "local", "action", "old", "method", "", "path", "", "made", "", "status", 200, "code", "", "request_id", "",
	}}).Err()
	if err := errors.Join(err, access.NewAudit(s).Append(ctx, tenant, api.AuditEvent{AtMS: 2, Action: "new"})); err != nil {
		t.Fatalf("errors.Join: %v", err)
	}
	got, _ := auditPages(t, s, access.AuditFilter{Tenant: tenant})
	if len(got) != 2 || got[0].Action != "new" || got[0].Sub != "" || got[1].Action != "old" || got[1].Sub != "local" || got[1].Status != 200 {
		t.Errorf("got %+v, want both events", got)
	}
}
