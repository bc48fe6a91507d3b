package triggers

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/sleep"
)

const (
	// readEvery is the interval between reads of all triggers: notices of changes can be lost.
	readEvery = 30 * time.Second
	// readAgain is the interval after a failed read.
	readAgain = time.Second
	// readPause is the time between a notice and the read: many changes are one read.
	readPause = 50 * time.Millisecond
)

// Queue locates a queue with a trigger.
type Queue struct{ Tenant, Namespace, Queue string }

// Index is a replica's view of the enabled triggers of all tenants. It is readEvery old at most
// if notices of changes are lost. It is safe for concurrent use.
type Index struct {
	repository *Repository
	enabled    atomic.Pointer[map[Queue]*Found] // never nil
	changed    chan struct{}                    // holds a token if a trigger may have changed
}

// NewIndex returns an empty view, which Follow fills.
func NewIndex(r *Repository) *Index {
	x := &Index{repository: r, changed: make(chan struct{}, 1)}
	x.enabled.Store(&map[Queue]*Found{})
	return x
}

// Of returns the enabled trigger of a queue, nil if there is none.
func (x *Index) Of(q Queue) *Found { return (*x.enabled.Load())[q] }

// Queues returns the queues with an enabled trigger.
func (x *Index) Queues() []Queue { return slices.Collect(maps.Keys(*x.enabled.Load())) }

// ReadSoon has the triggers read again. It does not block.
func (x *Index) ReadSoon() {
	select {
	case x.changed <- struct{}{}:
	default: // a token is there already
	}
}

// Follow reads the triggers until ctx ends: at the beginning, after ReadSoon, and each readEvery.
// changed is called for each trigger that is new or has changed.
func (x *Index) Follow(ctx context.Context, changed func(Queue), logger *zap.Logger) {
	failing := false
	for ctx.Err() == nil {
		queues, err := x.read(ctx)
		wait := readEvery - rand.N(readEvery/10) // so that replicas do not read at the same time
		if err != nil {
			wait = readAgain
			if !failing && ctx.Err() == nil {
				logger.Warn("reading queue triggers failed", zap.Error(err))
			}
		}
		failing = err != nil
		for _, q := range queues {
			changed(q)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-x.changed:
			_ = sleep.For(ctx, readPause) // ctx is looked at by the loop
		}
		timer.Stop()
	}
}

// read reads all triggers. It returns the queues whose trigger is new or has changed.
func (x *Index) read(ctx context.Context) (changed []Queue, err error) {
	all, err := x.repository.All(ctx)
	if err != nil {
		return nil, err
	}
	before, enabled := *x.enabled.Load(), make(map[Queue]*Found, len(all))
	for i := range all {
		t := &all[i]
		if !t.Enabled {
			continue
		}
		q := Queue{t.Tenant, t.Namespace, t.Queue}
		enabled[q] = t
		if before[q] == nil || before[q].Revision != t.Revision || before[q].CreatedAtMS != t.CreatedAtMS {
			changed = append(changed, q)
		}
	}
	x.enabled.Store(&enabled)
	return changed, nil
}
