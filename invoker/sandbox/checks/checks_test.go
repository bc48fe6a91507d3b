package checks

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
)

// checker is a tenant that checks one bundle after another in a queue.
func checker(ctx context.Context, q *Queue, tenant string, took time.Duration) {
	for ctx.Err() == nil {
		release, err := q.Enter(ctx, ctx, tenant)
		if err != nil {
			return
		}
		sleepFor(ctx, took)
		release()
	}
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestSlowChecksTakeOnePlace: however many tenants check slow bundles without a pause, a tenant
// with quick ones waits at most for slowCheck, and hardly at all once the others are known.
func TestSlowChecksTakeOnePlace(t *testing.T) {
	for _, attackers := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(attackers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for i := range attackers {
					go checker(ctx, q, fmt.Sprint("slow", i), 8*time.Second)
				}
				synctest.Wait()
				var waits []time.Duration
				for range 120 {
					begin := time.Now()
					release, err := q.Enter(ctx, ctx, "quick")
					if err != nil {
						t.Fatalf("Enter: %v", err)
					}
					waits = append(waits, time.Since(begin))
					time.Sleep(100 * time.Millisecond)
					release()
					time.Sleep(time.Second)
				}
				// Tenants without a history may take all places once, each for one check.
				most := time.Duration(attackers) * 8 * time.Second / (checksAtOnce + slowChecks)
				if attackers <= checksAtOnce {
					most = slowCheck
				}
				if slowest := slices.Max(waits); slowest > most {
					t.Errorf("%d attackers: got a wait of %v, want at most %v", attackers, slowest, most)
				}
				if slowest := slices.Max(waits[60:]); slowest > 0 {
					t.Errorf("%d attackers: got a wait of %v after a minute, want none", attackers, slowest)
				}
			})
		})
	}
}

// TestChecksGoByTurns: a tenant has one check at a time, quick tenants share the places evenly
// whatever they send, and the queue is empty in the end.
func TestChecksGoByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		ctx, cancel := context.WithCancel(t.Context())
		running, ended := map[string]int{}, map[string]int{}
		for tenant, senders := range map[string]int{"many": 20, "few": 2, "one": 1} {
			for range senders {
				go func() {
					for ctx.Err() == nil {
						release, err := q.Enter(ctx, ctx, tenant)
						if err != nil {
							return
						}
						q.mu.Lock()
						running[tenant]++
						if running[tenant] > 1 {
							t.Errorf("got %d checks of tenant %s at once, want 1", running[tenant], tenant)
						}
						if len(q.running) > checksAtOnce+slowChecks {
							t.Errorf("got %d checks at once, want at most %d", len(q.running), checksAtOnce+slowChecks)
						}
						q.mu.Unlock()
						sleepFor(ctx, 10*time.Millisecond)
						q.mu.Lock()
						running[tenant]--
						ended[tenant]++
						q.mu.Unlock()
						release()
					}
				}()
			}
		}
		time.Sleep(5 * time.Second)
		cancel()
		synctest.Wait()
		if ended["many"] > 2*ended["one"] || ended["many"] > 2*ended["few"] {
			t.Errorf("got checks by tenant %v, want as many of each within a factor of 2", ended)
		}
		if len(q.running) > 0 || len(q.waiting) > 0 {
			t.Errorf("got %d checks that run and %d that wait at the end, want none", len(q.running), len(q.waiting))
		}
	})
}

// TestWaitingChecksAreBounded: a tenant that has maxWaitingChecks in the queue is refused, and
// another one is not.
func TestWaitingChecksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		ctx, cancel := context.WithCancel(t.Context())
		for range 1 + maxWaitingChecks {
			go checker(ctx, q, "greedy", time.Hour)
		}
		synctest.Wait()
		if _, err := q.Enter(ctx, ctx, "greedy"); api.ErrorCode(err) != api.CodeCapacityLimit {
			t.Errorf("Enter with %d checks of the tenant waiting: got error %v, want code %s", maxWaitingChecks, err, api.CodeCapacityLimit)
		}
		release, err := q.Enter(ctx, ctx, "other")
		if err != nil {
			t.Fatalf("Enter of another tenant: got error %v, want none", err)
		}
		release()
		cancel()
		synctest.Wait()
		if len(q.running) > 0 || len(q.waiting) > 0 {
			t.Errorf("got %d checks that run and %d that wait after the end of their requests, want none", len(q.running), len(q.waiting))
		}
	})
}

// TestUseOfChecksFades: half of it in each minute, to nothing, and then the tenant is forgotten.
func TestUseOfChecksFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		for i := range 300 {
			release, err := q.Enter(t.Context(), t.Context(), fmt.Sprint("tenant", i))
			if err != nil {
				t.Fatalf("Enter: %v", err)
			}
			time.Sleep(time.Second)
			release()
		}
		last := "tenant299"
		time.Sleep(checkMemory)
		if got := q.use(last).took; got != time.Second/2 {
			t.Errorf("use after %v: got %v, want 500ms", checkMemory, got)
		}
		time.Sleep(checkMemory / 2)
		if got := q.use(last).took; got != 375*time.Millisecond {
			t.Errorf("use after %v: got %v, want 375ms", checkMemory*3/2, got)
		}
		time.Sleep(time.Hour)
		release, err := q.Enter(t.Context(), t.Context(), "last")
		if err != nil {
			t.Fatalf("Enter: %v", err)
		}
		time.Sleep(time.Second)
		release()
		if len(q.used) > keptUses {
			t.Errorf("got the use of %d tenants, want at most %d", len(q.used), keptUses)
		}
	})
}

// TestManyQuickChecksAreNotSlow: a tenant that publishes often does not wait for slow checks,
// however much time its own have taken together.
func TestManyQuickChecksAreNotSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 2 {
			go checker(ctx, q, fmt.Sprint("slow", i), 30*time.Second)
		}
		time.Sleep(2 * time.Minute)
		for i := range 60 {
			begin := time.Now()
			release, err := q.Enter(ctx, ctx, "quick")
			if err != nil {
				t.Fatalf("enter: %v", err)
			}
			if waited := time.Since(begin); waited > slowCheck {
				t.Errorf("check %d: got a wait of %s, want at most %s", i, waited, slowCheck)
			}
			time.Sleep(slowCheck * 9 / 10)
			release()
		}
		cancel()
		synctest.Wait()
	})
}
