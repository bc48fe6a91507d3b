package invoker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
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

// target names a function and a version or alias of it. It is the key of the cache: a call
// of version 3 and a call of the alias prod that names version 3 are two entries.
type target struct {
	tenant, namespace, function string
	ref                         api.Ref
}

// resolution is the version that a target named when it was read. It is shared by all calls
// that find it in the cache and, apart from program, is never changed.
type resolution struct {
	storage.Resolved
	// raced reports that a change notice came while this was being read: it may be old, and
	// is read once more before it is used.
	raced bool

	programOnce sync.Once
	program     *sandbox.Program // see Invoker.program
}

// versionSource reads resolutions from the store.
type versionSource interface {
	Resolve(ctx context.Context, tenant, namespace, function string, ref api.Ref) (storage.Resolved, error)
}

// resolver turns aliases into versions through a short-lived cache. A change notice drops
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
type resolver struct {
	versions versionSource
	cache    *otter.Cache[target, *resolution]
	// changes counts invalidations, so that a load can tell that one passed it.
	changes atomic.Uint64
}

func newResolver(versions versionSource) (*resolver, error) {
	cache, err := otter.New(&otter.Options[target, *resolution]{
		MaximumSize:       resolveEntries,
		ExpiryCalculator:  otter.ExpiryWriting[target, *resolution](resolveTTL),
		RefreshCalculator: otter.RefreshWriting[target, *resolution](resolveRefresh),
		StatsRecorder:     stats.NewCounter(),
		Logger:            &otter.NoopLogger{}, // a failed refresh shows at the next load
	})
	if err != nil {
		return nil, err
	}
	return &resolver{versions: versions, cache: cache}, nil
}

// resolve returns the version that t names, at most a second old. Errors: those of
// storage.Versions.Resolve; they are not cached.
//
// Concurrent callers of one target share one load. A caller whose ctx ends still waits for
// the load, which the store bounds.
func (r *resolver) resolve(ctx context.Context, t target) (*resolution, error) {
	// One caller's load serves all callers that wait for it: it must outlive that caller.
	detached := context.WithoutCancel(ctx)
	res, err := r.cache.Get(detached, t, otter.LoaderFunc[target, *resolution](r.load))
	if err == nil && res.raced {
		r.cache.Invalidate(t)
		res, err = r.load(detached, t)
	}
	return res, err
}

// load reads t from the store. The cache calls it, once for concurrent callers of one
// target, and again in the background for entries older than resolveRefresh.
func (r *resolver) load(ctx context.Context, t target) (*resolution, error) {
	before := r.changes.Load()
	found, err := r.versions.Resolve(ctx, t.tenant, t.namespace, t.function, t.ref)
	if err != nil {
		return nil, err
	}
	return &resolution{Resolved: found, raced: r.changes.Load() != before}, nil
}

// invalidate drops the resolutions of a function. It counts the change first, so that a
// load that has read the old state and is not in the cache yet is marked raced.
func (r *resolver) invalidate(tenant, namespace, function string) {
	r.changes.Add(1)
	for key := range r.cache.Keys() {
		if key.tenant == tenant && key.namespace == namespace && key.function == function {
			r.cache.Invalidate(key)
		}
	}
}

// invalidateAll drops all resolutions: change notices may have been missed.
func (r *resolver) invalidateAll() {
	r.changes.Add(1)
	r.cache.InvalidateAll()
}

// close ends the goroutines of the cache; resolve must not be called any more.
func (r *resolver) close() { r.cache.StopAllGoroutines() }

// FunctionChanged drops the cached resolutions of a function, on this replica at once and on
// the others by a notice, which may be lost.
func (i *Invoker) FunctionChanged(ctx context.Context, tenant, namespace, function string) {
	i.resolver.invalidate(tenant, namespace, function)
	change := storage.Change{Kind: storage.ChangeFunction, Tenant: tenant, Namespace: namespace, Function: function}
	if err := i.store.PublishChange(ctx, change); err != nil {
		i.logger.Warn("a change notice was not sent", zap.String("tenant", tenant), zap.String("namespace", namespace),
			zap.String("function", function), zap.Error(err))
	}
}
