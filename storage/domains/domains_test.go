package domains_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/domains"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
)

// zone is a DNS zone with one name of TXT records.
type zone struct {
	mu     sync.Mutex
	values []string
	asked  int
	before func() // called in each lookup, before the values are read
}

func (z *zone) set(values ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.values = values
}

func (z *zone) lookup(context.Context, string) ([]string, error) {
	if z.before != nil {
		z.before()
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	return slices.Clone(z.values), nil
}

var shop = domain.Target{Namespace: "default", Function: "shop", Alias: "prod"}

// name is a domain of the test's own: the owners of a store are shared by all tests.
func name() string { return "d" + uuid.NewString() + ".example.com" }

// add adds a domain with a new token.
func add(t *testing.T, r *domains.Repository, tenant, name string) domain.Domain {
	t.Helper()
	d, created, err := r.Put(t.Context(), tenant, name, shop, uuid.NewString(), domains.Condition{}, 1)
	if err != nil || !created || d.State != domain.Pending {
		t.Fatalf("Put: got %+v, created %v, error %v, want a new pending domain", d, created, err)
	}
	return d
}

func verify(t *testing.T, r *domains.Repository, tenant, name string, z *zone, want api.Code) domain.Domain {
	t.Helper()
	d, err := r.Verify(t.Context(), tenant, name, z.lookup, 5)
	if api.ErrorCode(err) != want || err == nil && (d.State != domain.Verified || d.VerifiedAtMS == 0) {
		t.Fatalf("Verify of %s for %s: got %+v, error %v, want code %q", name, tenant, d, err, want)
	}
	return d
}

func state(t *testing.T, r *domains.Repository, tenant, name, want string) {
	t.Helper()
	d, err := r.Get(t.Context(), tenant, name)
	if err != nil || d.State != want {
		t.Errorf("Get of %s for %s: got %+v, error %v, want state %s", name, tenant, d, err, want)
	}
}

// TestLife: a domain is added, verified, led to another function, listed and removed.
func TestLife(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, r, tenant, name, z := t.Context(), domains.New(s), storagetest.Tenant(t), name(), &zone{}
		added := add(t, r, tenant, name)
		if added.Record.Name != "_sous-challenge."+name || added.Record.Type != "TXT" || !strings.HasPrefix(added.Record.Value, "sous-domain-verification=") {
			t.Errorf("got record %+v, want a TXT record of the challenge", added.Record)
		}
		z.set("v=spf1 -all", strings.Repeat("x", 300)+"\x1b[31m", "3", "4", "5", "6", "7")
		_, err := r.Verify(ctx, tenant, name, z.lookup, 5)
		for _, part := range []string{added.Record.Name, added.Record.Value, "v=spf1 -all", "and 2 more"} {
			if api.ErrorCode(err) != api.CodeDomainUnverified || !strings.Contains(err.Error(), part) {
				t.Errorf("Verify without the record: got error %v, want %s with %q", err, api.CodeDomainUnverified, part)
			}
		}
		if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 1500 {
			t.Errorf("got the error %v, want the values of the zone quoted and bounded", err)
		}
		z.set("other", added.Record.Value)
		verified := verify(t, r, tenant, name, z, "")
		asked := z.asked
		verify(t, r, tenant, name, z, "")
		if z.asked != asked {
			t.Error("Verify of a verified domain looked the record up again, want no lookup")
		}
		to := domain.Target{Namespace: "default", Function: "other", Version: 3}
		changed, created, err := r.Put(ctx, tenant, name, to, "another token", domains.Condition{IfMatch: &verified.Revision}, 9)
		if err != nil || created || changed.State != domain.Verified || changed.Target != to || changed.Record != added.Record || changed.Revision != 2 || changed.UpdatedAtMS != 9 {
			t.Errorf("Put of another target: got %+v, created %v, error %v, want the same record, verified, at revision 2", changed, created, err)
		}
		same, _, err := r.Put(ctx, tenant, name, to, "x", domains.Condition{}, 10)
		if d := cmp.Diff(changed, same); d != "" || err != nil {
			t.Errorf("Put of the same target: got error %v, record differs (-want +got):\n%s", err, d)
		}
		for _, on := range []domains.Condition{{IfMatch: &verified.Revision}, {IfNew: true}} {
			if _, _, err := r.Put(ctx, tenant, name, shop, "x", on, 10); api.ErrorCode(err) != api.CodePreconditionFailed {
				t.Errorf("Put on %+v: got error %v, want %s", on, err, api.CodePreconditionFailed)
			}
		}
		if err := r.Delete(ctx, tenant, name, &verified.Revision); api.ErrorCode(err) != api.CodePreconditionFailed {
			t.Errorf("Delete of another revision: got error %v, want %s", err, api.CodePreconditionFailed)
		}
		items, next, err := r.List(ctx, tenant, "", 10)
		if d := cmp.Diff([]domain.Domain{changed}, items); d != "" || next != "" || err != nil {
			t.Errorf("List: next %q, error %v, difference (-want +got):\n%s", next, err, d)
		}
		if err := r.Delete(ctx, tenant, name, nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if s.Client().HExists(ctx, s.Keys().DomainOwners(), name).Val() {
			t.Error("the owner of a removed domain is stored, want none")
		}
		for op, err := range map[string]error{
			"Get":    func() error { _, err := r.Get(ctx, tenant, name); return err }(),
			"Delete": r.Delete(ctx, tenant, name, nil),
			"Verify": func() error { _, err := r.Verify(ctx, tenant, name, z.lookup, 5); return err }(),
			"Put": func() error {
				_, _, err := r.Put(ctx, tenant, name, shop, "x", domains.Condition{IfMatch: &changed.Revision}, 1)
				return err
			}(),
		} {
			if api.ErrorCode(err) != api.CodeDomainNotFound {
				t.Errorf("%s of a removed domain: got error %v, want %s", op, err, api.CodeDomainNotFound)
			}
		}
		// Added again, the domain has another token: the record in the zone verifies nothing.
		if again := add(t, r, tenant, name); again.Record == added.Record {
			t.Error("the domain was added again with the token that it had, want another")
		}
		verify(t, r, tenant, name, z, api.CodeDomainUnverified)
	})
}

// TestPages: a list has all domains, each once.
func TestPages(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		r, tenant := domains.New(s), storagetest.Tenant(t)
		var want, got []string
		for i := range 7 {
			want = append(want, fmt.Sprintf("d%d.example.com", i))
			add(t, r, tenant, want[i])
		}
		for after, pages := "", 0; ; pages++ {
			items, next, err := r.List(t.Context(), tenant, after, 3)
			if err != nil || pages > 3 {
				t.Fatalf("List: page %d, error %v, want three pages", pages, err)
			}
			for _, d := range items {
				got = append(got, d.Domain)
			}
			if next == "" {
				break
			}
			after = next
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("difference (-want +got):\n%s", d)
		}
	})
}

// TestClaimsDoNotSquat: a claim keeps no other tenant from the domain; its record alone decides.
func TestClaimsDoNotSquat(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		r, one, two, name, z := domains.New(s), storagetest.Tenant(t), storagetest.Tenant(t), name(), &zone{}
		first, second := add(t, r, one, name), add(t, r, two, name)
		if first.Record.Value == second.Record.Value {
			t.Fatalf("got %q for both tenants, want a value for each", first.Record.Value)
		}
		z.set(second.Record.Value)
		verify(t, r, one, name, z, api.CodeDomainUnverified) // the record of another tenant verifies nothing
		verify(t, r, two, name, z, "")
		state(t, r, one, name, domain.Pending)

		// Both records are there: the owner stays.
		z.set(second.Record.Value, first.Record.Value)
		_, err := r.Verify(t.Context(), one, name, z.lookup, 5)
		if api.ErrorCode(err) != api.CodeDomainTaken || !strings.Contains(err.Error(), second.Record.Value) || strings.Contains(err.Error(), two) {
			t.Errorf("Verify of a domain with an owner: got error %v, want %s with the owner's record, without its name", err, api.CodeDomainTaken)
		}
		state(t, r, two, name, domain.Verified)

		// The owner's record is gone: the other tenant proves its control and takes over.
		z.set(first.Record.Value)
		state(t, r, two, name, domain.Verified) // no tenant has verified since
		verify(t, r, one, name, z, "")
		state(t, r, two, name, domain.Pending)
		verify(t, r, two, name, z, api.CodeDomainUnverified)

		// The owner removes the domain: its record, still there, keeps no other tenant out.
		z.set(first.Record.Value, second.Record.Value)
		verify(t, r, two, name, z, api.CodeDomainTaken)
		if err := r.Delete(t.Context(), one, name, nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		verify(t, r, two, name, z, "")
	})
}

// TestEvidenceIsFresh: a record that was found before another tenant was verified decides nothing.
func TestEvidenceIsFresh(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		r, late, early, name, z := domains.New(s), storagetest.Tenant(t), storagetest.Tenant(t), name(), &zone{}
		slow, quick := add(t, r, late, name), add(t, r, early, name)
		asked := 0
		_, err := r.Verify(t.Context(), late, name, func(context.Context, string) ([]string, error) {
			asked++
			if asked > 1 {
				return z.lookup(t.Context(), "")
			}
			z.set(quick.Record.Value) // the zone changes after the answer
			verify(t, r, early, name, z, "")
			return []string{slow.Record.Value}, nil
		}, 5)
		if asked != 2 || api.ErrorCode(err) != api.CodeDomainUnverified {
			t.Errorf("Verify: got error %v after %d lookups, want %s after a second lookup", err, asked, api.CodeDomainUnverified)
		}
		state(t, r, early, name, domain.Verified)
		state(t, r, late, name, domain.Pending)
	})
}

// TestOneOwner: of tenants that verify one domain at the same time, while the records of its zone
// change, exactly one owns it at any time, and never one whose record was not there.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		r, name, z := domains.New(s), name(), &zone{}
		const tenants, outsiders = 6, 2
		names, records := make([]string, tenants), make([]string, tenants)
		for i := range names {
			names[i] = storagetest.Tenant(t)
			records[i] = add(t, r, names[i], name).Record.Value
		}
		var verified atomic.Int64
		var running sync.WaitGroup
		for i := range tenants - outsiders {
			running.Go(func() {
				for range 15 {
					z.set(records[i], records[(i+1)%(tenants-outsiders)])
					_, err := r.Verify(context.Background(), names[i], name, z.lookup, 5)
					switch api.ErrorCode(err) {
					case "":
						verified.Add(1)
					case api.CodeDomainTaken, api.CodeDomainUnverified:
					default:
						t.Errorf("Verify: got error %v, want success, code %s or code %s", err, api.CodeDomainTaken, api.CodeDomainUnverified)
					}
				}
			})
		}
		for i := tenants - outsiders; i < tenants; i++ {
			running.Go(func() {
				for range 15 {
					if _, err := r.Verify(context.Background(), names[i], name, z.lookup, 5); api.ErrorCode(err) != api.CodeDomainUnverified {
						t.Errorf("Verify of a tenant without a record: got error %v, want %s", err, api.CodeDomainUnverified)
					}
				}
			})
		}
		running.Wait()
		owners := 0
		for i, tenant := range names {
			d, err := r.Get(t.Context(), tenant, name)
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			if d.State == domain.Verified {
				owners++
				if i >= tenants-outsiders {
					t.Errorf("a tenant without a record owns the domain: %+v, want none", d)
				}
			}
		}
		if owners != 1 || verified.Load() == 0 {
			t.Errorf("got %d owners after %d verifications, want exactly one owner", owners, verified.Load())
		}
	})
}

// TestAddAtTheSameTime: of concurrent additions by one tenant one creates, all answer the same
// token, and the quota is exact.
func TestAddAtTheSameTime(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			s := storagetest.Open(t, b.Config(t))
			quotastest.Limit(t, s, quota.TenantLimits{Domains: 3})
			r, tenant := domains.New(s), storagetest.Tenant(t)
			var created, refused atomic.Int64
			var values sync.Map
			storagetest.Concurrently(20, func(i int) error {
				d, made, err := r.Put(context.Background(), tenant, fmt.Sprintf("d%d.example.com", i%5), shop, uuid.NewString(), domains.Condition{}, 1)
				switch {
				case api.ErrorCode(err) == api.CodeTenantQuota:
					refused.Add(1)
				case err != nil:
					t.Errorf("Put: got error %v, want success or code %s", err, api.CodeTenantQuota)
				default:
					if was, ok := values.LoadOrStore(d.Domain, d.Record.Value); ok && was != d.Record.Value {
						t.Errorf("%s: got the values %v and %q, want one", d.Domain, was, d.Record.Value)
					}
					if made {
						created.Add(1)
					}
				}
				return nil
			})
			items, _, err := r.List(t.Context(), tenant, "", 10)
			if err != nil || len(items) > 3 || int(created.Load()) != len(items) || refused.Load() == 0 {
				t.Errorf("got %d domains, %d created and %d refused, error %v, want at most 3, each created once", len(items), created.Load(), refused.Load(), err)
			}
			for _, d := range items {
				if err := r.Delete(t.Context(), tenant, d.Domain, nil); err != nil {
					t.Fatalf("Delete: %v", err)
				}
			}
			for i := range 3 { // what was removed counts no more
				add(t, r, tenant, fmt.Sprintf("e%d.example.com", i))
			}
			_, _, err = r.Put(t.Context(), tenant, "e4.example.com", shop, "x", domains.Condition{}, 1)
			if api.ErrorCode(err) != api.CodeTenantQuota {
				t.Errorf("Put of a fourth domain: got error %v, want %s", err, api.CodeTenantQuota)
			}
			if n, err := quotas.Count(t.Context(), s, tenant); err != nil || n == 0 {
				t.Fatalf("Count: %d commands, error %v, want some", n, err)
			}
			used, err := quotas.Stored(t.Context(), s, tenant)
			if err != nil || used[quota.Domains] != 3 {
				t.Errorf("Stored: got %d domains, error %v, want 3", used[quota.Domains], err)
			}
		})
	}
}

// TestScriptsMayBeCutAfterAnyWrite interrupts the scripts after each of their writes, as a crash of
// KVRocks does. What remains is sound, and the repeated call completes it.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for op, call := range map[string]func(r *domains.Repository, tenant, name string, z *zone) error{
		"put": func(r *domains.Repository, tenant, name string, _ *zone) error {
			_, _, err := r.Put(ctx, tenant, name, domain.Target{Namespace: "default", Function: "other", Alias: "prod"}, "new", domains.Condition{}, 3)
			return err
		},
		"verify": func(r *domains.Repository, tenant, name string, z *zone) error {
			_, err := r.Verify(ctx, tenant, name, z.lookup, 5)
			return err
		},
		"delete": func(r *domains.Repository, tenant, name string, _ *zone) error {
			err := r.Delete(ctx, tenant, name, nil)
			if api.ErrorCode(err) == api.CodeDomainNotFound {
				err = nil // it went before the cut
			}
			return err
		},
	} {
		for _, b := range storagetest.AllBackends() {
			for _, there := range []bool{false, true} {
				if !there && op != "put" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%s", op, there, b.Name), func(t *testing.T) {
					t.Parallel()
					cfg := b.Config(t)
					s := storagetest.Open(t, cfg)
					for k := 0; k < 6; k++ {
						cfg.ScriptPrelude = storagetest.CutAfter(k)
						r, tenant, name, z := domains.New(s), storagetest.Tenant(t), name(), &zone{}
						if there {
							z.set(add(t, r, tenant, name).Record.Value)
						}
						if op == "delete" {
							verify(t, r, tenant, name, z, "")
						}
						err := call(domains.New(storagetest.Open(t, cfg)), tenant, name, z)
						if err == nil && k == 0 && op != "delete" {
							t.Fatal("it writes nothing, want a write")
						}
						if err != nil {
							if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
								t.Fatalf("got error %v, want the CUT of the prelude", err)
							}
							if _, _, err := r.List(t.Context(), tenant, "", 10); err != nil {
								t.Errorf("List after %d writes: got error %v, want none", k, err)
							}
							if err := call(r, tenant, name, z); err != nil {
								t.Errorf("again after %d writes: got error %v, want none", k, err)
							}
						}
						check(t, s, r, tenant, name, op)
						if err == nil {
							return
						}
					}
					t.Error("got more than five writes, want fewer")
				})
			}
		}
	}
}

// check examines a domain after op and its repetition.
func check(t *testing.T, s *storage.Store, r *domains.Repository, tenant, name, op string) {
	t.Helper()
	x := domains.NewIndex(r, nil)
	if err := x.Read(t.Context()); err != nil {
		t.Fatalf("Read: %v", err)
	}
	items, _, err := r.List(t.Context(), tenant, "", 10)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	entries, found, owned := s.Client().ZCard(t.Context(), s.Keys().DomainIndex(tenant)).Val(), x.Of(name), s.Client().HExists(t.Context(), s.Keys().DomainOwners(), name).Val()
	switch op {
	case "put":
		if len(items) != 1 || entries != 1 || items[0].Function != "other" || found != nil {
			t.Errorf("after put: got %+v, %d entries, served %+v, want the new target, pending", items, entries, found)
		}
	case "verify":
		if len(items) != 1 || items[0].State != domain.Verified || found == nil || found.Tenant != tenant {
			t.Errorf("after verify: got %+v, served %+v, want a verified domain", items, found)
		}
	case "delete":
		if len(items) != 0 || entries != 0 || found != nil || owned {
			t.Errorf("after delete: got %+v, %d entries, served %+v, owner %v, want nothing", items, entries, found, owned)
		}
	}
}

// TestLostReplies: a write whose reply was lost is sent again, and succeeds.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	network := &storagetest.ReplyLoser{Word: "evalsha"}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Hook: func(c redis.UniversalClient) { c.AddHook(network) }})
	r, tenant, name, z := domains.New(s), storagetest.Tenant(t), name(), &zone{}
	// The server has the scripts, so that no reply asks for their text.
	z.set(add(t, r, tenant, "other.example.com").Record.Value)
	verify(t, r, tenant, "other.example.com", z, "")
	lose := func(op string, call func() error) {
		t.Helper()
		network.Lose.Store(true)
		if err := call(); err != nil || network.Lose.Load() {
			t.Errorf("%s: got error %v, lost %v, want none after a lost reply", op, err, !network.Lose.Load())
		}
	}
	lose("Put", func() error {
		d, created, err := r.Put(t.Context(), tenant, name, shop, "token", domains.Condition{IfNew: true}, 1)
		z.set(d.Record.Value)
		if !created {
			t.Error("Put: got created false, want true")
		}
		return err
	})
	lose("Verify", func() error { _, err := r.Verify(t.Context(), tenant, name, z.lookup, 5); return err })
	lose("Delete", func() error { return r.Delete(t.Context(), tenant, name, nil) })
}
