package feed

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/mirror"
)

const (
	// maxBytes is how many bytes of records a transaction has, about. Two of them are in memory.
	maxBytes = 32 << 20
	// maxActivations is how many activations one read has: each may have 340 KiB.
	maxActivations = 32
)

// unit has the records of one transaction.
type unit struct {
	mirror.Batch

	bytes    int
	oldestMS int64 // when the first of its events was appended, 0 without events
}

func newUnit(force bool) *unit {
	return &unit{Batch: mirror.Batch{Positions: map[string]string{}, Notes: map[string]string{}, Force: force}}
}

// since notes an event of the unit.
func (u *unit) since(ms int64) {
	if u.oldestMS == 0 || ms < u.oldestMS {
		u.oldestMS = ms
	}
}

func (u *unit) full() bool {
	return u.bytes >= maxBytes || len(u.Jobs)+len(u.Activations) >= mirror.MaxBatch
}

// collector reads records and passes them on in units.
type collector struct {
	f     *Feed
	sink  func(context.Context, *unit) error
	unit  *unit
	force bool
}

func newCollector(f *Feed, force bool, sink func(context.Context, *unit) error) *collector {
	return &collector{f: f, sink: sink, unit: newUnit(force), force: force}
}

// flush passes on what was collected.
func (c *collector) flush(ctx context.Context) error {
	u := c.unit
	if len(u.Jobs)+len(u.Activations)+len(u.Positions)+len(u.Notes) == 0 {
		return nil
	}
	c.unit = newUnit(c.force)
	return c.sink(ctx, u)
}

// add passes on the unit if it is full.
func (c *collector) add(ctx context.Context) error {
	if !c.unit.full() {
		return nil
	}
	oldest := c.unit.oldestMS
	err := c.flush(ctx)
	c.unit.oldestMS = oldest // the rest of the page has it too
	return err
}

// jobs reads jobs of a tenant.
func (c *collector) jobs(ctx context.Context, tenant string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return c.f.jobs.Read(ctx, tenant, ids, func(jobs []mirror.Job) error {
		c.unit.Jobs = append(c.unit.Jobs, jobs...)
		for i := range jobs {
			c.unit.bytes += 2 * len(jobs[i].Doc) // the view has its parts once more
		}
		return c.add(ctx)
	})
}

// activations reads activations of a tenant.
func (c *collector) activations(ctx context.Context, tenant string, ids []string) error {
	for part := range slices.Chunk(ids, maxActivations) {
		found, err := c.read(ctx, tenant, part)
		if err != nil {
			return err
		}
		for i, record := range found {
			a := mirror.Activation{Tenant: tenant, ID: part[i]}
			if record != nil {
				a.View = &record.Activation
				a.Doc, err = api.EncodeJSON(a.View)
				if err != nil {
					return err
				}
				c.unit.bytes += 2 * len(a.Doc)
			}
			c.unit.Activations = append(c.unit.Activations, a)
		}
		if err := c.add(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read reads activations of a tenant. One that cannot be decoded is logged, and counts as absent: its
// row would keep the mirror from going on.
func (c *collector) read(ctx context.Context, tenant string, ids []string) ([]*activations.Record, error) {
	found, err := c.f.activations.ReadMany(ctx, tenant, ids)
	if err == nil || storage.Fatal(ctx, err) {
		return found, err
	}
	found = make([]*activations.Record, len(ids))
	for i := range ids {
		one, err := c.f.activations.ReadMany(ctx, tenant, ids[i:i+1])
		if storage.Fatal(ctx, err) {
			return nil, err
		}
		if err != nil {
			c.f.cfg.Logger.Warn("an activation cannot be decoded; the mirror leaves it out", zap.String("tenant", tenant), zap.String("activation", ids[i]), zap.Error(err))
			continue
		}
		found[i] = one[0]
	}
	return found, nil
}
