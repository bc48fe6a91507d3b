package providers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/storagetest"
)

// upstream returns the settings of a provider.
func upstream() ai.ProviderSettings {
	s := ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: "https://api.example.com/v1/", Secret: "KEY", Headers: map[string]string{"X-Team": "a"}}
	s.Normalize()
	return s
}

// route returns the settings of a route to providers.
func route(names ...string) ai.ProviderSettings {
	s := ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback}
	for _, name := range names {
		s.Targets = append(s.Targets, ai.RouteTarget{Provider: name})
	}
	return s
}

// must puts a provider.
func must(t *testing.T, r *providers.Repository, tenant, name string, s ai.ProviderSettings) *ai.Provider {
	t.Helper()
	p, _, err := r.Put(t.Context(), tenant, name, s, providers.Condition{}, 7)
	if err != nil {
		t.Fatalf("Put(%s): %v", name, err)
	}
	return p
}

func TestProviders(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, r, tenant := t.Context(), providers.New(s), storagetest.Tenant(t)
		p, created, err := r.Put(ctx, tenant, "main", upstream(), providers.Condition{IfNew: true}, 7)
		want := &ai.Provider{Name: "main", ProviderSettings: upstream(), Revision: 1, CreatedAtMS: 7, UpdatedAtMS: 7}
		if diff := cmp.Diff(want, p); err != nil || !created || diff != "" {
			t.Fatalf("Put: got created %v, error %v, difference (-want +got):\n%s", created, err, diff)
		}
		if p.BaseURL != "https://api.example.com/v1" || p.Secret != "default/KEY" || p.TimeoutMS != ai.DefaultTimeoutMS || p.Log != ai.LogOff {
			t.Errorf("got %+v, want it normalized", p.ProviderSettings)
		}
		if same := must(t, r, tenant, "main", upstream()); same.Revision != 1 {
			t.Errorf("the same settings: got revision %d, want 1", same.Revision)
		}
		changed := upstream()
		changed.RequestsPerMinute = 60
		if p := must(t, r, tenant, "main", changed); p.Revision != 2 || p.CreatedAtMS != 7 {
			t.Errorf("a change: got %+v, want revision 2 of the same provider", p)
		}
		must(t, r, tenant, "other", upstream())
		must(t, r, tenant, "way", route("main", "other"))
		for what, got := range map[string]error{
			string(api.CodePreconditionFailed) + " new":   second(r.Put(ctx, tenant, "main", upstream(), providers.Condition{IfNew: true}, 8)),
			string(api.CodePreconditionFailed) + " match": second(r.Put(ctx, tenant, "main", upstream(), providers.Condition{IfMatch: new(int64(1))}, 8)),
			string(api.CodeProviderNotFound) + " match":   second(r.Put(ctx, tenant, "ghost", upstream(), providers.Condition{IfMatch: new(int64(1))}, 8)),
			string(api.CodeProviderNotFound) + " target":  second(r.Put(ctx, tenant, "way2", route("main", "ghost"), providers.Condition{}, 8)),
			string(api.CodeProviderCycle) + " itself":     second(r.Put(ctx, tenant, "way", route("way"), providers.Condition{}, 8)),
			string(api.CodeProviderUsed) + " delete":      r.Delete(ctx, tenant, "main", nil),
			string(api.CodePreconditionFailed) + " gone":  r.Delete(ctx, tenant, "way", new(int64(7))),
			string(api.CodeProviderNotFound) + " gone":    r.Delete(ctx, tenant, "ghost", nil),
		} {
			code, _, _ := strings.Cut(what, " ")
			if api.ErrorCode(got) != api.Code(code) {
				t.Errorf("%s: got error %v, want code %s", what, got, code)
			}
		}
		must(t, r, tenant, "way2", route("way"))
		if err := second(r.Put(ctx, tenant, "way", route("main", "way2"), providers.Condition{}, 8)); api.ErrorCode(err) != api.CodeProviderCycle {
			t.Errorf("a cycle of two: got error %v, want code %s", err, api.CodeProviderCycle)
		}
		if err := r.Delete(ctx, tenant, "way2", nil); err != nil {
			t.Errorf("Delete: %v", err)
		}
		found, err := r.List(ctx, tenant)
		if err != nil || len(found) != 3 || found[0].Name != "main" || found[2].Name != "way" {
			t.Errorf("List: got %+v, %v, want main, other, way", found, err)
		}
		if _, err := r.Get(ctx, tenant, "way2"); api.ErrorCode(err) != api.CodeProviderNotFound {
			t.Errorf("Get of a deleted one: got error %v, want code %s", err, api.CodeProviderNotFound)
		}
	})
}

// second returns the error of a Put.
func second(_ *ai.Provider, _ bool, err error) error { return err }

// TestRacingPutsMakeNoCycle: routes that are changed at the same time do not lead to each other.
func TestRacingPutsMakeNoCycle(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		r, tenant := providers.New(s), storagetest.Tenant(t)
		must(t, r, tenant, "main", upstream())
		const n = 8
		for i := range n {
			must(t, r, tenant, fmt.Sprint("way", i), route("main"))
		}
		errs := storagetest.Concurrently(n, func(i int) error {
			return second(r.Put(context.Background(), tenant, fmt.Sprint("way", i), route("main", fmt.Sprint("way", (i+1)%n)), providers.Condition{}, 8))
		})
		failed := 0
		for _, err := range errs {
			if err != nil {
				failed++
			}
			if err != nil && api.ErrorCode(err) != api.CodeProviderCycle {
				t.Errorf("got error %v, want none or code %s", err, api.CodeProviderCycle)
			}
		}
		if failed == 0 {
			t.Error("got no refusal, want one: all together are a cycle")
		}
	})
}

func TestProviderLimit(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	r, tenant := providers.New(s), storagetest.Tenant(t)
	for i := range ai.MaxProviders {
		must(t, r, tenant, fmt.Sprint("p", i), upstream())
	}
	if err := second(r.Put(t.Context(), tenant, "more", upstream(), providers.Condition{}, 8)); api.ErrorCode(err) != api.CodeProviderLimit {
		t.Errorf("got error %v, want code %s", err, api.CodeProviderLimit)
	}
	must(t, r, tenant, "p1", upstream())
}

// TestScriptsMayBeCutAfterAnyWrite interrupts the scripts after each of their writes. What remains is
// sound, and the repeated call completes it.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	for _, b := range storagetest.AllBackends() {
		for name, call := range map[string]func(r *providers.Repository, tenant string) error{
			"put": func(r *providers.Repository, tenant string) error {
				return second(r.Put(context.Background(), tenant, "next", upstream(), providers.Condition{}, 8))
			},
			"delete": func(r *providers.Repository, tenant string) error {
				err := r.Delete(context.Background(), tenant, "main", nil)
				if api.ErrorCode(err) == api.CodeProviderNotFound {
					return nil
				}
				return err
			},
		} {
			t.Run(name+"/"+b.Name, func(t *testing.T) {
				t.Parallel()
				cfg := b.Config(t)
				whole := storagetest.Open(t, cfg)
				for k := 0; ; k++ {
					if k > 6 {
						t.Fatal("got more than 6 writes, want fewer")
					}
					cfg.ScriptPrelude = storagetest.CutAfter(k)
					r, tenant := providers.New(whole), storagetest.Tenant(t)
					must(t, r, tenant, "main", upstream())
					err := call(providers.New(storagetest.Open(t, cfg)), tenant)
					if err != nil && (errors.Unwrap(err) == nil || !strings.Contains(errors.Unwrap(err).Error(), "CUT")) {
						t.Fatalf("got error %v, want the CUT of the prelude", err)
					}
					if _, listErr := r.List(t.Context(), tenant); listErr != nil {
						t.Errorf("List after %d writes: %v", k, listErr)
					}
					if again := call(r, tenant); again != nil {
						t.Errorf("call again after %d writes: got error %v, want none", k, again)
					}
					found, _ := r.List(t.Context(), tenant)
					if want := map[string]int{"put": 2, "delete": 0}[name]; len(found) != want {
						t.Errorf("got %d providers after %d writes and a repeat, want %d", len(found), k, want)
					}
					if err == nil {
						return
					}
				}
			})
		}
	}
}

// registry returns a registry that follows the notices of a store.
func registry(t *testing.T, s *storage.Store) *providers.Registry {
	t.Helper()
	g, err := providers.NewRegistry(s)
	if err != nil {
		t.Fatalf("NewRegistry: %v", err)
	}
	if err := s.Subscribe(t.Context(), g.OnChange); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	return g
}

// TestCircuits: one overload opens the circuit of a provider on all replicas, for the time that the
// provider asks for; one call probes it then, and its success closes it everywhere.
func TestCircuits(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, tenant := t.Context(), storagetest.Tenant(t)
		must(t, providers.New(s), tenant, "main", upstream())
		one, other := registry(t, s), registry(t, s)
		sees := func(g *providers.Registry) providers.Circuit {
			v, err := g.View(ctx, tenant)
			if err != nil {
				t.Fatalf("View: %v", err)
			}
			return v.Circuit("main")
		}
		if c := sees(other); c != (providers.Circuit{}) {
			t.Fatalf("got %+v, want a closed circuit", c)
		}
		for range 2 { // not yet: it may be a single call that it cannot serve
			c, err := one.Failed(ctx, tenant, "main", providers.Failure{BeganMS: s.NowMS()})
			if err != nil || c.UntilMS != 0 {
				t.Fatalf("Failed: got %+v, %v, want a closed circuit", c, err)
			}
		}
		began := s.NowMS()
		c, err := one.Failed(ctx, tenant, "main", providers.Failure{BeganMS: began, RetryAfter: 200 * time.Millisecond, Overloaded: true})
		if err != nil || c.UntilMS < began+200 || c.Failures != 3 {
			t.Fatalf("Failed: got %+v, %v, want a circuit that is open for 200 ms, after 3 failures", c, err)
		}
		late, err := one.Failed(ctx, tenant, "main", providers.Failure{BeganMS: began - 1})
		if err != nil || late.Failures != 3 {
			t.Errorf("a call that began before: got %+v, %v, want 3 failures", late, err)
		}
		storagetest.Eventually(t, func() bool { return sees(other).UntilMS >= began+200 })
		if err := other.Succeeded(ctx, tenant, "main", began-1); err != nil || sees(one).UntilMS == 0 {
			t.Errorf("Succeeded of a call that began before: %v, got %+v, want an open circuit", err, sees(one))
		}
		if mine, _, err := one.Probe(ctx, tenant, "main"); err != nil || mine {
			t.Errorf("Probe while open: got %v, %v, want false", mine, err)
		}
		storagetest.Eventually(t, func() bool { return s.NowMS() > c.UntilMS })
		probes := 0
		for _, err := range storagetest.Concurrently(8, func(int) error {
			mine, _, err := one.Probe(context.Background(), tenant, "main")
			if mine {
				return errors.New("mine")
			}
			return err
		}) {
			if err != nil {
				probes++
			}
		}
		if probes != 1 {
			t.Errorf("got %d probes at the same time, want 1", probes)
		}
		if err := one.Succeeded(ctx, tenant, "main", s.NowMS()); err != nil {
			t.Fatalf("Succeeded: %v", err)
		}
		storagetest.Eventually(t, func() bool { return sees(other) == providers.Circuit{} })
	})
}

// TestCircuitsOfChangedProviders: a change of a provider closes its circuit, and a deleted one has none,
// also when a call of it ends later. A probe without a result makes room for another at once.
func TestCircuitsOfChangedProviders(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, tenant, r := t.Context(), storagetest.Tenant(t), providers.New(s)
		must(t, r, tenant, "main", upstream())
		g := registry(t, s)
		circuits := func() int {
			found, err := r.Circuits(ctx, tenant)
			if err != nil {
				t.Fatalf("Circuits: %v", err)
			}
			return len(found)
		}
		fails := func(wait time.Duration) providers.Circuit {
			c, err := g.Failed(ctx, tenant, "main", providers.Failure{BeganMS: s.NowMS(), RetryAfter: wait, Overloaded: true})
			if err != nil {
				t.Fatalf("Failed: %v", err)
			}
			return c
		}
		fails(time.Minute)
		changed := upstream()
		changed.Models = []string{"m1"}
		if n := circuits(); n != 1 {
			t.Fatalf("got %d circuits after a failure, want 1", n)
		}
		must(t, r, tenant, "main", changed)
		if n := circuits(); n != 0 {
			t.Errorf("got %d circuits after a change, want none", n)
		}
		until := fails(time.Millisecond).UntilMS
		storagetest.Eventually(t, func() bool { return s.NowMS() > until })
		mine, probe, err := g.Probe(ctx, tenant, "main")
		if !mine || err != nil {
			t.Fatalf("Probe: got %v, %v, want true", mine, err)
		}
		if err := g.Release(ctx, tenant, "main", providers.Circuit{UntilMS: until}); err != nil {
			t.Errorf("Release of an earlier probe: %v", err)
		}
		if mine, _, err := g.Probe(ctx, tenant, "main"); mine || err != nil {
			t.Errorf("Probe during another: got %v, %v, want false", mine, err)
		}
		if err := g.Release(ctx, tenant, "main", probe); err != nil {
			t.Errorf("Release: %v", err)
		}
		if mine, _, err := g.Probe(ctx, tenant, "main"); !mine || err != nil {
			t.Errorf("Probe after the release: got %v, %v, want true", mine, err)
		}
		if err := r.Delete(ctx, tenant, "main", nil); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		fails(time.Minute)
		if n := circuits(); n != 0 {
			t.Errorf("got %d circuits after a failure of a deleted provider, want none", n)
		}
	})
}
