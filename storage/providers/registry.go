package providers

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage"
)

// How circuits open. A provider that reports overload or a rate limit opens its circuit at the first
// failure, others at the third one in a row.
const (
	openAfter    = 3
	shortestOpen = 500 * time.Millisecond
	longestOpen  = time.Minute
	// longestAsked bounds the time that a provider asks for.
	longestAsked = 10 * time.Minute
	probeWithin  = 30 * time.Second

	cachedMS      = 5_000
	cachedTenants = 1000
)

// Circuit is the state of a provider that fails. It is open until UntilMS, and then half-open: one call
// at a time is a probe, whose success closes it.
type Circuit struct{ UntilMS, OpenedMS, Failures int64 }

// View has the providers and the circuits of a tenant, as a replica knows them.
type View struct {
	Providers map[string]*ai.Provider
	circuits  map[string]Circuit
	atMS      int64
}

// Registry is the view of a replica of the providers of all tenants. A change applies on all replicas
// through a notice, at the latest after 5 s. It is safe for concurrent use.
type Registry struct {
	repository *Repository
	s          *storage.Store
	cache      *otter.Cache[string, *View]

	// changes counts the notices: what was read before one must not be cached after it.
	changes atomic.Int64
}

// NewRegistry returns the registry of the providers in s. The caller passes notices to OnChange.
func NewRegistry(s *storage.Store) (*Registry, error) {
	cache, err := otter.New(&otter.Options[string, *View]{MaximumSize: cachedTenants})
	if err != nil {
		return nil, fmt.Errorf("providers: %w", err)
	}
	return &Registry{repository: New(s), s: s, cache: cache}, nil
}

// OnChange makes the next use of a tenant's providers read them again.
func (r *Registry) OnChange(c storage.Change) {
	switch c.Kind {
	case storage.ChangeProvider:
		r.Forget(c.Tenant)
	case storage.ChangeResubscribed:
		r.changes.Add(1)
		r.cache.InvalidateAll()
	}
}

// Older reports whether a view was read longer ago than age.
func (r *Registry) Older(v *View, age time.Duration) bool {
	return r.s.NowMS()-v.atMS > age.Milliseconds()
}

// Forget makes the next use of a tenant's providers read them again.
func (r *Registry) Forget(tenant string) {
	r.changes.Add(1)
	r.cache.Invalidate(tenant)
}

// View returns a tenant's providers. It must not be changed. Errors: CodeStoreUnavailable.
func (r *Registry) View(ctx context.Context, tenant string) (*View, error) {
	now := r.s.NowMS()
	if v, ok := r.cache.GetIfPresent(tenant); ok && now-v.atMS < cachedMS && now >= v.atMS {
		return v, nil
	}
	before := r.changes.Load()
	v, err := r.read(ctx, tenant, now)
	if err != nil {
		return nil, err
	}
	r.cache.Set(tenant, v)
	if r.changes.Load() != before {
		r.cache.Invalidate(tenant)
	}
	return v, nil
}

func (r *Registry) read(ctx context.Context, tenant string, now int64) (*View, error) {
	k, pipe := r.s.Keys(), r.s.Client().Pipeline()
	records, circuits := pipe.HGetAll(ctx, k.Providers(tenant, partRecords)), pipe.HGetAll(ctx, k.Providers(tenant, partCircuits))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read providers", err)
	}
	found, _, err := decode(records.Val())
	if err != nil {
		return nil, err
	}
	v := &View{Providers: found, circuits: map[string]Circuit{}, atMS: now}
	for name, text := range circuits.Val() {
		var c Circuit
		if _, err := fmt.Sscanf(text, "%d %d %d", &c.UntilMS, &c.OpenedMS, &c.Failures); err != nil {
			return nil, api.Wrap(api.CodeInternal, err, "decode a circuit")
		}
		v.circuits[name] = c
	}
	return v, nil
}

// Circuit returns the circuit of a provider; the zero Circuit is closed.
func (v *View) Circuit(name string) Circuit { return v.circuits[name] }

// Circuits returns the circuits of a tenant's providers that fail, as they are stored.
func (r *Repository) Circuits(ctx context.Context, tenant string) (map[string]Circuit, error) {
	g := &Registry{repository: r, s: r.s}
	v, err := g.read(ctx, tenant, r.s.NowMS())
	if err != nil {
		return nil, err
	}
	return v.circuits, nil
}

// Failure is a failure of a provider. BeganMS is when its call began. RetryAfter is how long the
// provider asked to wait, 0 for none. Overloaded reports that it refused the call for a limit or its
// load, so that further calls are useless.
type Failure struct {
	BeganMS    int64
	RetryAfter time.Duration
	Overloaded bool
}

// Failed counts a failure of a provider, and returns its circuit. Errors: CodeStoreUnavailable.
func (r *Registry) Failed(ctx context.Context, tenant, name string, f Failure) (Circuit, error) {
	threshold := openAfter
	if f.Overloaded {
		threshold = 1
	}
	_, c, err := r.change(ctx, tenant, name, "fail", f.BeganMS, min(f.RetryAfter, longestAsked), threshold)
	return c, err
}

// Probe reports whether the caller may probe a provider whose circuit is half-open; another caller may
// do so already. Errors: CodeStoreUnavailable.
func (r *Registry) Probe(ctx context.Context, tenant, name string) (bool, Circuit, error) {
	return r.change(ctx, tenant, name, "probe", 0, 0, openAfter)
}

// Release lets another caller probe a provider: the probe that made c has ended without a result. Errors:
// CodeStoreUnavailable.
func (r *Registry) Release(ctx context.Context, tenant, name string, c Circuit) error {
	_, _, err := r.change(ctx, tenant, name, "release", c.UntilMS, 0, openAfter)
	return err
}

// Succeeded closes the circuit of a provider after a call that began at beganMS. Errors:
// CodeStoreUnavailable.
func (r *Registry) Succeeded(ctx context.Context, tenant, name string, beganMS int64) error {
	_, _, err := r.change(ctx, tenant, name, "close", beganMS, 0, openAfter)
	return err
}

// change changes a circuit, and notifies the replicas if it did.
func (r *Registry) change(ctx context.Context, tenant, name, op string, began int64, delay time.Duration, threshold int) (bool, Circuit, error) {
	k := r.s.Keys()
	reply, err := r.s.Script(ctx, scriptCircuit, []string{k.Providers(tenant, partCircuits), k.Providers(tenant, partRecords)},
		op, name, r.s.NowMS(), began, delay.Milliseconds(), threshold, shortestOpen.Milliseconds(), longestOpen.Milliseconds(), probeWithin.Milliseconds())
	if err != nil {
		return false, Circuit{}, err
	}
	n, err := numbers(reply, 4)
	if err != nil {
		return false, Circuit{}, err
	}
	if n[0] == 1 {
		r.Forget(tenant)
		r.repository.notify(ctx, tenant)
	}
	return n[0] == 1, Circuit{n[1], n[2], n[3]}, nil
}

// numbers returns a reply of at least count numbers.
func numbers(reply any, count int) ([]int64, error) {
	items, ok := reply.([]any)
	out := make([]int64, 0, len(items))
	for _, item := range items {
		switch v := item.(type) {
		case int64:
			out = append(out, v)
		case string:
			n, err := strconv.ParseInt(v, 10, 64)
			ok = ok && err == nil
			out = append(out, n)
		}
	}
	if !ok || len(out) < count {
		return nil, api.Errorf(api.CodeInternal, "the store replied %v to a script of providers", reply)
	}
	return out, nil
}
