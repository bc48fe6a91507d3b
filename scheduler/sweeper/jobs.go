package sweeper

import (
	"context"
	"fmt"
	"time"

	"github.com/codesous/sous/queue"
)

// jobCourse is the course through the keys of all jobs and batches. It has laps of its
// own: they take longer than those through the tenants. When the store fails, it goes
// on where it was.
type jobCourse struct {
	s        *Sweeper
	repairer *queue.Repairer
}

func (c *jobCourse) piece(ctx context.Context, now time.Time, reads int, total *Counts) (piece, error) {
	look, err := c.repairer.Jobs(ctx, now.UnixMilli(), reads)
	if err != nil {
		err = fmt.Errorf("sweep jobs: %w", err)
	}
	return c.s.note(look, total), err
}

func (c *jobCourse) stop() {}
