package sweeper

import (
	"context"
	"fmt"
	"time"

	"github.com/codesous/sous/queue/repair"
)

// jobWalker goes over the keys of all jobs and batches. When the store fails, it continues
// where it was.
type jobWalker struct {
	s        *Sweeper
	repairer *repair.Repairer
}

func (w *jobWalker) chunk(ctx context.Context, now time.Time, reads int, total *Counts) (chunk, error) {
	findings, err := w.repairer.Jobs(ctx, now.UnixMilli(), reads)
	if err != nil {
		err = fmt.Errorf("sweep jobs: %w", err)
	}
	return w.s.record(findings, total), err
}

func (w *jobWalker) stop() {}
