package providers_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/storagetest"
)

// limitedTo returns a provider with limits a minute.
func limitedTo(requests, input, output int64) *ai.Provider {
	p := &ai.Provider{Name: "main", ProviderSettings: upstream()}
	p.RequestsPerMinute, p.InputTokensPerMinute, p.OutputTokensPerMinute = requests, input, output
	return p
}

// TestFourReplicasHoldALimit: four replicas that together ask for far more than a limit use it fully, and
// exceed it by less than 5 % in any window.
func TestFourReplicasHoldALimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider *ai.Provider
		need     providers.Amounts
		of       func(n int64) int64 // the limited amount of n calls
		limit    int64
	}{
		"requests": {limitedTo(60_000, 0, 0), providers.Amounts{Requests: 1}, func(n int64) int64 { return n }, 60_000},
		"tokens":   {limitedTo(0, 6_000_000, 0), providers.Amounts{Requests: 1, Input: 500}, func(n int64) int64 { return 500 * n }, 6_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storagetest.Redis(t).URL
			tenant, used := storagetest.Tenant(t), atomic.Int64{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var work sync.WaitGroup
			for range 4 {
				l := providers.NewLimiter(storagetest.Open(t, storage.Config{URL: url}))
				for range 4 {
					work.Go(func() {
						for ctx.Err() == nil {
							wait, err := l.Take(ctx, tenant, c.provider, c.need, time.Second)
							if wait == 0 && err == nil {
								used.Add(c.of(1))
							}
						}
					})
				}
			}
			// The limit of a minute holds in a part of it, but for the saved and the leased amounts: 4 % of
			// it, which are there at the beginning.
			storagetest.Eventually(t, func() bool { return used.Load() > 0 })
			const length = 4 * time.Second
			time.Sleep(time.Second) // the saved amount is used
			began, before := time.Now(), used.Load()
			time.Sleep(length)
			got, took := used.Load()-before, time.Since(began)
			cancel()
			work.Wait()
			fair := float64(c.limit) * took.Minutes()
			slack := 0.04*float64(c.limit) - 0.02*float64(c.limit) // leases, without what was saved up
			t.Logf("used %d in %s, of %.0f: %+.1f %%; in a minute that is at most %+.1f %%", got, took.Round(time.Millisecond), fair,
				100*(float64(got)/fair-1), 100*(float64(got)-fair)/float64(c.limit))
			if float64(got) > fair+slack || float64(got) < 0.5*fair { // a busy machine may use less
				t.Errorf("got %d used in %s, want %.0f, at most 2 %% of a minute's limit more, at least half of it", got, took, fair)
			}
			if most := fair + 0.05*float64(c.limit) + float64(c.limit)/60*2; float64(used.Load()) > most+float64(c.limit)/60 {
				t.Errorf("got %d used in all, want at most %.0f", used.Load(), most)
			}
		})
	}
}

// TestLimitsAreSettled: what a call has not used is returned, and a debt makes the next calls wait.
func TestLimitsAreSettled(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, tenant, l := t.Context(), storagetest.Tenant(t), providers.NewLimiter(s)
		p := limitedTo(0, 0, 6000) // 100 a second; 120 are saved up
		take := func(n int64) time.Duration {
			wait, err := l.Take(ctx, tenant, p, providers.Amounts{Requests: 1, Output: n}, 0)
			if err != nil {
				t.Fatalf("Take: %v", err)
			}
			return wait
		}
		if wait := take(100_000); wait != 0 {
			t.Fatalf("a call above the limit: got a wait of %s, want none: it leaves a debt", wait)
		}
		if wait := take(1); wait < 590*time.Second || wait > 601*time.Second {
			t.Errorf("Take after a debt: got a wait of %s, want 10 minutes, the longest", wait)
		}
		if wait := take(0); wait != 0 {
			t.Errorf("Take of nothing after a debt: got a wait of %s, want none", wait)
		}
		if err := l.Settle(ctx, tenant, p, providers.Amounts{Requests: 1, Output: 100_000}, providers.Amounts{Requests: 1, Output: 20}); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		if wait := take(50); wait != 0 {
			t.Errorf("after the return: got a wait of %s, want none", wait)
		}
		other := providers.NewLimiter(s)
		if err := l.Settle(ctx, tenant, p, providers.Amounts{Requests: 1, Output: 50}, providers.Amounts{Requests: 1, Output: 5000}); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		wait, err := other.Take(ctx, tenant, p, providers.Amounts{Requests: 1, Output: 50}, 0)
		if err != nil || wait < 40*time.Second {
			t.Errorf("another replica after a debt: got a wait of %s, %v, want more than 40 s", wait, err)
		}
	})
}

// TestLimiterWaits: a call waits for its turn as long as its patience, and calls without a limit never.
func TestLimiterWaits(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	l, tenant, p := providers.NewLimiter(s), storagetest.Tenant(t), limitedTo(600, 0, 0) // one each 100 ms; 12 are saved up
	began, one := time.Now(), providers.Amounts{Requests: 1}
	for range 15 {
		if wait, err := l.Take(t.Context(), tenant, p, one, 5*time.Second); wait != 0 || err != nil {
			t.Fatalf("Take: got a wait of %s, %v, want none", wait, err)
		}
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("15 calls took %s, want 200 ms or more: 12 are saved up", took)
	}
	if wait, err := l.Take(t.Context(), tenant, p, one, 0); wait == 0 || err != nil {
		t.Errorf("Take without patience: got a wait of %s, %v, want one", wait, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if wait, err := l.Take(ctx, tenant, limitedTo(1, 0, 0), providers.Amounts{Requests: 1}, time.Minute); err == nil && wait == 0 {
		t.Errorf("Take with an ended context: got a wait of %s and error %v, want one of them", wait, err)
	}
	if wait, err := l.Take(t.Context(), tenant, limitedTo(0, 0, 0), one, 0); wait != 0 || err != nil {
		t.Errorf("Take without limits: got a wait of %s, %v, want none", wait, err)
	}
}

// BenchmarkLimiter measures what the limiter adds to a call: taking, and settling.
func BenchmarkLimiter(b *testing.B) {
	for name, p := range map[string]*ai.Provider{"none": limitedTo(0, 0, 0), "requests": limitedTo(ai.MaxPerMinute, 0, 0), "tokens": limitedTo(ai.MaxPerMinute, ai.MaxPerMinute, ai.MaxPerMinute)} {
		b.Run(name, func(b *testing.B) {
			s := storagetest.Open(b, storage.Config{URL: storagetest.Redis(b).URL})
			l, tenant := providers.NewLimiter(s), storagetest.Tenant(b)
			need := providers.Amounts{Requests: 1, Input: 1000, Output: 500}
			for b.Loop() {
				if wait, err := l.Take(b.Context(), tenant, p, need, time.Second); wait != 0 || err != nil {
					b.Fatalf("Take: got a wait of %s, error %v, want none", wait, err)
				}
				if err := l.Settle(b.Context(), tenant, p, need, providers.Amounts{Requests: 1, Input: 900, Output: 300}); err != nil {
					b.Fatalf("Settle: %v", err)
				}
			}
		})
	}
}
