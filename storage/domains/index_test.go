package domains_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/domains"
	"github.com/codesous/sous/storage/storagetest"
)

// follow returns a view that follows the changes until the test ends.
func follow(t *testing.T, s *storage.Store) *domains.Index {
	t.Helper()
	x := domains.NewIndex(domains.New(s), nil)
	ctx, end := context.WithCancel(context.Background())
	if err := s.Subscribe(ctx, x.OnChange); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	if err := x.Read(ctx); err != nil {
		t.Fatalf("Read: %v", err)
	}
	var running sync.WaitGroup
	running.Go(func() { x.Follow(ctx, zap.NewNop()) })
	t.Cleanup(func() { end(); running.Wait() })
	return x
}

// TestIndexFollows: a view follows what other processes change.
func TestIndexFollows(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, r, one, two, name, z := t.Context(), domains.New(s), storagetest.Tenant(t), storagetest.Tenant(t), name(), &zone{}
		x := follow(t, s)
		served := func(want *domains.Found) {
			t.Helper()
			storagetest.Eventually(t, func() bool {
				got := x.Of(name)
				return got == nil && want == nil || got != nil && want != nil && *got == *want
			})
		}
		first, second := add(t, r, one, name), add(t, r, two, name)
		z.set(second.Record.Value)
		verify(t, r, two, name, z, "")
		served(&domains.Found{Tenant: two, Target: shop})
		other := domain.Target{Namespace: "pay", Function: "till", Version: 2}
		if _, _, err := r.Put(ctx, two, name, other, "x", domains.Condition{}, 2); err != nil {
			t.Fatalf("Put: %v", err)
		}
		served(&domains.Found{Tenant: two, Target: other})
		// A change of a tenant that only claims the domain changes nothing.
		if _, _, err := r.Put(ctx, one, name, other, "x", domains.Condition{}, 2); err != nil {
			t.Fatalf("Put: %v", err)
		}
		z.set(first.Record.Value)
		verify(t, r, one, name, z, "")
		served(&domains.Found{Tenant: one, Target: other})
		if err := r.Delete(ctx, one, name, nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		served(nil)
	})
}

// TestIndexIsComplete: a view that hears of no change finds all domains, and only the verified
// ones; it removes owners whose claims are gone.
func TestIndexIsComplete(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	ctx, r, tenant, z := t.Context(), domains.New(s), storagetest.Tenant(t), &zone{}
	x := domains.NewIndex(r, domain.Reserved{"platform.example"})
	read := func() {
		t.Helper()
		if err := x.Read(ctx); err != nil {
			t.Fatalf("Read: %v", err)
		}
	}
	read()
	if !x.Empty() || x.Of("d1.example.com") != nil {
		t.Error("a view of an empty store is not empty, want empty")
	}
	const n = 700 // several steps
	for i := range n {
		name := fmt.Sprintf("d%d.example.com", i)
		z.set(add(t, r, tenant, name).Record.Value)
		if i != 5 {
			verify(t, r, tenant, name, z, "")
		}
	}
	z.set(add(t, r, tenant, "api.platform.example").Record.Value)
	verify(t, r, tenant, "api.platform.example", z, "")
	read()
	for i := range n {
		if found := x.Of(fmt.Sprintf("d%d.example.com", i)); (found != nil) != (i != 5) || found != nil && *found != (domains.Found{Tenant: tenant, Target: shop}) {
			t.Errorf("domain %d: got %+v, want the function, unless it is the pending one", i, found)
		}
	}
	for _, host := range []string{"api.platform.example", "d1.example.com.", "xd1.example.com", "d1.example.com.evil.example", "D1.example.com", "d1.example.com:80", ""} {
		if found := x.Of(host); found != nil {
			t.Errorf("Of(%q) = %+v, want nil", host, found)
		}
	}
	// A claim that went without its owner, and one whose domain was added again.
	for _, name := range []string{"d1.example.com", "d2.example.com"} {
		s.Client().Del(ctx, s.Keys().Domain(tenant, name))
	}
	add(t, r, tenant, "d2.example.com")
	read()
	for _, name := range []string{"d1.example.com", "d2.example.com"} {
		if x.Of(name) != nil || s.Client().HExists(ctx, s.Keys().DomainOwners(), name).Val() {
			t.Errorf("%s without its claim: got %+v, want it neither served nor owned", name, x.Of(name))
		}
	}
	// Records of a newer release: the host is claimed, and has no function.
	s.Client().Set(ctx, s.Keys().Domain(tenant, "d3.example.com"), `[3]`, 0)
	s.Client().HSet(ctx, s.Keys().DomainOwners(), "d4.example.com", `[4]`)
	s.Client().HDel(ctx, s.Keys().DomainOwners(), "d6.example.com")
	read()
	for _, name := range []string{"d3.example.com", "d4.example.com"} {
		if found := x.Of(name); found == nil || found.Function != "" {
			t.Errorf("%s with a record that cannot be read: got %+v, want a claimed host without a function", name, found)
		}
	}
	if x.Of("d6.example.com") != nil {
		t.Error("a domain without an owner is served, want it gone")
	}
}

// TestIndexSurvivesAnOutage: while the store does not answer, the view stays as it was.
func TestIndexSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	r, tenant, name, z := domains.New(s), storagetest.Tenant(t), name(), &zone{}
	x := follow(t, s)
	z.set(add(t, r, tenant, name).Record.Value)
	verify(t, r, tenant, name, z, "")
	storagetest.Eventually(t, func() bool { return x.Of(name) != nil })
	server.Kill()
	x.OnChange(storage.Change{Kind: storage.ChangeDomain, Domain: name})
	if _, err := r.Get(t.Context(), tenant, name); api.ErrorCode(err) != api.CodeStoreUnavailable || x.Of(name) == nil {
		t.Errorf("without a store: got error %v, served %+v, want %s and the view as it was", err, x.Of(name), api.CodeStoreUnavailable)
	}
	server.Start(t)
	storagetest.Eventually(t, func() bool { return s.Client().FlushDB(context.Background()).Err() == nil }) // KVRocks keeps its data
	storagetest.Eventually(t, func() bool { return x.Of(name) == nil })
}
