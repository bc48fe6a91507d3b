package invoker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
)

func TestLimitsHandOutPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		first, err := l.acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("l.acquire: %v", err)
		}
		// The slot is never released: the second caller fails after the longest wait.
		begin := time.Now()
		_, err = l.acquire(t.Context(), "v", 1)
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != api.CodeConcurrencyLimit || coded.RetryAfter == 0 {
			t.Fatalf("second place of one: %v", err)
		}
		if waited := time.Since(begin); waited != maxWait {
			t.Errorf("waited %s, want %s", waited, maxWait)
		}
		// Another version has slots of its own.
		other, err := l.acquire(t.Context(), "w", 1)
		if err != nil {
			t.Fatalf("l.acquire: %v", err)
		}
		other()
		// A place given back, even twice, is one place.
		go func() {
			time.Sleep(maxWait / 2)
			first()
			first()
		}()
		second, err := l.acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("after a release: %v", err)
		}
		if _, err := l.acquire(t.Context(), "v", 1); err == nil {
			t.Error("a place that was released twice counts twice")
		}
		second()
		if len(l.versions) != 0 {
			t.Errorf("%d gates outlive their users", len(l.versions))
		}
	})
}

func TestLimitsBoundTheLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		release, err := l.acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("l.acquire: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range maxWaiting {
			wg.Go(func() {
				if _, err := l.acquire(ctx, "v", 1); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter whose caller left: %v", err)
				}
			})
		}
		synctest.Wait()
		begin := time.Now()
		if _, err := l.acquire(t.Context(), "v", 1); api.ErrorCode(err) != api.CodeConcurrencyLimit || time.Since(begin) != 0 {
			t.Errorf("one over the line: %v after %s, want a refusal at once", err, time.Since(begin))
		}
		leave()
		wg.Wait()
		release()
		if len(l.versions) != 0 {
			t.Errorf("%d gates outlive their users", len(l.versions))
		}
	})
}

// TestLimitsKeepTheOrder: slots go to the first callers, and a caller that leaves as it
// gets a slot frees it.
func TestLimitsKeepTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		release, err := l.acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("l.acquire: %v", err)
		}
		var order []int
		for i := range 4 {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				defer leave()
				release, err := l.acquire(ctx, "v", 1)
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
			t.Errorf("%d gates outlive their users", len(l.versions))
		}
	})
}

// Work that begins after Close has stopped waiting is stopped too.
func TestRunningStopsLatecomers(t *testing.T) {
	t.Parallel()
	r := newRunning()
	r.cancelAll()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	defer r.add("t_test00", "id", stop)()
	if ctx.Err() == nil {
		t.Error("an activation that came after cancelAll runs on")
	}
}
