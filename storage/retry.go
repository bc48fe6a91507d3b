package storage

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/codesous/sous/api"
)

// A conflict is tried again for a time, not a number of times. The bound of the pause between
// two tries doubles from the least to the largest, and each pause is a random part of it.
const (
	conflictBudget   = 30 * time.Second
	conflictPauseMin = 2 * time.Millisecond
	conflictPauseMax = 100 * time.Millisecond
)

// RetryConflicts calls try until it returns anything but api.CodeStoreConflict, for 30 s
// at most, with random pauses of up to 100 ms between the tries. It returns the last
// error of try, or that of ctx. try reads the record again each time: a conflict means that
// the record is not as it was read.
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
