// Package resolve turns aliases of functions into versions, through a short-lived cache.
package resolve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage"
)

// A resolution is used for at most resolveTTL, which together with the duration of a load
// stays under the promised second. One older than resolveRefresh is read again in the
// background, so that steady traffic never waits for the store.
const (
	resolveTTL     = 800 * time.Millisecond
	resolveRefresh = 400 * time.Millisecond
	resolveEntries = 20_000
)

// Target names a function and a version or alias of it. It is the key of the cache: a call
// of version 3 and a call of the alias prod that names version 3 are two entries.
type Target struct {
	Tenant, Namespace, Function string
	Ref                         api.Ref
}

// Resolution is the version that a target named when it was read. It is shared by all calls
// that find it in the cache and, apart from program, is never changed.
type Resolution struct {
	storage.Resolved
	// raced reports that a change notice came while this was being read: it may be old, and
	// is read once more before it is used.
	raced bool

	programOnce sync.Once
	program     *sandbox.Program
}

// Program returns what build returns at the first call.
func (r *Resolution) Program(build func() *sandbox.Program) *sandbox.Program {
	r.programOnce.Do(func() { r.program = build() })
	return r.program
}

// Source reads resolutions from the store.
type Source interface {
	Resolve(ctx context.Context, tenant, namespace, function string, ref api.Ref) (storage.Resolved, error)
}

// Resolver is the cache. A change notice drops
// the entries of its function immediately; a lost notice delays a change by at most a
// second.
//
// A notice can arrive while the store is being read, and then drops nothing:
//
//	load:    reads changes = 7
//	load:    the store answers: prod is version 3
//	         prod is moved to version 4; its notice arrives: changes = 8, no entry to drop
//	load:    changes is not 7: the resolution is marked raced
//	resolve: drops the entry and reads once more: version 4
type Resolver struct {
	versions Source
	cache    *otter.Cache[Target, *Resolution]
	// changes counts invalidations, so that a load can tell that one passed it.
	changes atomic.Uint64
}

// New returns a Resolver of versions. Its Close must be called.
func New(versions Source) (*Resolver, error) {
	cache, err := otter.New(&otter.Options[Target, *Resolution]{
		MaximumSize:       resolveEntries,
		ExpiryCalculator:  otter.ExpiryWriting[Target, *Resolution](resolveTTL),
		RefreshCalculator: otter.RefreshWriting[Target, *Resolution](resolveRefresh),
		StatsRecorder:     stats.NewCounter(),
		Logger:            &otter.NoopLogger{}, // a failed refresh shows at the next load
	})
	if err != nil {
		return nil, err
	}
	return &Resolver{versions: versions, cache: cache}, nil
}

// Through has versions read through the source that wrap returns for the present one. It precedes the
// first Resolve.
func (r *Resolver) Through(wrap func(Source) Source) { r.versions = wrap(r.versions) }

// Resolve returns the version that t names, at most a second old. Errors: those of
// storage.Versions.Resolve; they are not cached.
//
// Concurrent callers of one target share one load. A caller whose ctx ends still waits for
// the load, which the store bounds.
func (r *Resolver) Resolve(ctx context.Context, t Target) (*Resolution, error) {
	// One caller's load serves all callers that wait for it: it must outlive that caller.
	detached := context.WithoutCancel(ctx)
	res, err := r.cache.Get(detached, t, otter.LoaderFunc[Target, *Resolution](r.Load))
	if err == nil && res.raced {
		r.cache.Invalidate(t)
		res, err = r.Load(detached, t)
	}
	return res, err
}

// Load reads t from the store. The cache calls it, once for concurrent callers of one
// target, and again in the background for entries older than resolveRefresh.
func (r *Resolver) Load(ctx context.Context, t Target) (*Resolution, error) {
	before := r.changes.Load()
	found, err := r.versions.Resolve(ctx, t.Tenant, t.Namespace, t.Function, t.Ref)
	if err != nil {
		return nil, err
	}
	return &Resolution{Resolved: found, raced: r.changes.Load() != before}, nil
}

// Invalidate drops the resolutions of a function. It counts the change first, so that a
// load that has read the old state and is not in the cache yet is marked raced.
func (r *Resolver) Invalidate(tenant, namespace, function string) {
	r.changes.Add(1)
	for key := range r.cache.Keys() {
		if key.Tenant == tenant && key.Namespace == namespace && key.Function == function {
			r.cache.Invalidate(key)
		}
	}
}

// InvalidateAll drops all resolutions: change notices may have been missed.
func (r *Resolver) InvalidateAll() {
	r.changes.Add(1)
	r.cache.InvalidateAll()
}

// Close ends the goroutines of the cache; Resolve must not be called any more.
func (r *Resolver) Close() { r.cache.StopAllGoroutines() }

// Collector returns the metrics of the cache.
func (r *Resolver) Collector() prometheus.Collector { return metrics.NewCache("resolutions", r.cache) }
