package sweeper

import (
	"context"
	"time"

	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/storage"
)

// queueVisitor looks at a tenant's queues: for work that is due in a queue and not marked in
// the due sets, and for entries of jobs that belong elsewhere. The repairer remembers the
// position in the tenant's list.
type queueVisitor struct {
	s        *Sweeper
	repairer *repair.Repairer
}

func (v *queueVisitor) visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (chunk, error) {
	findings, err := v.repairer.Queues(ctx, at.Tenant, now.UnixMilli(), reads)
	return v.s.record(findings, total), err
}
