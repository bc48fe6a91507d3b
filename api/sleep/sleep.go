// Package sleep waits in loops that must stop with their context.
package sleep

import (
	"context"
	"time"
)

// For waits for d or until ctx ends. It returns nil after d and ctx.Err() when ctx ended
// first. A d of zero or less returns immediately, with ctx.Err(): a loop without a pause
// still stops with its context.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
