package triggers

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
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

// Space locates a namespace.
type Space struct{ Tenant, Namespace string }

// Index is a replica's view of the enabled triggers of all tenants. It is readEvery old at most
// if notices of changes are lost. It is safe for concurrent use.
type Index struct {
	repository *Repository
	enabled    atomic.Pointer[view] // never nil
	changed    chan struct{}        // holds a token if a trigger may have changed

	mu    sync.Mutex
	stale map[Space]struct{} // to be read again
	all   bool               // all are to be read again
}

// view are the enabled triggers of each namespace by queue. It does not change.
type view map[Space]map[string]*Found

// NewIndex returns an empty view, which Follow fills.
func NewIndex(r *Repository) *Index {
	x := &Index{repository: r, changed: make(chan struct{}, 1), stale: map[Space]struct{}{}}
	x.enabled.Store(&view{})
	return x
}

// Of returns the enabled trigger of a queue, nil if there is none.
func (x *Index) Of(q Queue) *Found {
	return (*x.enabled.Load())[Space{q.Tenant, q.Namespace}][q.Queue]
}

// Some returns the queues with an enabled trigger, but at most most of each tenant, which are
// others at each call.
func (x *Index) Some(most int) []Queue {
	tenants, seen := map[string][]Queue{}, map[string]int{}
	for at, triggers := range *x.enabled.Load() {
		for name := range triggers {
			q := Queue{at.Tenant, at.Namespace, name}
			seen[at.Tenant]++
			if n := seen[at.Tenant]; n <= most {
				tenants[at.Tenant] = append(tenants[at.Tenant], q)
			} else if k := rand.N(n); k < most { // each of the n has the same chance
				tenants[at.Tenant][k] = q
			}
		}
	}
	return slices.Concat(slices.Collect(maps.Values(tenants))...)
}

// ReadSoon has the triggers of a namespace read again. It does not block.
func (x *Index) ReadSoon(at Space) {
	x.mu.Lock()
	x.stale[at] = struct{}{}
	x.mu.Unlock()
	x.wake()
}

// ReadAllSoon has all triggers read again. It does not block.
func (x *Index) ReadAllSoon() {
	x.mu.Lock()
	x.all = true
	x.mu.Unlock()
	x.wake()
}

func (x *Index) wake() {
	select {
	case x.changed <- struct{}{}:
	default: // a token is there already
	}
}

// Follow reads the triggers until ctx ends: all of them at the beginning and each readEvery, and
// those of a namespace after ReadSoon. changed is called for each trigger that is new or has
// changed.
func (x *Index) Follow(ctx context.Context, changed func(Queue), logger *zap.Logger) {
	failing, nextAll := false, time.Now()
	for ctx.Err() == nil {
		if !time.Now().Before(nextAll) {
			x.ReadAllSoon()
		}
		all, queues, err := x.read(ctx)
		switch {
		case err != nil:
			nextAll = time.Now().Add(readAgain)
			if !failing && ctx.Err() == nil {
				logger.Warn("reading queue triggers failed", zap.Error(err))
			}
		case all:
			nextAll = time.Now().Add(readEvery - rand.N(readEvery/10)) // so that replicas do not read at the same time
		}
		failing = err != nil
		for _, q := range queues {
			changed(q)
		}
		timer := time.NewTimer(time.Until(nextAll))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-x.changed:
			_ = sleep.For(ctx, readPause) // ctx is looked at by the loop
		}
		timer.Stop()
	}
}

// read reads the triggers that are to be read again. It returns whether these were all, and the
// queues whose trigger is new or has changed.
func (x *Index) read(ctx context.Context) (all bool, changed []Queue, err error) {
	x.mu.Lock()
	all, stale := x.all, x.stale
	x.all, x.stale = false, map[Space]struct{}{}
	x.mu.Unlock()
	before := *x.enabled.Load()
	after := view{}
	if all {
		found, err := x.repository.All(ctx)
		if err != nil {
			return false, nil, err
		}
		after.add(found)
	} else {
		after = maps.Clone(before)
		for at := range stale {
			found, err := x.repository.InNamespace(ctx, at.Tenant, at.Namespace)
			if err != nil {
				return false, nil, err
			}
			delete(after, at)
			after.add(found)
		}
	}
	x.enabled.Store(&after)
	for at, triggers := range after {
		if _, read := stale[at]; !all && !read {
			continue
		}
		for name, t := range triggers {
			if held := before[at][name]; held == nil || held.Revision != t.Revision || held.CreatedAtMS != t.CreatedAtMS {
				changed = append(changed, Queue{at.Tenant, at.Namespace, name})
			}
		}
	}
	return all, changed, nil
}

// add adds those of found that are enabled.
func (v view) add(found []Found) {
	for i := range found {
		t := &found[i]
		if !t.Enabled {
			continue
		}
		at := Space{t.Tenant, t.Namespace}
		if v[at] == nil {
			v[at] = map[string]*Found{}
		}
		v[at][t.Queue] = t
	}
}
