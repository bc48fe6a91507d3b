package sweeper

import (
	"cmp"
	"context"
	"time"

	"github.com/codesous/sous/queue/repair"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// functionReads is the cost of a function in which nothing is found: the commands that read its
// cursor and its index.
const functionReads = 3

// activationVisitor looks for activations of a function that no process will end any more:
// their replica died, or their job is gone or has ended. Synchronous ones are ended by
// storage/activations, by their deadline; asynchronous ones by queue/repair, by their job. Its
// chunk is always the end: the position in a function's index is in the store, shared by all
// replicas.
type activationVisitor struct {
	s           *Sweeper
	activations *activations.Repository
	repairer    *repair.Repairer
}

func (v *activationVisitor) visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (chunk, error) {
	swept, err := v.activations.SweepFunction(ctx, at.Tenant, at.Namespace, at.Function, now.UnixMilli(), max(1, reads))
	total.Add(swept.SweepCounts)
	c := chunk{reads: functionReads + swept.Read, end: true, busy: swept.Read > swept.Waiting}
	for _, id := range swept.Ended {
		v.s.logRepair(repair.Repair{
			Kind: "lost", Tenant: at.Tenant, Namespace: at.Namespace, Queue: at.Function, ID: id, Reason: "it ran past its deadline",
		})
	}
	for _, id := range swept.Unreadable {
		v.s.logUnreadable("activation " + at.Tenant + "/" + id)
	}
	if storage.Fatal(ctx, err) || len(swept.Asynchronous) == 0 {
		return c, err
	}
	findings, failed := v.repairer.Activations(ctx, swept.Asynchronous, now.UnixMilli())
	v.s.record(findings, total)
	c.reads += findings.Reads
	c.busy = c.busy || len(findings.Repairs) > 0
	return c, cmp.Or(err, failed)
}
