package storage

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/codesous/sous/api"
)

// Conflicts are tried again by time, not by count: how long, and the bounds of
// the pause between two tries, of which each takes a random part.
const (
	conflictBudget   = 30 * time.Second
	conflictPauseMin = 2 * time.Millisecond
	conflictPauseMax = 100 * time.Millisecond
)

// RetryConflicts calls try until it returns anything but api.CodeStoreConflict, for 30 s
// at most, with random pauses of up to 100 ms between the tries. It returns the last
// error of try, or that of ctx.
func RetryConflicts(ctx context.Context, try func() error) error {
	deadline := time.Now().Add(conflictBudget)
	for pause := conflictPauseMin; ; pause = min(2*pause, conflictPauseMax) {
		err := try()
		if api.ErrorCode(err) != api.CodeStoreConflict || time.Now().After(deadline) {
			return err
		}
		wait := time.NewTimer(rand.N(pause))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
}
