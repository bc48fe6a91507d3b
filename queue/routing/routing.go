// Package routing chooses a provider of models for the jobs that external workers fetch: the one that the
// routing of the job names, or that of its queue, or the target of a route that can serve now. A job
// whose providers cannot is put back for a while, without counting an attempt.
//
//	fetch       targets in the order of their route; of one whose circuit is closed, and whose
//	            limits are not used up, a request is taken          Router.Fetch
//	settle      reported usage counts in the limits of its provider, and closes its circuit
//	            after a failure                                     Router.Ack, Router.Heartbeat
//	fail        an error of a provider opens its circuit, and the job is retried at another
//	            target, without counting the attempt                Router.Fail
//
// Functions call models by cs.ai, which does the same for each call: the workers of the platform fetch
// from the broker itself.
package routing

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/providers/routes"
)

const (
	// The time for which a job without a provider is put back.
	shortestWait = 100 * time.Millisecond
	longestWait  = 30 * time.Second
	// afterError is the backoff of a job after an error of its provider. The circuit decides when that is
	// asked again.
	afterError = 250 * time.Millisecond
	// maxTurns bounds the claims of a fetch whose time is over, all of whose jobs are put back.
	maxTurns = 4
	// turnPause is the pause of a fetch that waits, after all of its jobs were put back: it must not put
	// back a deep queue job by job.
	turnPause = 100 * time.Millisecond
	// The providers of queues are read again after configAge.
	configAge     = 2 * time.Second
	cachedConfigs = 10_000
)

// callSize is the size of a call by which least_cost compares prices: what a job will use is unknown.
var callSize = routes.Size{Input: 1000, Output: 1000}

// Router is a Broker for external workers, whose jobs have providers. It is safe for concurrent use.
type Router struct {
	broker   *queue.Broker
	store    *storage.Store
	registry *providers.Registry
	limiter  *providers.Limiter
	routes   *routes.Resolver
	queues   *otter.Cache[jobstore.Queue, readProvider]
	log      *zap.Logger
}

// readProvider is the provider of a queue, "" for none, as it was read at a time.
type readProvider struct {
	name string
	at   time.Time
}

// New returns a router of the jobs of broker. The caller passes notices of the store to OnChange.
func New(broker *queue.Broker, store *storage.Store, log *zap.Logger) (*Router, error) {
	registry, err := providers.NewRegistry(store)
	if err != nil {
		return nil, err
	}
	queues, err := otter.New(&otter.Options[jobstore.Queue, readProvider]{MaximumSize: cachedConfigs})
	if err != nil {
		return nil, err
	}
	return &Router{
		broker: broker, store: store, registry: registry, limiter: providers.NewLimiter(store),
		routes: routes.New(registry, broker.Prices(), log), queues: queues, log: log,
	}, nil
}

// OnChange takes a notice of the store.
func (r *Router) OnChange(change storage.Change) { r.registry.OnChange(change) }

// Check refuses a routing that does not exist: CodeProviderNotFound. Errors: CodeStoreUnavailable.
func (r *Router) Check(ctx context.Context, tenant, name string) error {
	if name == "" {
		return nil
	}
	_, err := r.routes.Targets(ctx, tenant, name, "", callSize)
	return coded(err)
}

// Fetch is queue.Broker.Fetch. The jobs with a routing have a provider.
func (r *Router) Fetch(ctx context.Context, f queue.Fetch) ([]api.FetchedJob, error) {
	until := time.Now().Add(f.Wait)
	for turn := 1; ; turn++ {
		jobs, err := r.broker.Fetch(ctx, f)
		kept := r.route(ctx, &f, jobs)
		f.Wait = max(0, time.Until(until))
		if len(kept) > 0 || len(jobs) == 0 || err != nil || f.Wait == 0 && turn >= maxTurns {
			return kept, err
		}
		if f.Wait > 0 && !pause(ctx, min(f.Wait, turnPause), f.Until) {
			return nil, ctx.Err()
		}
	}
}

// pause waits, and reports whether nothing has ended the wait before.
func pause(ctx context.Context, length time.Duration, until <-chan struct{}) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-until:
	case <-ctx.Done():
	}
	return false
}

// route sets the providers of jobs, and returns those that have one or need none. The others are put
// back.
func (r *Router) route(ctx context.Context, f *queue.Fetch, jobs []api.FetchedJob) (kept []api.FetchedJob) {
	names := make([]string, len(jobs))
	for i := range jobs {
		names[i] = jobs[i].Spec.Routing
		if names[i] == "" {
			names[i] = r.ofQueue(ctx, f.Tenant, &jobs[i])
		}
	}
	avoid := r.failed(ctx, f.Tenant, jobs, names)
	var back []api.JobFail
	for i := range jobs {
		j := &jobs[i]
		if names[i] == "" {
			kept = append(kept, *j)
			continue
		}
		target, wait, err := r.choose(ctx, f.Tenant, names[i], avoid[i])
		switch {
		case err == nil && wait == 0:
			j.Provider, j.Model = target.Provider.Name, target.Model
			kept = append(kept, *j)
		case api.ErrorCode(err) == api.CodeProviderNotFound:
			back = append(back, api.JobFail{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "routing: " + err.Error()})
		default:
			ms := spread(wait).Milliseconds()
			back = append(back, api.JobFail{ID: j.ID, LeaseEpoch: j.LeaseEpoch, SnoozeMS: &ms})
		}
	}
	if len(back) == 0 {
		return kept
	}
	if _, err := r.broker.Fail(ctx, f.Tenant, back); err != nil {
		r.log.Warn("jobs whose providers cannot serve were not put back; they return when their leases expire", zap.String("tenant", f.Tenant), zap.Int("jobs", len(back)), zap.Error(err))
	}
	return kept
}

// spread returns a wait within its bounds, longer by up to a quarter: jobs that wait for one provider
// should not all return at once.
func spread(wait time.Duration) time.Duration {
	wait = min(max(wait, shortestWait), longestWait)
	return wait + rand.N(wait/4) //nolint:gosec // it protects nothing
}

// choose takes a request from the first target of a provider or route that can serve. It takes one of
// the provider avoid only if no other can. wait is how long the job should wait if none can. Errors:
// CodeProviderNotFound, CodeStoreUnavailable.
func (r *Router) choose(ctx context.Context, tenant, name, avoid string) (chosen routes.Target, wait time.Duration, err error) {
	targets, err := r.routes.Targets(ctx, tenant, name, "", callSize)
	if err != nil {
		return chosen, 0, coded(err)
	}
	view, err := r.registry.View(ctx, tenant)
	if err != nil {
		return chosen, 0, err
	}
	wait = longestWait
	for _, avoided := range []bool{false, true} {
		for _, t := range targets {
			if (t.Provider.Name == avoid) != avoided {
				continue
			}
			if open := view.Circuit(t.Provider.Name).UntilMS - r.store.NowMS(); open > 0 {
				wait = min(wait, time.Duration(open)*time.Millisecond)
				continue
			}
			pause, err := r.limiter.Take(ctx, tenant, t.Provider, providers.Amounts{Requests: 1, Input: 1, Output: 1}, 0)
			if err != nil {
				return chosen, 0, err
			}
			if pause == 0 {
				return t, 0, nil
			}
			wait = min(wait, pause)
		}
	}
	return chosen, wait, nil
}

// coded returns the error of a provider that cannot be used as one of the API.
func coded(err error) error {
	var problem *routes.Problem
	if errors.As(err, &problem) {
		return api.Errorf(api.CodeProviderNotFound, "%s", problem)
	}
	return err
}

// ofQueue returns the provider of the queue of a job, "" for none. While it cannot be read, jobs have
// none.
func (r *Router) ofQueue(ctx context.Context, tenant string, j *api.FetchedJob) string {
	q := jobstore.Queue{Tenant: tenant, Namespace: j.Namespace, Name: j.Queue}
	if known, ok := r.queues.GetIfPresent(q); ok && time.Since(known.at) < configAge {
		return known.name
	}
	name, err := storage.Optional(r.store.Client().HGet(ctx, r.store.JobKeys(tenant).Queue(q.Namespace, q.Name).Config(), jobstore.FieldProvider))
	if err != nil {
		r.log.Warn("the provider of a queue was not read", zap.String("tenant", tenant), zap.String("queue", q.Path()), zap.Error(err))
		return ""
	}
	r.queues.Set(q, readProvider{name, time.Now()})
	return name
}

// failed returns the providers at which earlier attempts of jobs failed last, by the indexes of the jobs
// whose routing has a name. It reads them by one pipeline, and none for first attempts.
func (r *Router) failed(ctx context.Context, tenant string, jobs []api.FetchedJob, names []string) map[int]string {
	keys, pipe := r.store.JobKeys(tenant), r.store.Client().Pipeline()
	replies := map[int]*redis.StringCmd{}
	for i := range jobs {
		if names[i] != "" && jobs[i].LeaseEpoch > 1 {
			replies[i] = pipe.HGet(ctx, keys.Meta(jobs[i].ID), jobstore.FieldRouting)
		}
	}
	if len(replies) == 0 {
		return nil
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		r.log.Warn("the providers at which jobs have failed were not read; their circuits alone decide", zap.String("tenant", tenant), zap.Error(err))
		return nil
	}
	out := make(map[int]string, len(replies))
	for i, reply := range replies {
		out[i] = reply.Val()
	}
	return out
}

// Ack is queue.Broker.Ack. Reported usage counts in the limits of providers.
func (r *Router) Ack(ctx context.Context, tenant string, acks []api.JobAck) ([]api.JobOutcome, error) {
	out, err := r.broker.Ack(ctx, tenant, acks)
	for i := range out {
		r.spent(ctx, tenant, &out[i], acks[i].Usage)
	}
	return out, err
}

// Heartbeat is queue.Broker.Heartbeat. Reported usage counts in the limits of providers.
func (r *Router) Heartbeat(ctx context.Context, tenant string, beats []api.JobHeartbeat) ([]api.JobOutcome, error) {
	out, err := r.broker.Heartbeat(ctx, tenant, beats)
	for i := range out {
		r.spent(ctx, tenant, &out[i], beats[i].Usage)
	}
	return out, err
}

// Fail is queue.Broker.Fail. An error of a provider retries the job without counting the attempt, and
// opens the circuit of the provider.
func (r *Router) Fail(ctx context.Context, tenant string, fails []api.JobFail) ([]api.JobOutcome, error) {
	for i := range fails {
		if f := &fails[i]; f.ProviderError != nil && f.SnoozeMS == nil && f.RetryAfterMS == nil && !f.Fatal {
			ms := spread(afterError).Milliseconds()
			f.SnoozeMS = &ms
		}
	}
	out, err := r.broker.Fail(ctx, tenant, fails)
	for i := range out {
		r.spent(ctx, tenant, &out[i], fails[i].Usage)
		if e := fails[i].ProviderError; e != nil && out[i].OK {
			r.failedAt(ctx, tenant, fails[i].ID, e)
		}
	}
	return out, err
}

// failedAt counts an error of a provider that a job has met. Of the jobs that were under way when the
// circuit was opened, no further one opens it for longer.
func (r *Router) failedAt(ctx context.Context, tenant, id string, e *agent.ProviderError) {
	j, err := r.broker.Get(ctx, tenant, id)
	if err == nil {
		_, err = r.registry.Failed(ctx, tenant, e.Provider, providers.Failure{
			BeganMS: j.StartedAtMS, RetryAfter: time.Duration(e.RetryAfterMS) * time.Millisecond, Overloaded: e.Kind != agent.FailureError,
		})
	}
	if err != nil {
		r.log.Warn("the failure of a provider was not counted", zap.String("tenant", tenant), zap.String("provider", e.Provider), zap.Error(err))
	}
}

// spent counts reported usage in the limits of its providers, and closes their circuits after a failure.
// The fetch has taken the request of the first call. The usage of a lost lease was spent, too; a report that is
// refused for its form does not count.
func (r *Router) spent(ctx context.Context, tenant string, outcome *api.JobOutcome, usage []agent.Usage) {
	if len(usage) == 0 || !outcome.OK && outcome.Code != api.CodeJobLeaseLost {
		return
	}
	view, err := r.registry.View(ctx, tenant)
	for i := 0; i < len(usage) && err == nil; i++ {
		u := &usage[i]
		p := view.Providers[u.Provider]
		if p == nil {
			continue
		}
		used := providers.Amounts{Input: u.InputTokens + u.CacheCreationTokens + u.CacheReadTokens, Output: u.OutputTokens}
		if max(int64(i)+1, u.Seq) > 1 {
			used.Requests = 1
		}
		err = r.limiter.Settle(ctx, tenant, p, providers.Amounts{}, used)
		if c := view.Circuit(u.Provider); err == nil && c != (providers.Circuit{}) && c.UntilMS <= r.store.NowMS() {
			err = r.registry.Succeeded(ctx, tenant, u.Provider, c.UntilMS)
		}
	}
	if err != nil {
		r.log.Warn("usage was not counted in the limits of a provider", zap.String("tenant", tenant), zap.Error(err))
	}
}
