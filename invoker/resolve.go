package invoker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"

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

// target names a function and a version or alias of it.
type target struct {
	tenant, namespace, function string
	ref                         api.Ref
}

// resolution is the version that a target named when it was read.
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
// the entries of its function at once; a lost notice delays a change by at most a second.
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

func (r *resolver) load(ctx context.Context, t target) (*resolution, error) {
	before := r.changes.Load()
	found, err := r.versions.Resolve(ctx, t.tenant, t.namespace, t.function, t.ref)
	if err != nil {
		return nil, err
	}
	return &resolution{Resolved: found, raced: r.changes.Load() != before}, nil
}

// invalidate drops the resolutions of a function.
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

func (r *resolver) close() { r.cache.StopAllGoroutines() }
