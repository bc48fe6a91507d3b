package vault

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/codesous/sous/storage/secrets"
)

// TestVaultHoldsItsBudget: a tenant with many versions displaces its own, the ones used least
// recently, and no version of another tenant.
func TestVaultHoldsItsBudget(t *testing.T) {
	t.Parallel()
	const valueBytes = 64 << 10
	v := &Vault{shared: newSharedRedactors(), budget: 1 << 20, entries: map[Version]*entry{}}
	read := func(tenant string, n int) Version {
		name := Version{tenant, "default", "f", int64(n)}
		values := []secrets.Value{{Text: bytes.Repeat(fmt.Appendf(nil, "%s-%04d-", tenant, n), valueBytes/14)}}
		one := v.shared.of(values, func(texts []string) *redactor { return newRedactor(texts, nil) })
		v.mu.Lock()
		defer v.mu.Unlock()
		e := v.find(name, []string{"a"})
		e.now = &generation{values: values, shared: one, redactor: one.redactor, holders: 1}
		v.trim(name)
		return name
	}
	small := read("small", 1)
	var last Version
	for n := range 60 {
		last = read("large", n)
		if held := v.bytes(); held > v.budget {
			t.Fatalf("after %d versions: got %d bytes, want at most %d", n+1, held, v.budget)
		}
	}
	if v.entries[small] == nil || v.entries[last] == nil || len(v.entries) < 10 || len(v.shared.known) != len(v.entries) {
		t.Errorf("got %d versions and %d redactors, want the budget used, with the other tenant's version and the last one",
			len(v.entries), len(v.shared.known))
	}
	v.janitor.Stop()
	for name, e := range v.entries {
		v.evict(name, e)
	}
	if held := v.bytes(); held != 0 {
		t.Errorf("without versions: got %d bytes, want 0", held)
	}
}

// TestVaultCountsVersionsByTenant: beyond the number of versions, too, a tenant displaces its own.
func TestVaultCountsVersionsByTenant(t *testing.T) {
	t.Parallel()
	v := &Vault{shared: newSharedRedactors(), budget: 1 << 20, entries: map[Version]*entry{}, janitor: time.NewTimer(time.Hour)}
	v.find(Version{Tenant: "small"}, nil)
	for n := range 2 * maxEntries {
		v.find(Version{Tenant: "large", Version: int64(n)}, nil)
	}
	if len(v.entries) > maxEntries || v.entries[Version{Tenant: "small"}] == nil {
		t.Errorf("got %d versions, want at most %d with the other tenant's", len(v.entries), maxEntries)
	}
}
