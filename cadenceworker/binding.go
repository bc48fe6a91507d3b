package cadenceworker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

// checkEvery is how often it is looked whether a binding's functions are there.
const checkEvery = 30 * time.Second

// binding is what this replica does for one worker binding: one worker, and those
// before it until they have drained.
type binding struct {
	s      *Supervisor
	path   storage.BindingPath
	places *places
	counts counts
	logger *zap.Logger

	// latest is the record as it was read last.
	latest atomic.Pointer[bindings.Record]

	mu      sync.Mutex // of what follows; Supervisor.mu may be held before it
	worker  *activityWorker
	wrong   string // what is wrong with the functions
	checked time.Time

	told api.BindingReplica // the last report; of the loop that reports alone
}

// counts is what the workers of a binding did here.
type counts struct {
	lastPollMS, taken, completed, failed, cancelled, inFlight atomic.Int64
}

func newBinding(s *Supervisor, path storage.BindingPath) *binding {
	return &binding{s: s, path: path, places: newPlaces(), logger: s.logger.With(
		zap.String("tenant", path.Tenant), zap.String("namespace", path.Namespace), zap.String("worker", path.Name))}
}

// apply makes the work here what the record says. The client can forget no activity
// type and changes no setting: a changed binding gets a new worker, beside the old
// one, which takes no more tasks and finishes those that it has.
func (b *binding) apply(stored *bindings.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.latest.Swap(stored)
	same := before != nil && before.Revision == stored.Revision && before.CreatedAtMS == stored.CreatedAtMS
	if same {
		return
	}
	b.checked, b.wrong = time.Time{}, ""
	b.retire()
	if !stored.Enabled || b.s.conn == nil {
		return
	}
	b.places.resize(stored.Limits.MaxInflightTasks)
	b.worker = newActivityWorker(b, stored)
	w := b.worker
	b.s.polling.Go(w.run)
}

// stop ends the taking of tasks.
func (b *binding) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retire()
}

// retire lets the worker, if there is one, drain; mu is held.
func (b *binding) retire() {
	if b.worker != nil {
		b.worker.retire()
		b.worker = nil
	}
}

// target is what runs an activity type now, and on whose behalf. A type that this
// replica does not know may be one that the binding just got.
func (b *binding) target(ctx context.Context, w *activityWorker, kind string) (*bindings.Record, api.JobTarget, bool) {
	for _, known := range []*bindings.Record{b.latest.Load(), w.stored} {
		if target, ok := known.ActivityMap[kind]; ok {
			return known, target, true
		}
	}
	stored, err := b.s.bindings.Get(ctx, b.path)
	if err != nil {
		b.logger.Warn("an activity type is not known, and the binding cannot be read", zap.String("activity_type", kind), zap.Error(err))
		return nil, api.JobTarget{}, false
	}
	target, ok := stored.ActivityMap[kind]
	return stored, target, ok
}

// check looks whether the binding's functions are there, from time to time.
func (b *binding) check(ctx context.Context) {
	b.mu.Lock()
	stored, idle := b.latest.Load(), b.worker == nil || time.Since(b.checked) < checkEvery
	b.mu.Unlock()
	if idle {
		return
	}
	wrong := ""
	for _, kind := range stored.ActivityTypes() {
		target := stored.ActivityMap[kind]
		_, err := b.s.versions.Resolve(ctx, b.path.Tenant, b.path.Namespace, target.Function, target.Ref())
		if missing(err) {
			if wrong == "" {
				wrong = functionMissing(kind, target.Function, err) // the first by name: it stays the same
			}
			b.logger.Warn("a worker binding names a function that is not there", zap.String("activity_type", kind),
				zap.String("function", target.Function), zap.Error(err))
		} else if err != nil {
			return // the store does not answer: nothing is known
		}
	}
	b.note(wrong)
}

// note keeps what is wrong with the functions, "" for nothing.
func (b *binding) note(wrong string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked, b.wrong = time.Now(), wrong
}

// missing says whether err is that what a binding names is not there.
func missing(err error) bool {
	switch api.ErrorCode(err) {
	case api.CodeFunctionNotFound, api.CodeAliasNotFound, api.CodeVersionNotFound:
		return true
	}
	return false
}

func functionMissing(kind, function string, err error) string {
	return fmt.Sprintf("activity %q: function %q cannot be run: %s", kind, function, api.ErrorCode(err))
}
