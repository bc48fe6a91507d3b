package slots

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
		l := New()
		first, err := l.Acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		// The slot is never released: the second caller fails after the longest wait.
		begin := time.Now()
		_, err = l.Acquire(t.Context(), "v", 1)
		var coded *api.Error
		if !errors.As(err, &coded) || coded.Code != api.CodeConcurrencyLimit || coded.RetryAfter == 0 {
			t.Fatalf("second place of one: %v", err)
		}
		if waited := time.Since(begin); waited != maxWait {
			t.Errorf("waited %s, want %s", waited, maxWait)
		}
		// Another version has slots of its own.
		other, err := l.Acquire(t.Context(), "w", 1)
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
		second, err := l.Acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("after a release: %v", err)
		}
		if _, err := l.Acquire(t.Context(), "v", 1); err == nil {
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
		l := New()
		release, err := l.Acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range maxWaiting {
			wg.Go(func() {
				if _, err := l.Acquire(ctx, "v", 1); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter whose caller left: %v", err)
				}
			})
		}
		synctest.Wait()
		begin := time.Now()
		if _, err := l.Acquire(t.Context(), "v", 1); api.ErrorCode(err) != api.CodeConcurrencyLimit || time.Since(begin) != 0 {
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
		l := New()
		release, err := l.Acquire(t.Context(), "v", 1)
		if err != nil {
			t.Fatalf("l.Acquire: %v", err)
		}
		var order []int
		for i := range 4 {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				defer leave()
				release, err := l.Acquire(ctx, "v", 1)
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
