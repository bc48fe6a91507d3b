package sleep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api/sleep"
)

func TestFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := sleep.For(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("For(1m) = %v after %s, want nil after 1m", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := sleep.For(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("For(1m) with a deadline in 1s = %v after %s, want %v after 1s", err, time.Since(start), context.DeadlineExceeded)
		}
		if err := sleep.For(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("For(0) after the deadline = %v, want %v", err, context.DeadlineExceeded)
		}
		if err := sleep.For(t.Context(), -time.Second); err != nil {
			t.Errorf("For(-1s) = %v, want nil", err)
		}
	})
}
