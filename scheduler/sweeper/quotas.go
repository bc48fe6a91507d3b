package sweeper

import (
	"context"
	"time"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/kvstore"
	"github.com/codesous/sous/storage/quotas"
)

// quotaWalker returns the walker that counts what tenants store. Its passes are long and repair
// nothing that a caller waits for, so it does not delay the visits of the functions.
func (s *Sweeper) quotaWalker(tenants *storage.Tenants) *tenantWalker {
	return &tenantWalker{
		places:      tenants.WalkNamespaces,
		ofTenant:    []visitor{&quotaVisitor{store: s.store}},
		ofNamespace: []visitor{&kvVisitor{kvstore.New(s.store)}},
		uncounted:   true,
	}
}

// quotaVisitor counts the records of a tenant and corrects the amounts of its quotas: after
// crashes they are too high, and in a store that an earlier release has written too low.
type quotaVisitor struct {
	store *storage.Store
	walk  *quotas.Walk
}

func (v *quotaVisitor) visit(ctx context.Context, at storage.FunctionPath, _ time.Time, _ int, _ *Counts) (chunk, error) {
	if v.walk == nil || v.walk.Tenant() != at.Tenant { // a pass that was interrupted
		v.walk = quotas.NewWalk(v.store, at.Tenant)
	}
	reads, end, err := v.walk.Step(ctx)
	if end || err != nil {
		v.walk = nil
	}
	return chunk{reads: reads, end: end || err != nil}, err
}

// kvVisitor removes entries of cs.kv that have expired, and counts the keys of a namespace.
type kvVisitor struct{ kv *kvstore.KV }

func (v *kvVisitor) visit(ctx context.Context, at storage.FunctionPath, _ time.Time, _ int, _ *Counts) (chunk, error) {
	swept, err := v.kv.Sweep(ctx, at.Tenant, at.Namespace)
	return chunk{reads: swept.Reads, end: swept.End || err != nil, busy: swept.Expired > 0}, err
}

// kvWalker goes over the values of cs.kv of all tenants and indexes those that an earlier release
// has written. While replicas of that release run, each pass finds more.
type kvWalker struct{ adoption *kvstore.Adoption }

func (w *kvWalker) chunk(ctx context.Context, _ time.Time, _ int, _ *Counts) (chunk, error) {
	done, err := w.adoption.Step(ctx)
	return chunk{reads: done.Reads, end: done.End || err != nil, busy: done.Entered > 0}, err
}

func (*kvWalker) stop() {}
