// Package webhooks delivers the events of tenants to their webhooks. Any number of replicas may run a
// Dispatcher on one store: each tenant that has an enabled webhook is served by one of them, under a
// lease in the store, which another takes over when the replica dies.
//
// # The path of an event
//
//	Dispatcher.Run   dispatcher.go: finds tenants with enabled webhooks, and takes their leases
//	run.follow       follow.go: reads the log of a tenant, adds deliveries, moves the positions
//	run.launch       run.go: starts attempts that are due, within the bounds of slots.go
//	run.attempt      attempt.go: signs and sends the request, and decides what follows
//	Repository       package storage/webhooks: the deliveries, the position, the log of attempts
//
// A position moves only when the deliveries of the events before it are stored, and a delivery is
// removed only after its last attempt: what a killed replica did not finish, the next one does. An
// event may so be delivered twice, with the same id.
//
// The attempts of a tenant cost memory within the bounds of slots.go, however long its receivers hang,
// and webhooks that fail use a part of them only.
package webhooks

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/webhooks"
)

// The defaults of Config.
const (
	defaultTimeout   = 15 * time.Second
	defaultLease     = 10 * time.Second
	defaultBaseDelay = 5 * time.Second
)

const (
	// lookInterval is how often a replica tries to take the leases of other replicas.
	lookInterval = 5 * time.Second
	// listInterval is how often it reads which tenants have webhooks, without a notice.
	listInterval = 30 * time.Second
)

// Sender sends requests. It is hostcall.Guarded.
type Sender interface {
	// Do sends a request of a tenant, and follows no redirects.
	Do(tenant string, req *http.Request) (*http.Response, error)
	// Reason returns why Do failed, as the tenant may see it.
	Reason(ctx context.Context, err error) string
}

// Config configures a Dispatcher. Zero values mean the documented defaults.
type Config struct {
	Sender  Sender                // required
	Logger  *zap.Logger           // default: none
	Metrics prometheus.Registerer // default: nowhere
	// UserAgent is the header of requests (default "sous").
	UserAgent string
	// Timeout bounds an attempt (default 15 s).
	Timeout time.Duration
	// Lease is how long after its death another replica waits before it takes over (default 10 s).
	Lease time.Duration
	// BaseDelay is the time before the second attempt (default 5 s). It doubles with each further one.
	BaseDelay time.Duration
}

// Dispatcher delivers the webhooks of the tenants whose leases it has.
type Dispatcher struct {
	store *storage.Store
	hooks *webhooks.Repository
	log   *events.Log
	cfg   Config
	token string // in leases
	slots *slots
	m     *dispatchMetrics
	wake  chan struct{}

	mu      sync.Mutex
	changed map[string]struct{} // tenants of notices
	listAll bool                // notices may have been lost
	running map[string]*run     // by tenant
	ended   sync.WaitGroup
}

// New returns a Dispatcher of the webhooks in hooks, which are those of store. It fails without a
// Sender, and if the metrics cannot be registered.
func New(store *storage.Store, hooks *webhooks.Repository, cfg Config) (*Dispatcher, error) {
	if cfg.Sender == nil {
		return nil, errors.New("webhooks: a sender is required")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "sous"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Lease <= 0 {
		cfg.Lease = defaultLease
	}
	if cfg.BaseDelay <= 0 {
		cfg.BaseDelay = defaultBaseDelay
	}
	d := &Dispatcher{
		store: store, hooks: hooks, log: events.New(store), cfg: cfg, token: uuid.NewString(), slots: newSlots(), m: newMetrics(),
		wake: make(chan struct{}, 1), changed: map[string]struct{}{}, listAll: true, running: map[string]*run{},
	}
	return d, d.m.register(cfg.Metrics)
}

// Run delivers until ctx ends, and returns when the attempts in progress have been given up: they are
// repeated by the replica that serves the tenant next. Call it once.
func (d *Dispatcher) Run(ctx context.Context) {
	if err := d.store.Subscribe(ctx, d.hear); err != nil && ctx.Err() == nil {
		d.cfg.Logger.Warn("notices of webhooks do not arrive; changes are found within 30 s", zap.Error(err))
	}
	defer d.ended.Wait()
	enabled, listed := map[string]struct{}{}, time.Time{}
	for ctx.Err() == nil {
		began := time.Now()
		changed, all := d.news()
		all = all || time.Since(listed) >= listInterval
		err := d.look(ctx, enabled, changed, all)
		if err == nil && all {
			listed = began
		}
		if err != nil && ctx.Err() == nil {
			d.miss(changed, all)
			d.cfg.Logger.Warn("webhooks cannot be read; the next round tries again", zap.Error(err))
		}
		d.m.loop.Round(began, err)
		pause := lookInterval
		if err != nil {
			pause = time.Second
		}
		timer := time.NewTimer(pause + rand.N(pause/10))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.wake:
			if err != nil { // not again at once
				<-timer.C
			}
		}
		timer.Stop()
	}
}

// hear notes the tenant of a notice, and wakes what serves it.
func (d *Dispatcher) hear(c storage.Change) {
	if c.Kind != storage.ChangeWebhook && c.Kind != storage.ChangeResubscribed {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Kind == storage.ChangeResubscribed {
		d.listAll = true
	} else if r := d.running[c.Tenant]; r != nil {
		r.notify()
		return
	} else {
		d.changed[c.Tenant] = struct{}{}
	}
	d.ring()
}

// ring begins the next round.
func (d *Dispatcher) ring() {
	select {
	case d.wake <- struct{}{}:
	default: // a round is due already
	}
}

// news returns the tenants of notices since the last call, and whether notices may have been lost.
func (d *Dispatcher) news() (changed []string, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed, all = slices.Collect(maps.Keys(d.changed)), d.listAll
	d.changed, d.listAll = map[string]struct{}{}, false
	return changed, all
}

// miss notes what news returned once more.
func (d *Dispatcher) miss(changed []string, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tenant := range changed {
		d.changed[tenant] = struct{}{}
	}
	d.listAll = d.listAll || all
}

// look updates the tenants that have enabled webhooks, those of changed or all, and serves those whose
// leases are free.
func (d *Dispatcher) look(ctx context.Context, enabled map[string]struct{}, changed []string, all bool) error {
	if all {
		tenants, err := d.hooks.Tenants(ctx)
		if err != nil {
			return err
		}
		changed = tenants
	}
	for _, tenant := range changed {
		records, err := d.hooks.All(ctx, tenant)
		if err != nil {
			return err
		}
		delete(enabled, tenant)
		if slices.ContainsFunc(records, func(r webhooks.Record) bool { return r.Enabled }) {
			enabled[tenant] = struct{}{}
		}
	}
	for tenant := range enabled {
		if d.serves(tenant) {
			continue
		}
		taken := time.Now()
		mine, err := d.hooks.Lease(ctx, tenant, d.token, d.cfg.Lease)
		if err != nil {
			return err
		}
		if mine {
			d.start(ctx, tenant, taken)
		}
	}
	return nil
}

// serves reports whether this replica serves the tenant.
func (d *Dispatcher) serves(tenant string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running[tenant] != nil
}

// start serves a tenant whose lease was taken at taken, until it is lost, the tenant has no enabled
// webhook, or ctx ends.
func (d *Dispatcher) start(ctx context.Context, tenant string, taken time.Time) {
	r := newRun(d, tenant, taken)
	d.mu.Lock()
	d.running[tenant] = r
	d.mu.Unlock()
	d.ended.Go(func() {
		r.serve(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.running, tenant)
		d.changed[tenant] = struct{}{} // a notice may have come since its last look
		d.ring()
	})
}
