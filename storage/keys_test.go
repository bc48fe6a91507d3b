package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeys pins every key, letter for letter: stored data depends on them.
func TestKeys(t *testing.T) {
	t.Parallel()
	all := func(k Keys) []string {
		f := k.function("t_abc123", "payments", "reconcile")
		d := k.Documents(DocumentPath{"t_abc123", "fn.payments.reconcile", "settings"})
		jobs := (&Store{keys: k}).JobKeys("t_abc123")
		secret := (&Store{keys: k}).SecretKeys("t_abc123", "payments")
		kv := (&Store{keys: k}).KVKeys("t_abc123", "payments")
		return []string{
			keyTenants, k.ActivationSweeps(), k.Namespaces("t_abc123"), k.FunctionIndex("t_abc123", "payments"),
			f.meta(), f.versionSeq(), f.draft("drf_01H"), f.versions(), f.aliases(), f.alias("prod"),
			f.versionMeta(17), f.versionBundle(17),
			k.ActivationMeta("t_abc123", "uuid"), k.ActivationResult("t_abc123", "uuid"),
			k.ActivationIndex("t_abc123", "payments", "reconcile"),
			k.FunctionCalls("t_abc123", "payments", "reconcile", 20000), k.FunctionFailure("t_abc123", "payments", "reconcile"),
			k.LogChunk("t_abc123", "uuid", 3), k.LogChunks("t_abc123", "uuid"), kv.Value("a:{b}"),
			kv.Index(), kv.Expiry(), kv.Sizes(), kv.Usage(), k.DomainOwners(), k.Domain("t_abc123", "shop.example.com"), k.DomainIndex("t_abc123"), k.QuotaLimits("t_abc123"), k.QuotaUse("t_abc123"), k.QuotaRates("t_abc123"),
			k.QuotaDrafts("t_abc123"), k.QuotaDraftSizes("t_abc123"), k.UsageDay("t_abc123", 20000),
			k.APIKeyTenants(), k.APIKeyBootstrap(), k.APIKey("5e884898"), k.APIKeySet("t_abc123"), k.APIKeySet("*"), k.Audit("t_abc123"), k.Audit("*"), k.Refusals("t_abc123"),
			d.Records(), d.Index(), d.Expiry(), d.Changes(), d.Schema(),
			k.DocumentUsage("t_abc123", "usage"), k.DocumentNamespaces("t_abc123", "usage"), k.DocumentInstallMeta("t_abc123", "usage"),
			k.DocumentTenantUsage("t_abc123"), k.DocumentInstalls("t_abc123"), k.DocumentNames("t_abc123"), k.DocumentExpiring("t_abc123"), keyDocumentTenants, k.DocumentCursorKey(),
			secret.Record("DB.url"), secret.Index(), secret.Floor(),
			jobs.Batch("uuid"), jobs.Batches("payments"), jobs.BatchEnds("payments"),
			jobs.Steps("uuid"), jobs.Waiters("payments", "paid"), jobs.Worker("w1"), jobs.WorkerQueues("w1"), jobs.Workers(), jobs.Budgets(), jobs.HeldBy("b1"),
		}
	}
	plain := []string{
		"cs:tenants", "cs:sweep:act", "cs:tenant:t_abc123:namespaces", "cs:fn:t_abc123:payments:index",
		"cs:fn:t_abc123:payments:reconcile:meta", "cs:fn:t_abc123:payments:reconcile:version_seq",
		"cs:fn:t_abc123:payments:reconcile:draft:drf_01H", "cs:fn:t_abc123:payments:reconcile:versions",
		"cs:fn:t_abc123:payments:reconcile:aliases", "cs:fn:t_abc123:payments:reconcile:alias:prod",
		"cs:fn:t_abc123:payments:reconcile:ver:17:meta", "cs:fn:t_abc123:payments:reconcile:ver:17:bundle",
		"cs:act:t_abc123:uuid:meta", "cs:act:t_abc123:uuid:result", "cs:act:t_abc123:payments:reconcile:index",
		"cs:fn:t_abc123:payments:reconcile:calls:20000", "cs:fn:t_abc123:payments:reconcile:failure",
		"cs:log:t_abc123:uuid:3", "cs:log:t_abc123:uuid:chunks", "cs:kv:t_abc123:payments:a:{b}",
		"cs:kvindex:t_abc123:payments", "cs:kvindex:t_abc123:payments:expiry", "cs:kvindex:t_abc123:payments:sizes", "cs:kvusage:t_abc123",
		"cs:domain:owners", "cs:domain:t_abc123:shop.example.com", "cs:domain:t_abc123:index",
		"cs:quota:t_abc123:limits", "cs:quota:t_abc123:use", "cs:quota:t_abc123:rates", "cs:quota:t_abc123:drafts", "cs:quota:t_abc123:draftsizes", "cs:usage:t_abc123:20000",
		"cs:keys:tenants", "cs:keys:bootstrap", "cs:key:5e884898", "cs:keys:t_abc123", "cs:keys:*", "cs:audit:t_abc123", "cs:audit:*", "cs:refusals:t_abc123",
		"cs:doc:t_abc123:fn.payments.reconcile:settings:records", "cs:doc:t_abc123:fn.payments.reconcile:settings:index",
		"cs:doc:t_abc123:fn.payments.reconcile:settings:expiry", "cs:doc:t_abc123:fn.payments.reconcile:settings:changes",
		"cs:doc:t_abc123:fn.payments.reconcile:settings:schema",
		"cs:doc:t_abc123:usage:usage", "cs:doc:t_abc123:usage:namespaces", "cs:doc:t_abc123:usage:meta",
		"cs:doc:t_abc123:usage", "cs:doc:t_abc123:installs", "cs:doc:t_abc123:names", "cs:doc:t_abc123:expiring", "cs:doc:tenants", "cs:doc:cursorkey",
		"cs:secret:t_abc123:payments:DB.url", "cs:secrets:t_abc123:payments", "cs:secrets:t_abc123:payments:floor",
		"cs:batch:t_abc123:uuid", "cs:batches:t_abc123:payments", "cs:batches:t_abc123:payments:ends",
		"cs:job:t_abc123:uuid:steps", "cs:waiters:t_abc123:payments:paid", "cs:worker:t_abc123:w1", "cs:workerqueues:t_abc123:w1", "cs:workers:t_abc123", "cs:budgets:t_abc123", "cs:budgets:t_abc123:b1:held",
	}
	if d := cmp.Diff(plain, all(Keys{})); d != "" {
		t.Errorf("plain keys differ (-want +got):\n%s", d)
	}
	tagged := []string{
		"cs:tenants", "cs:sweep:act", "cs:tenant:{t_abc123}:namespaces", "cs:fn:{t_abc123}:payments:index",
		"cs:fn:{t_abc123}:payments:reconcile:meta", "cs:fn:{t_abc123}:payments:reconcile:version_seq",
		"cs:fn:{t_abc123}:payments:reconcile:draft:drf_01H", "cs:fn:{t_abc123}:payments:reconcile:versions",
		"cs:fn:{t_abc123}:payments:reconcile:aliases", "cs:fn:{t_abc123}:payments:reconcile:alias:prod",
		"cs:fn:{t_abc123}:payments:reconcile:ver:17:meta", "cs:fn:{t_abc123}:payments:reconcile:ver:17:bundle",
		"cs:act:{t_abc123}:uuid:meta", "cs:act:{t_abc123}:uuid:result", "cs:act:{t_abc123}:payments:reconcile:index",
		"cs:fn:{t_abc123}:payments:reconcile:calls:20000", "cs:fn:{t_abc123}:payments:reconcile:failure",
		"cs:log:{t_abc123}:uuid:3", "cs:log:{t_abc123}:uuid:chunks", "cs:kv:{t_abc123}:payments:a:{b}",
		"cs:kvindex:{t_abc123}:payments", "cs:kvindex:{t_abc123}:payments:expiry", "cs:kvindex:{t_abc123}:payments:sizes", "cs:kvusage:{t_abc123}",
		"cs:domain:owners", "cs:domain:{t_abc123}:shop.example.com", "cs:domain:{t_abc123}:index",
		"cs:quota:{t_abc123}:limits", "cs:quota:{t_abc123}:use", "cs:quota:{t_abc123}:rates", "cs:quota:{t_abc123}:drafts", "cs:quota:{t_abc123}:draftsizes", "cs:usage:{t_abc123}:20000",
		"cs:keys:tenants", "cs:keys:bootstrap", "cs:key:5e884898", "cs:keys:{t_abc123}", "cs:keys:{*}", "cs:audit:{t_abc123}", "cs:audit:{*}", "cs:refusals:{t_abc123}",
		"cs:doc:{t_abc123}:fn.payments.reconcile:settings:records", "cs:doc:{t_abc123}:fn.payments.reconcile:settings:index",
		"cs:doc:{t_abc123}:fn.payments.reconcile:settings:expiry", "cs:doc:{t_abc123}:fn.payments.reconcile:settings:changes",
		"cs:doc:{t_abc123}:fn.payments.reconcile:settings:schema",
		"cs:doc:{t_abc123}:usage:usage", "cs:doc:{t_abc123}:usage:namespaces", "cs:doc:{t_abc123}:usage:meta",
		"cs:doc:{t_abc123}:usage", "cs:doc:{t_abc123}:installs", "cs:doc:{t_abc123}:names", "cs:doc:{t_abc123}:expiring", "cs:doc:tenants", "cs:doc:cursorkey",
		"cs:secret:{t_abc123}:payments:DB.url", "cs:secrets:{t_abc123}:payments", "cs:secrets:{t_abc123}:payments:floor",
		"cs:batch:{t_abc123}:uuid", "cs:batches:{t_abc123}:payments", "cs:batches:{t_abc123}:payments:ends",
		"cs:job:{t_abc123}:uuid:steps", "cs:waiters:{t_abc123}:payments:paid", "cs:worker:{t_abc123}:w1", "cs:workerqueues:{t_abc123}:w1", "cs:workers:{t_abc123}", "cs:budgets:{t_abc123}", "cs:budgets:{t_abc123}:b1:held",
	}
	if d := cmp.Diff(tagged, all(Keys{hashTags: true})); d != "" {
		t.Errorf("tagged keys differ (-want +got):\n%s", d)
	}
}
