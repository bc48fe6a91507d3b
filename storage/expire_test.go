package storage_test

import (
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
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
					late.aliases, late.activations = storage.NewAliases(expiring), activations.New(expiring)
					switch err := call(&late); {
					case err == nil && len(mortal) == 0:
						done(t, f)
					case err == nil:
					case !isOneOf(api.ErrorCode(err), gone) && err.Error() != "lost against itself":
						t.Errorf("%s, expired before command %d: got error %v, want success or one of the codes %v", name, k, err, gone)
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
