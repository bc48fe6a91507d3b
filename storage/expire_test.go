package storage_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// expireCommands is more than a script of this package executes.
const expireCommands = 16

// TestKeysMayExpireWithinScripts lets keys with a time-to-live expire before each
// command of the scripts, as the clock of KVRocks does: no call fails otherwise than
// because what it needs is gone, and none leaves a part that stays for ever.
func TestKeysMayExpireWithinScripts(t *testing.T) {
	t.Parallel()
	gone := []api.Code{api.CodeDraftNotFound, api.CodeDraftExpired, api.CodeDraftConsumed, api.CodeActivationNotFound}
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			for k := 1; k <= expireCommands; k++ {
				cfg.ScriptPrelude = storagetest.ExpireBefore(k)
				expiring := storagetest.Open(t, cfg)
				for name, op := range cutOperations() {
					f := newFixture(t, whole)
					call, done := op(t, f)
					mortal := storagetest.ShortLived(t, whole.Client(), "*"+f.fn.Tenant+"*")
					late := *f
					late.Store, late.functions, late.versions = expiring, storage.NewFunctions(expiring), storage.NewVersions(expiring)
					late.aliases, late.activations = storage.NewAliases(expiring), storage.NewActivations(expiring)
					switch err := call(&late); {
					case err == nil && len(mortal) == 0:
						done(t, f)
					case err == nil:
					case !isOneOf(api.ErrorCode(err), gone) && err.Error() != "lost against itself":
						t.Errorf("%s, expired before command %d: %v", name, k, err)
					}
					storagetest.Expire(t, whole.Client(), mortal)
					if _, err := f.functions.Get(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name); err == nil {
						checkFunction(t, f)
					}
				}
			}
		})
	}
}

func isOneOf(code api.Code, codes []api.Code) bool {
	for _, c := range codes {
		if code == c {
			return true
		}
	}
	return false
}

// TestFeedsMayExpireWhereNamespacesComeAgain: the feed of a deleted namespace expires
// while its successor is registered.
func TestFeedsMayExpireWhereNamespacesComeAgain(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			for k := 1; k <= expireCommands; k++ {
				cfg.ScriptPrelude = storagetest.ExpireBefore(k)
				d := newDocuments(t, whole)
				d.mustWrite(put("a", "1"))
				if _, more, err := d.Clear(t.Context(), d.path, 10); more || err != nil {
					t.Fatal(more, err)
				}
				if feeds := storagetest.ShortLived(t, whole.Client(), "*"+d.path.Tenant+"*"); len(feeds) != 1 {
					t.Fatalf("got the keys %v with a time-to-live, want the feed", feeds)
				}
				late := *d
				late.Documents = storage.NewDocuments(storagetest.Open(t, cfg))
				if _, err := late.write(put("b", "2")); err != nil {
					t.Errorf("expired before command %d: %v", k, err)
				}
				if feed := d.changes(2, 10); len(feed.Changes) != 1 || feed.Changes[0].Key != "b" {
					t.Errorf("expired before command %d: got %+v, want the change of b", k, feed)
				}
				if mortal := storagetest.ShortLived(t, whole.Client(), "*"+d.path.Tenant+"*"); len(mortal) > 0 {
					t.Errorf("expired before command %d: %v would expire", k, mortal)
				}
				d.audit("registered while the feed expired")
			}
		})
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
	if err := errors.Join(err, storage.NewAudit(s).Append(ctx, tenant, api.AuditEvent{AtMS: 2, Action: "new"})); err != nil {
		t.Fatal(err)
	}
	got, _ := auditPages(t, s, storage.AuditFilter{Tenant: tenant})
	if len(got) != 2 || got[0].Action != "new" || got[0].Sub != "" || got[1].Action != "old" || got[1].Sub != "local" || got[1].Status != 200 {
		t.Errorf("got %+v, want both events", got)
	}
}
