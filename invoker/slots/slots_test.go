package slots

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
)

func TestLimitsHandOutPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		first, err := l.Acquire(t.Context(), "v", 1, nil)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		// The slot is never released: the second caller fails after the longest wait.
		begin := time.Now()
		_, err = l.Acquire(t.Context(), "v", 1, nil)
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != api.CodeConcurrencyLimit || coded.RetryAfter == 0 {
			t.Fatalf("Acquire of a second slot of 1: got error %v, want code %s with a time to retry", err, api.CodeConcurrencyLimit)
		}
		if waited := time.Since(begin); waited != maxWait {
			t.Errorf("waited %s, want %s", waited, maxWait)
		}
		// Another version has slots of its own.
		other, err := l.Acquire(t.Context(), "w", 1, nil)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		other()
		// A place given back, even twice, is one place.
		go func() {
			time.Sleep(maxWait / 2)
			first()
			first()
		}()
		second, err := l.Acquire(t.Context(), "v", 1, nil)
		if err != nil {
			t.Fatalf("after a release: %v", err)
		}
		if _, err := l.Acquire(t.Context(), "v", 1, nil); err == nil {
			t.Error("a place that was released twice counts twice")
		}
		second()
		if len(l.versions) != 0 {
			t.Errorf("got %d gates left, want 0", len(l.versions))
		}
	})
}

func TestLimitsBoundTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		release, err := l.Acquire(t.Context(), "v", 1, nil)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range maxWaiting {
			wg.Go(func() {
				if _, err := l.Acquire(ctx, "v", 1, nil); !errors.Is(err, context.Canceled) {
					t.Errorf("Acquire of a caller that left: got error %v, want %v", err, context.Canceled)
				}
			})
		}
		synctest.Wait()
		begin := time.Now()
		if _, err := l.Acquire(t.Context(), "v", 1, nil); api.ErrorCode(err) != api.CodeConcurrencyLimit || time.Since(begin) != 0 {
			t.Errorf("one over the line: %v after %s, want a refusal at once", err, time.Since(begin))
		}
		leave()
		wg.Wait()
		release()
		if len(l.versions) != 0 {
			t.Errorf("got %d gates left, want 0", len(l.versions))
		}
	})
}

// TestNoCallerWaitsInVain: a version with ten times the calls that it can serve refuses the
// others at once, and serves as many as before. own is called for each call that waits.
func TestNoCallerWaitsInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		var served, own, late, refused atomic.Int64
		var callers sync.WaitGroup
		offer := func(perSecond int, length time.Duration) {
			for range perSecond * int(length/time.Second) {
				callers.Go(func() {
					begin := time.Now()
					release, err := l.Acquire(t.Context(), "v", 10, func() { own.Add(1) })
					switch took := time.Since(begin); {
					case err == nil:
						time.Sleep(100 * time.Millisecond)
						release()
						served.Add(1)
					case took > 0:
						late.Add(1)
					default:
						refused.Add(1)
					}
				})
				time.Sleep(time.Second / time.Duration(perSecond))
			}
		}
		offer(1000, 3*time.Second) // the pace becomes known
		callers.Wait()
		served.Store(0)
		own.Store(0)
		late.Store(0)
		offer(1000, 10*time.Second)
		callers.Wait()
		if served.Load() < 990 || late.Load() > 0 {
			t.Errorf("of 10,000 calls in 10 s with room for 100 a second: got %d served and %d refused late, want 1,000 and none", served.Load(), late.Load())
		}
		if waited := own.Load(); waited < served.Load()-20 || waited > served.Load() {
			t.Errorf("%d calls were told that they wait, want nearly all of the %d that were served", waited, served.Load())
		}
	})
}

// TestLimitsKeepTheOrder: slots go to the first callers, and a caller that leaves as it
// gets a slot frees it.
func TestLimitsKeepTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		release, err := l.Acquire(t.Context(), "v", 1, nil)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		var order []int
		for i := range 4 {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				defer leave()
				release, err := l.Acquire(ctx, "v", 1, nil)
				if err != nil {
					return
				}
				order = append(order, i)
				release()
			}()
			synctest.Wait()
			if i == 1 { // at the moment when the first in line has its place
				go func() {
					time.Sleep(maxWait / 2)
					leave()
				}()
			}
		}
		time.Sleep(maxWait / 2)
		release()
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) < 3 {
			t.Errorf("got places in the order %v, want the order of arrival", order)
		}
		if len(l.versions) != 0 {
			t.Errorf("got %d gates left, want 0", len(l.versions))
		}
	})
}
