// Package quotastest limits the tenants of stores in tests.
package quotastest

import (
	"testing"

	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/quotas"
)

// Limit makes the repositories of s keep limits, and returns the keeper.
func Limit(t testing.TB, s *storage.Store, limits quota.TenantLimits) *quotas.Keeper {
	t.Helper()
	k, err := quotas.New(t.Context(), s, quotas.Config{Defaults: limits})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	s.LimitBy(k)
	return k
}
