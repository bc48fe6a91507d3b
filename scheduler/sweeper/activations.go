package sweeper

import (
	"cmp"
	"context"
	"time"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// functionReads is what a function costs even where nothing is found.
const functionReads = 3

// activationVisitor finds activations that nobody will end any more: their replica is
// dead, or their job is gone or has ended.
type activationVisitor struct {
	s           *Sweeper
	activations *activations.Repository
	repairer    *queue.Repairer
}

func (v *activationVisitor) visit(ctx context.Context, at storage.FunctionPath, now time.Time, reads int, total *Counts) (piece, error) {
	swept, err := v.activations.SweepFunction(ctx, at.Tenant, at.Namespace, at.Function, now.UnixMilli(), max(1, reads))
	total.Add(swept.SweepCounts)
	p := piece{reads: functionReads + swept.Read, end: true, busy: swept.Read > swept.Waiting}
	for _, id := range swept.Ended {
		v.s.mended(queue.Repair{
			Kind: "lost", Tenant: at.Tenant, Namespace: at.Namespace, Queue: at.Function, ID: id, Reason: "it ran past its deadline",
		})
	}
	for _, id := range swept.Unreadable {
		v.s.cannotRead("activation " + at.Tenant + "/" + id)
	}
	if storage.Fatal(ctx, err) || len(swept.Asynchronous) == 0 {
		return p, err
	}
	look, failed := v.repairer.Activations(ctx, swept.Asynchronous, now.UnixMilli())
	v.s.note(look, total)
	p.reads += look.Reads
	p.busy = p.busy || len(look.Repairs) > 0
	return p, cmp.Or(err, failed)
}
