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

// checkEvery is the interval of checks whether a binding's functions exist.
const checkEvery = 30 * time.Second

// binding is one worker binding on this replica: its current worker, and earlier workers
// until they have drained. They share slots and counts, so that the limit holds for all of them
// together. After a change from revision 4 to 5:
//
//	revision 5 is read          the worker of 4 is retired, the worker of 5 starts
//	polls of 4 in progress      return within pollGrace or are cancelled
//	a task that 4 polled        runs with the functions of revision 5, see target
//	the last task of 4 started  the worker of 4 stops; its tasks run on and are answered
type binding struct {
	s      *Supervisor
	path   storage.BindingPath
	slots  *slots
	counts counts
	logger *zap.Logger

	// latest is the record as it was last read, never nil.
	latest atomic.Pointer[bindings.Record]

	mu      sync.Mutex // guards the fields below; it may be locked while Supervisor.mu is
	worker  *activityWorker
	problem string // of the functions, "" for none
	checked time.Time

	lastReport api.BindingReplica // used by the report loop only
}

// counts are the counts of a binding's workers on this replica, since this process has had the
// binding. lastPollMS is a Unix time in milliseconds; taken counts delivered tasks, inFlight those
// of them that execute has not finished.
type counts struct {
	lastPollMS, taken, completed, failed, cancelled, inFlight atomic.Int64
}

func newBinding(s *Supervisor, path storage.BindingPath, stored *bindings.Record) *binding {
	b := &binding{s: s, path: path, slots: newSlots(), logger: s.logger.With(
		zap.String("tenant", path.Tenant), zap.String("namespace", path.Namespace), zap.String("worker", path.Name))}
	b.latest.Store(stored)
	return b
}

// apply applies the latest record with at most share pollers. Workers of the client cannot be
// changed: a binding that changed, or whose number of pollers did, gets a new worker, and the old
// one stops polling and finishes its tasks.
func (b *binding) apply(share int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stored := b.latest.Load()
	pollers := min(stored.Pollers.Activity, share)
	if b.worker != nil && b.worker.pollers == pollers && sameRevision(b.worker.stored, stored) {
		return
	}
	b.checked, b.problem = time.Time{}, ""
	b.retire()
	if !stored.Enabled || b.s.conn == nil {
		return
	}
	b.slots.resize(stored.Limits.MaxInflightTasks)
	b.worker = newActivityWorker(b, stored, pollers)
	if reason := b.worker.fewerPollers(); reason != "" {
		b.logger.Info("worker " + reason)
	}
	w := b.worker
	b.s.polling.Go(w.run)
}

// sameRevision reports whether two records of a binding's name are of the same revision. A binding
// that was deleted and created again begins at revision 1.
func sameRevision(a, b *bindings.Record) bool {
	return a.Revision == b.Revision && a.CreatedAtMS == b.CreatedAtMS
}

// stop stops polling for tasks.
func (b *binding) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retire()
}

// retire lets the worker drain, if there is one; mu must be held.
func (b *binding) retire() {
	if b.worker != nil {
		b.worker.retire()
		b.worker = nil
	}
}

// target returns the target of an activity type and the record that has it. A type that
// this replica does not know may have been added just now, so the record is read again.
func (b *binding) target(ctx context.Context, w *activityWorker, kind string) (*bindings.Record, api.JobTarget, bool) {
	for _, known := range []*bindings.Record{b.latest.Load(), w.stored} {
		if target, ok := known.ActivityMap[kind]; ok {
			return known, target, true
		}
	}
	stored, err := b.s.bindings.Get(ctx, b.path)
	if err != nil {
		b.logger.Warn("unknown activity type, and reading the binding failed", zap.String("activity_type", kind), zap.Error(err))
		return nil, api.JobTarget{}, false
	}
	target, ok := stored.ActivityMap[kind]
	return stored, target, ok
}

// check checks every checkEvery whether the binding's functions exist.
func (b *binding) check(ctx context.Context) {
	b.mu.Lock()
	stored, idle := b.latest.Load(), b.worker == nil || time.Since(b.checked) < checkEvery
	b.mu.Unlock()
	if idle {
		return
	}
	problem := ""
	for _, kind := range stored.ActivityTypes() {
		target := stored.ActivityMap[kind]
		_, err := b.s.versions.Resolve(ctx, b.path.Tenant, b.path.Namespace, target.Function, target.Ref())
		if missing(err) {
			if problem == "" {
				problem = functionMissing(kind, target.Function, err) // the first by name, so that the report is stable
			}
			b.logger.Warn("worker binding names a missing function", zap.String("activity_type", kind),
				zap.String("function", target.Function), zap.Error(err))
		} else if err != nil {
			return // the store does not answer: keep the last result
		}
	}
	b.setProblem(problem)
}

// setProblem stores the problem of the binding's functions, "" for none.
func (b *binding) setProblem(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked, b.problem = time.Now(), problem
}

// missing reports whether err means that the target of a binding does not exist.
func missing(err error) bool {
	switch api.ErrorCode(err) {
	case api.CodeFunctionNotFound, api.CodeAliasNotFound, api.CodeVersionNotFound:
		return true
	}
	return false
}

// functionMissing returns the problem of a binding whose activity kind names a missing function.
func functionMissing(kind, function string, err error) string {
	return fmt.Sprintf("activity %q: function %q cannot be run: %s", kind, function, api.ErrorCode(err))
}
