package invoker

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/triggers"
)

const (
	// readTriggersEvery is the interval between reads of all queue triggers: notices of changes
	// can be lost.
	readTriggersEvery = 30 * time.Second
	// readTriggersAgain is the interval after a failed read.
	readTriggersAgain = time.Second
)

// triggerIndex is this replica's view of the queue triggers of all tenants. It is seconds old
// at most if notices of changes are lost.
type triggerIndex struct {
	repository *triggers.Repository
	enabled    atomic.Pointer[map[queue.FunctionQueue]*triggers.Found] // never nil
	changed    chan struct{}                                           // holds a token if a trigger may have changed
}

func newTriggerIndex(store *storage.Store) *triggerIndex {
	x := &triggerIndex{repository: triggers.New(store), changed: make(chan struct{}, 1)}
	x.enabled.Store(&map[queue.FunctionQueue]*triggers.Found{})
	return x
}

// of returns the enabled trigger of a queue, nil if there is none.
func (x *triggerIndex) of(q queue.FunctionQueue) *triggers.Found { return (*x.enabled.Load())[q] }

// queues returns the queues with an enabled trigger.
func (x *triggerIndex) queues() []queue.FunctionQueue {
	return slices.Collect(maps.Keys(*x.enabled.Load()))
}

// readSoon has the triggers read again. It does not block.
func (x *triggerIndex) readSoon() {
	select {
	case x.changed <- struct{}{}:
	default: // a token is there already
	}
}

// read reads all triggers. It returns the queues whose trigger is new or has changed.
func (x *triggerIndex) read(ctx context.Context) (changed []queue.FunctionQueue, err error) {
	all, err := x.repository.All(ctx)
	if err != nil {
		return nil, err
	}
	before, enabled := *x.enabled.Load(), make(map[queue.FunctionQueue]*triggers.Found, len(all))
	for i := range all {
		t := &all[i]
		if !t.Enabled {
			continue
		}
		q := queue.FunctionQueue{Tenant: t.Tenant, Namespace: t.Namespace, Queue: t.Queue}
		enabled[q] = t
		if before[q] == nil || before[q].Revision != t.Revision || before[q].CreatedAtMS != t.CreatedAtMS {
			changed = append(changed, q)
		}
	}
	x.enabled.Store(&enabled)
	return changed, nil
}

// followTriggers reads the triggers until ctx ends: at the beginning, after notices of changes,
// and each readTriggersEvery.
func (w *worker) followTriggers(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		changed, err := w.triggers.read(ctx)
		wait := readTriggersEvery - rand.N(readTriggersEvery/10) // so that replicas do not read at the same time
		if err != nil {
			wait = readTriggersAgain
			if !failing && ctx.Err() == nil {
				w.i.logger.Warn("reading queue triggers failed", zap.Error(err))
			}
		}
		failing = err != nil
		for _, q := range changed {
			w.forget(q)
			w.markReady(q) // it may have jobs already
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.triggers.changed:
		}
		timer.Stop()
	}
}

// forget drops what was learned of the function of a queue, whose trigger may name another.
func (w *worker) forget(q queue.FunctionQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state(q).learned = false
}

// noticed handles a notice that a queue has work. Most queues have no trigger.
func (w *worker) noticed(q queue.FunctionQueue) {
	if q.OfFunction() || w.triggers.of(q) != nil {
		w.markReady(q)
	}
}
