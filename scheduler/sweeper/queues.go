package sweeper

import (
	"context"
	"time"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
)

// queueVisitor finds a tenant's queues of which nobody knows that something is due
// there, and entries of their sets that do not belong there.
type queueVisitor struct {
	s        *Sweeper
	repairer *queue.Repairer
}

func (v *queueVisitor) visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (piece, error) {
	look, err := v.repairer.Queues(ctx, at.Tenant, now.UnixMilli(), reads)
	return v.s.note(look, total), err
}
