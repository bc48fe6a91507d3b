// Package quotas keeps the limits of tenants: what each may store, and how fast its functions
// may run.
//
//	record.go  the limits that an administrator set, with those of the server for the rest
//	stored.go  amounts that a tenant stores: functions, jobs, bytes
//	count.go   the same, counted from the records themselves
//	walk.go    the same for all records of a tenant, in steps
//	rates.go   rates: calls a second, CPU seconds a minute
//	usage.go   the usage of a tenant, for the API
//	keeper.go  the Keeper, which caches the limits in force, and its loop
//
// An amount is a field of a hash in the store. One script compares it with the limit and adds to
// it, before the record is written, so that concurrent writers of all replicas cannot exceed the
// limit. Deletions and expiries lower it late or not at all: the amount is a bound from above.
// Before a request is refused, and in every pass of the sweeper, the records themselves are
// counted and the amount is corrected. This also repairs the effects of crashes, and computes
// the amounts of a store that was written by an earlier release: until then they are too low, so
// nothing is refused wrongly.
//
// A rate is a number of tokens in the store, of which each replica leases a share once a second,
// in the background, for the tenants that it serves. A call takes a token from the memory of its
// replica. Only a call that finds none waits for a lease, at most one each 100 ms. Together the
// replicas never lease more than the limit allows. All calls in a time t are therefore at most
// limit·t plus those of one period, whose tokens may have been saved up. Use that is known only after a
// call, such as its CPU time, is charged then: calls in flight can overdraw a share, and the
// following ones wait until the debt is paid. Egress is charged as the bytes flow: an exchange in
// flight ends when the debt exceeds a bound (Overdrawn).
//
// While the store does not answer, each replica grants itself the share that it leased last.
package quotas

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/storage"
)

// Config configures a Keeper. Zero values mean the documented defaults.
type Config struct {
	// Defaults are the limits of tenants for which none is set; zeros in it are those of
	// quota.DefaultTenantLimits.
	Defaults quota.TenantLimits
	// Interval is the time between two leases (default 1 s).
	Interval time.Duration
	// Logger receives warnings of quotas that are nearly used up (default: none).
	Logger *zap.Logger
	// Metrics exports the metrics (default: they are not exported).
	Metrics prometheus.Registerer
}

const (
	// refresh is how old the cached limits of a tenant may be without a notice.
	refresh = 30 * time.Second
	// idle is the time after which an unused tenant is forgotten. It is longer than a call may
	// take, because a call is charged at its end, and a forgotten tenant is not.
	idle = api.MaxTimeoutMS*time.Millisecond + 5*time.Minute
	// readWithin bounds a read of limits that a call waits for.
	readWithin = time.Second
	// warnAt is the fraction of a limit at which a warning is logged.
	warnAt = 0.8
)

// Keeper keeps the quotas of all tenants on one replica. It is safe for concurrent use.
type Keeper struct {
	store    *storage.Store
	defaults *limitSet
	interval time.Duration
	logger   *zap.Logger
	metrics  *keeperMetrics
	loop     *metrics.Loop

	tenants sync.Map // of *tenant, by name
}

// tenant is the state of a tenant on this replica.
type tenant struct {
	name    string
	limits  atomic.Pointer[limitSet] // nil until they were read
	read    atomic.Int64             // when limits were read, in ms
	stale   atomic.Bool              // a notice arrived since then
	used    atomic.Int64             // the last use, in ms
	reading sync.Mutex
	rates   rates
	counts  counting
}

// limitSet are the limits of a tenant, with those of rates in the order of the shares.
type limitSet struct {
	quota.TenantLimits

	rates [rateCount]int64
}

func newLimitSet(limits quota.TenantLimits) *limitSet {
	set := &limitSet{TenantLimits: limits}
	for _, q := range quota.Rates() {
		set.rates[rateIndex(q)] = limits.Of(q)
	}
	return set
}

// New returns a Keeper over store. The caller passes it to store.LimitBy, and runs Run. ctx
// applies to New only. It fails if the metrics cannot be registered.
func New(ctx context.Context, store *storage.Store, cfg Config) (*Keeper, error) {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	k := &Keeper{
		store: store, defaults: newLimitSet(cfg.Defaults.Or(quota.DefaultTenantLimits())), interval: cfg.Interval, logger: cfg.Logger,
		metrics: newKeeperMetrics(), loop: metrics.NewLoop("quotas"),
	}
	if err := k.metrics.register(cfg.Metrics, k.loop); err != nil {
		return nil, err
	}
	// Close of the store ends the subscription.
	return k, store.Subscribe(context.WithoutCancel(ctx), k.onChange)
}

// onChange makes the next use of a tenant's limits read them again.
func (k *Keeper) onChange(c storage.Change) {
	switch c.Kind {
	case storage.ChangeLimits:
		if t, ok := k.tenants.Load(c.Tenant); ok {
			t.(*tenant).stale.Store(true)
		}
	case storage.ChangeResubscribed:
		k.tenants.Range(func(_, t any) bool {
			t.(*tenant).stale.Store(true)
			return true
		})
	}
}

// tenant returns the state of a tenant.
func (k *Keeper) tenant(name string) *tenant {
	t, ok := k.tenants.Load(name)
	if !ok {
		t, _ = k.tenants.LoadOrStore(name, &tenant{name: name})
	}
	return t.(*tenant)
}

// Limits returns the limits of a tenant without waiting: those of the server for a tenant that
// this replica has not served yet.
func (k *Keeper) Limits(name string) quota.TenantLimits {
	if t, ok := k.tenants.Load(name); ok {
		if limits := t.(*tenant).limits.Load(); limits != nil {
			return limits.TenantLimits
		}
	}
	return k.defaults.TenantLimits
}

// LimitsOf implements storage.Quotas. It reads the limits if they are not cached, or if a notice
// has announced others. Where the store does not answer it returns the last known ones, or the
// defaults of the server.
func (k *Keeper) LimitsOf(ctx context.Context, name string) quota.TenantLimits {
	return k.limitsOf(ctx, k.tenant(name)).TenantLimits
}

func (k *Keeper) limitsOf(ctx context.Context, t *tenant) *limitSet {
	now := k.store.NowMS()
	if t.used.Load()/1000 != now/1000 {
		t.used.Store(now)
	}
	if limits := t.limits.Load(); limits != nil && !t.stale.Load() {
		return limits
	}
	t.reading.Lock()
	defer t.reading.Unlock()
	limits := t.limits.Load() // another call may have read them meanwhile
	if limits != nil && !t.stale.Load() {
		return limits
	}
	t.stale.Store(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin)
	defer cancel()
	set, err := Read(ctx, k.store, t.name)
	if err != nil {
		k.metrics.failed.Inc()
		if limits == nil {
			limits = k.defaults
		}
		t.read.Store(0) // the loop reads them again
		t.limits.Store(limits)
		return limits
	}
	merged := newLimitSet(set.Or(k.defaults.TenantLimits))
	t.read.Store(now)
	t.limits.Store(merged)
	return merged
}

// Run calls RunOnce at each interval until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			began := time.Now()
			_, err := k.RunOnce(ctx)
			if ctx.Err() == nil {
				k.loop.Round(began, err)
			}
		}
	}
}

// Round is the work of one RunOnce.
type Round struct {
	Leased    int // tenants for which a lease or a return of shares was tried
	Refreshed int // tenants whose limits were read again
	Forgotten int // tenants that were idle
}

// RunOnce leases the shares of the tenants in use, reads limits that are old, and forgets
// tenants that are idle. A replica that serves no tenant sends no command.
func (k *Keeper) RunOnce(ctx context.Context) (round Round, err error) {
	now := k.store.NowMS()
	var lease, read []*tenant
	k.tenants.Range(func(key, value any) bool {
		t := value.(*tenant)
		unused := now - t.used.Load()
		switch {
		case t.rates.pending():
			lease = append(lease, t)
		case unused > idle.Milliseconds():
			k.tenants.Delete(key)
			round.Forgotten++
			return true
		}
		if age := now - t.read.Load(); unused < refresh.Milliseconds() && (age > refresh.Milliseconds() || age < 0) {
			read = append(read, t)
		}
		return true
	})
	round.Refreshed, err = k.refresh(ctx, read)
	round.Leased = len(lease)
	return round, errors.Join(err, k.leaseAll(ctx, lease))
}
