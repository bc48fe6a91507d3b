package quotas

import (
	"context"

	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
)

// summed are the quotas whose amounts are sums over records.
var summed = []quota.Name{quota.Versions, quota.Aliases, quota.BundleBytes, quota.ScheduleBytes}

// Walk counts all records of one tenant, in steps, and corrects the amounts at the end. It is not
// safe for concurrent use.
type Walk struct {
	s      *storage.Store
	tenant string

	before []string // the summed amounts at the beginning; nil before it
	sums   map[quota.Name]int64

	namespaces []string // that are still to be counted
	names      []string // functions of the first of them that are still to be counted
	after      string   // the last function of the first of them that was read
	scheduled  bool     // its functions are counted, and its schedules are not
	listed     bool     // the names of its schedules are read
	schedules  []string // that are still to be counted

	function string // whose versions are counted
	version  int64  // the last one that is still to be counted, 0 for none
}

// NewWalk returns a walk over the records of a tenant, at its beginning.
func NewWalk(s *storage.Store, tenant string) *Walk {
	return &Walk{s: s, tenant: tenant, sums: map[quota.Name]int64{}}
}

// Tenant returns the tenant whose records are counted.
func (w *Walk) Tenant() string { return w.tenant }

// Step takes a step. It returns the number of commands that it took, about, and whether the walk
// has ended. CodeStoreUnavailable.
func (w *Walk) Step(ctx context.Context) (reads int, end bool, err error) {
	switch {
	case w.before == nil:
		reads, err = w.begin(ctx)
		return reads, false, err
	case w.version > 0:
		return 1, false, w.versions(ctx)
	case len(w.names) > 0:
		return 1, false, w.countFunction(ctx)
	case len(w.namespaces) > 0 && !w.scheduled:
		return 1, false, w.functions(ctx)
	case len(w.namespaces) > 0:
		reads, err = w.countSchedules(ctx)
		return reads, false, err
	}
	return 1, true, correct(ctx, w.s, w.tenant, summed, w.before, w.sums)
}

// begin counts the indexed records and lists the namespaces.
func (w *Walk) begin(ctx context.Context) (reads int, err error) {
	reads, err = Count(ctx, w.s, w.tenant)
	if err != nil {
		return reads, err
	}
	c := &counter{s: w.s, tenant: w.tenant}
	w.namespaces, err = c.members(ctx, w.s.Keys().Namespaces(w.tenant))
	if err != nil {
		return reads, err
	}
	w.before, err = beforeCount(ctx, w.s, w.tenant, summed)
	return reads + c.commands + 1, err
}

// functions reads a page of the names of the first namespace's functions.
func (w *Walk) functions(ctx context.Context) (err error) {
	w.names, w.after, err = storage.NewFunctions(w.s).Names(ctx, w.tenant, w.namespaces[0], w.after, countPage)
	w.scheduled = err == nil && w.after == ""
	return err
}

// countFunction adds the versions and aliases of the next function.
func (w *Walk) countFunction(ctx context.Context) error {
	w.function, w.names = w.names[0], w.names[1:]
	latest, aliases, err := storage.NewVersions(w.s).Counts(ctx, storage.FunctionPath{Tenant: w.tenant, Namespace: w.namespaces[0], Function: w.function})
	if err != nil {
		return err
	}
	w.sums[quota.Versions] += latest
	w.sums[quota.Aliases] += aliases
	w.version = latest
	return nil
}

// versions adds the sizes of a page of the function's versions.
func (w *Walk) versions(ctx context.Context) error {
	items, next, err := storage.NewVersions(w.s).List(ctx, w.tenant, w.namespaces[0], w.function, w.version+1, countPage)
	if err != nil {
		return err
	}
	for i := range items {
		w.sums[quota.BundleBytes] += items[i].SizeBytes
	}
	w.version = max(0, next-1)
	return nil
}

// countSchedules adds the bytes of some schedules of the first namespace, and ends it after the
// last of them.
func (w *Walk) countSchedules(ctx context.Context) (reads int, err error) {
	repository, namespace := schedules.New(w.s), w.namespaces[0]
	if !w.listed {
		w.schedules, reads, err = repository.AllNames(ctx, w.tenant, namespace)
		if err != nil {
			return reads, err
		}
		w.listed = true
	}
	paths := make([]storage.SchedulePath, min(len(w.schedules), countPage/10)) // records may have 64 KiB
	for i := range paths {
		paths[i] = storage.SchedulePath{Tenant: w.tenant, Namespace: namespace, Name: w.schedules[i]}
	}
	if len(paths) > 0 {
		loaded, err := repository.LoadMany(ctx, paths)
		reads++
		if err != nil {
			return reads, err
		}
		for i := range loaded {
			s := &loaded[i]
			if s.Err != nil {
				return reads, s.Err
			}
			if s.Meta != nil {
				w.sums[quota.ScheduleBytes] += s.Meta.BytesPerMinute(len(s.Raw))
			}
		}
	}
	w.schedules = w.schedules[len(paths):]
	if len(w.schedules) == 0 {
		w.namespaces, w.scheduled, w.listed = w.namespaces[1:], false, false
	}
	return reads, nil
}

// Rates returns the rest of the rates of a tenant in the store, in the unit of each quota.
// A rate that was never leased is missing. CodeStoreUnavailable.
func Rates(ctx context.Context, s *storage.Store, tenant string, limits quota.TenantLimits) (map[quota.Name]int64, error) {
	var quotas []quota.Name
	for _, q := range quota.Rates() {
		if limits.Of(q) >= 0 {
			quotas = append(quotas, q)
		}
	}
	left := map[quota.Name]int64{}
	if len(quotas) == 0 {
		return left, nil
	}
	now := s.NowMS()
	asks := make([]ask, len(quotas))
	for i, q := range quotas {
		asks[i] = ask{q, float64(limits.Of(q)) * unit(q), 0}
	}
	call := leaseCall(s.Keys().QuotaRates(tenant), now, asks)
	if s.Client().Exists(ctx, call.Keys[0]).Val() == 0 {
		return left, nil
	}
	reply, err := s.Script(ctx, storage.ScriptQuotaLease, call.Keys, call.Args...)
	if err != nil {
		return nil, err
	}
	parts, _ := reply.([]any)
	for i, q := range quotas {
		if 2*i+1 < len(parts) {
			left[q] = int64(number(parts[2*i+1]) / unit(q))
		}
	}
	return left, nil
}
