package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
)

// begin takes a turn that must be free.
func begin(t *testing.T, turns *Turns, tenant string) Turn {
	t.Helper()
	turn, err := turns.Begin(t.Context(), tenant, time.Now())
	if err != nil {
		t.Fatalf("Begin(%s) = %v, want a turn at once", tenant, err)
	}
	return turn
}

// TestTurnsGoRoundByTenant: 40 activations of one tenant delay another tenant by two turns: the
// one that runs, and the one at the head of the queue.
func TestTurnsGoRoundByTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{Parallel: 1, Share: 1, Burst: time.Hour})
		var loud sync.WaitGroup
		defer loud.Wait()
		for range 40 {
			loud.Go(func() {
				for range 20 {
					turn, err := turns.Begin(t.Context(), "loud", time.Now().Add(time.Hour))
					if err != nil {
						t.Errorf("Begin(loud) = %v, want a turn", err)
						return
					}
					time.Sleep(time.Millisecond)
					turn.End()
				}
			})
		}
		time.Sleep(10*time.Millisecond + time.Microsecond)
		for range 10 {
			began := time.Now()
			turn, err := turns.Begin(t.Context(), "quiet", time.Now().Add(time.Hour))
			if waited := time.Since(began); err != nil || waited > 2*time.Millisecond {
				t.Errorf("Begin(quiet) = %v after %v, want a turn after at most two of the other tenant", err, waited)
			}
			turn.End()
			time.Sleep(3 * time.Millisecond)
		}
	})
}

// TestTurnsAreShared: a tenant gets its share of the time and no more, after its burst.
func TestTurnsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{Parallel: 1, Share: 0.25, Burst: 100 * time.Millisecond})
		used, began := time.Duration(0), time.Now()
		for time.Since(began) < 10*time.Second {
			turn, err := turns.Begin(t.Context(), "loud", began.Add(time.Hour))
			if err != nil {
				t.Fatalf("Begin(loud) = %v, want a turn", err)
			}
			time.Sleep(time.Millisecond)
			turn.End()
			used += time.Millisecond
		}
		if used < 2500*time.Millisecond || used > 2700*time.Millisecond {
			t.Errorf("got %v in 10 s, want a quarter and the burst of 100 ms", used)
		}
		quiet := begin(t, turns, "quiet")
		quiet.End()
	})
}

// TestTurnsThatDoNotCome: a wait ends with its ctx and at its limit, and leaves nothing behind.
func TestTurnsThatDoNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{Parallel: 1, Share: 1, Burst: time.Second})
		held := begin(t, turns, "holds")
		began := time.Now()
		_, err := turns.Begin(t.Context(), "waits", began.Add(time.Second))
		if api.ErrorCode(err) != api.CodeRuntimeTimeout || time.Since(began) != time.Second {
			t.Errorf("Begin = %v after %v, want %s after 1 s", err, time.Since(began), api.CodeRuntimeTimeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := turns.Begin(ctx, "waits", time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
			t.Errorf("Begin = %v, want %v", err, context.Canceled)
		}
		held.End()
		if turns.running != 0 || len(turns.queue) != 0 {
			t.Errorf("got %d turns and %d tenants that wait, want none", turns.running, len(turns.queue))
		}
		free := begin(t, turns, "waits")
		free.End()
	})
}

// TestAwaitIsNotRefused: work that must be done waits for a debt only so long.
func TestAwaitIsNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{Parallel: 1, Share: 0.01, Burst: time.Millisecond})
		first := begin(t, turns, "owes")
		time.Sleep(time.Second) // 100 s of its share
		first.End()
		began := time.Now()
		turn := turns.Await("owes", time.Second)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("Await waited %v, want its maximum of 1 s", waited)
		}
		turn.End()
	})
}

// TestPauseLetsOthersIn: a long turn with pauses delays another tenant by one part of it.
func TestPauseLetsOthersIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{Parallel: 1, Share: 1, Burst: time.Hour})
		var long sync.WaitGroup
		defer long.Wait()
		long.Go(func() {
			turn := begin(t, turns, "long")
			for range 1000 {
				time.Sleep(time.Millisecond)
				turn.Pause()
			}
			turn.End()
		})
		time.Sleep(time.Microsecond)
		began := time.Now()
		turn, err := turns.Begin(t.Context(), "other", began.Add(time.Hour))
		if waited := time.Since(began); err != nil || waited > time.Millisecond {
			t.Errorf("Begin = %v after %v, want a turn at the first pause", err, waited)
		}
		turn.End()
	})
}

// TestTurnsForgetTenants: names without turns and debt are not kept.
func TestTurnsForgetTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := New(Config{Parallel: 1, Share: 1})
		for n := range 10 * maxKnown {
			turn := begin(t, turns, fmt.Sprint("t", n))
			turn.End()
			time.Sleep(time.Nanosecond)
		}
		if len(turns.known) > maxKnown {
			t.Errorf("got %d tenants, want at most %d", len(turns.known), maxKnown)
		}
		var none *Turns
		turn, err := none.Begin(t.Context(), "any", time.Time{})
		turn.Pause()
		turn.End()
		if err != nil {
			t.Errorf("Begin of a nil Turns = %v, want nil", err)
		}
	})
}

func BenchmarkTurn(b *testing.B) {
	turns := New(Config{Parallel: 1, Share: 1e6, Burst: time.Hour})
	for b.Loop() {
		turn, err := turns.Begin(b.Context(), "t", time.Time{})
		if err != nil {
			b.Fatalf("Begin = %v, want a turn", err)
		}
		turn.End()
	}
}
