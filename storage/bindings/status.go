package bindings

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Times of the reports that replicas make of a binding: how long a report is valid, and
// how often a replica repeats it, changed or not. So the reports of a replica that died
// disappear within 30 s, and two lost reports do no harm.
const (
	ReportTTL      = 30 * time.Second
	ReportInterval = 10 * time.Second
)

// PruneAfter is the time from the expiry of a report to its removal. It is long, so that a
// replica whose clock is ahead does not remove the reports of live ones.
const PruneAfter = time.Hour

// startGrace is how long a binding without reports counts as starting after its last change: a
// replica that missed the notice reads the binding within 10 s and reports it 2 s later.
const startGrace = 15 * time.Second

// Report is a replica's report of one binding.
type Report struct {
	Path  storage.BindingPath
	Share api.BindingReplica
}

// Report stores a replica's share of each binding's status, all in one round trip. The
// hash of a binding expires when no replica reports on it; Prune removes the fields
// of dead replicas. Each Share must have Replica and ReportedAtMS, by the clock of the
// replica. CodeStoreUnavailable.
func (r *Repository) Report(ctx context.Context, reports []Report) error {
	if len(reports) == 0 {
		return nil
	}
	pipe := r.s.Client().Pipeline()
	for i := range reports {
		raw, err := storage.Encode(&reports[i].Share)
		if err != nil {
			return err
		}
		key := r.s.Keys().Binding(reports[i].Path).Status()
		pipe.HSet(ctx, key, reports[i].Share.Replica, raw)
		pipe.PExpire(ctx, key, ReportTTL)
	}
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "report worker bindings", err)
}

// Withdraw removes the reports of a replica that shuts down, so that its bindings do not count
// as running until the reports expire.
func (r *Repository) Withdraw(ctx context.Context, replica string, paths []storage.BindingPath) error {
	if len(paths) == 0 {
		return nil
	}
	pipe := r.s.Client().Pipeline()
	for _, path := range paths {
		pipe.HDel(ctx, r.s.Keys().Binding(path).Status(), replica)
	}
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "withdraw reports of worker bindings", err)
}

// Status returns a binding with the status of its workers. CodeBindingNotFound.
func (r *Repository) Status(ctx context.Context, path storage.BindingPath) (api.BindingStatus, error) {
	b, err := r.Get(ctx, path)
	if err != nil {
		return api.BindingStatus{}, err
	}
	out, err := r.statuses(ctx, path.Tenant, path.Namespace, []api.WorkerBinding{b.WorkerBinding})
	if err != nil {
		return api.BindingStatus{}, err
	}
	return out[0], nil
}

// ListStatus is List with the status of the workers of each binding.
func (r *Repository) ListStatus(ctx context.Context, tenant, namespace, after string, limit int) (items []api.BindingStatus, next string, err error) {
	bindings, next, err := r.List(ctx, tenant, namespace, after, limit)
	if err != nil {
		return nil, "", err
	}
	items, err = r.statuses(ctx, tenant, namespace, bindings)
	return items, next, err
}

// statuses returns the status of each binding, in their order.
func (r *Repository) statuses(ctx context.Context, tenant, namespace string, bindings []api.WorkerBinding) ([]api.BindingStatus, error) {
	paths := make([]storage.BindingPath, len(bindings))
	for i := range bindings {
		paths[i] = storage.BindingPath{Tenant: tenant, Namespace: namespace, Name: bindings[i].Name}
	}
	shares, err := r.shares(ctx, paths)
	if err != nil {
		return nil, err
	}
	out := make([]api.BindingStatus, len(bindings))
	for i := range bindings {
		out[i] = api.BindingStatus{WorkerBinding: bindings[i], Status: sumShares(&bindings[i], shares[i], r.s.NowMS()), Shares: shares[i]}
	}
	return out, nil
}

// Prune removes reports that expired more than PruneAfter ago, by the clock of the caller.
// Without it the fields of replicas whose names never return would stay as long as any replica
// reports on the binding.
func (r *Repository) Prune(ctx context.Context, paths []storage.BindingPath) error {
	reports, err := r.reports(ctx, paths)
	if err != nil {
		return err
	}
	pipe := r.s.Client().Pipeline()
	for i, path := range paths {
		if _, dead := freshShares(reports[i], r.s.NowMS()-PruneAfter.Milliseconds()); len(dead) > 0 {
			pipe.HDel(ctx, r.s.Keys().Binding(path).Status(), dead...)
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	_, err = pipe.Exec(ctx)
	return storage.Failure(ctx, "prune status of worker bindings", err)
}

// shares returns the valid reports of each binding.
func (r *Repository) shares(ctx context.Context, paths []storage.BindingPath) ([][]api.BindingReplica, error) {
	reports, err := r.reports(ctx, paths)
	if err != nil {
		return nil, err
	}
	out := make([][]api.BindingReplica, len(paths))
	for i := range reports {
		out[i], _ = freshShares(reports[i], r.s.NowMS())
	}
	return out, nil
}

// reports reads the reports of each binding, by replica.
func (r *Repository) reports(ctx context.Context, paths []storage.BindingPath) ([]map[string]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	pipe := r.s.Client().Pipeline()
	sent := make([]*redis.MapStringStringCmd, len(paths))
	for i, path := range paths {
		sent[i] = pipe.HGetAll(ctx, r.s.Keys().Binding(path).Status())
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read status of worker bindings", err)
	}
	out := make([]map[string]string, len(paths))
	for i := range sent {
		out[i] = sent[i].Val()
	}
	return out, nil
}

// freshShares separates valid reports, sorted by replica, from those of dead replicas and those
// that cannot be decoded. The age of a report is computed by the clock of the reader: if that
// is more than ReportTTL less ReportInterval ahead, live replicas can count as dead for this
// reader.
func freshShares(fields map[string]string, nowMS int64) (shares []api.BindingReplica, stale []string) {
	shares = make([]api.BindingReplica, 0, len(fields))
	for replica, raw := range fields {
		var share api.BindingReplica
		if json.Unmarshal([]byte(raw), &share) != nil || nowMS-share.ReportedAtMS > ReportTTL.Milliseconds() {
			stale = append(stale, replica)
			continue
		}
		shares = append(shares, share)
	}
	slices.SortFunc(shares, func(a, b api.BindingReplica) int { return strings.Compare(a.Replica, b.Replica) })
	return shares, stale
}

// stateOrder lists the states of replicas by precedence: the first that any replica is in
// is the state of the binding.
var stateOrder = []api.BindingState{
	api.BindingRunning, api.BindingFailing, api.BindingWaiting, api.BindingStarting, api.BindingNoServer, api.BindingDisabled, api.BindingStopped,
}

// sumShares combines the shares of the replicas at nowMS: counts are added, and the state is the
// first in stateOrder with its reason. A binding that one replica runs is running, even if
// another replica fails. A disabled binding is disabled, even while replicas still report on it.
// An enabled one is starting for startGrace after its last change if no replica reports on it,
// or if all of them still report that it is disabled.
func sumShares(b *api.WorkerBinding, shares []api.BindingReplica, nowMS int64) api.BindingCounts {
	sum := api.BindingCounts{State: api.BindingStopped, Reason: "no replica with the cadence role reports on it"}
	rank := len(stateOrder)
	for _, s := range shares {
		sum.LastPollMS = max(sum.LastPollMS, s.LastPollMS)
		sum.Taken += s.Taken
		sum.Completed += s.Completed
		sum.Failed += s.Failed
		sum.Cancelled += s.Cancelled
		sum.InFlight += s.InFlight
		at := slices.Index(stateOrder, s.State)
		if at >= 0 && (at < rank || at == rank && sum.Reason == "") {
			rank, sum.State, sum.Reason = at, s.State, s.Reason
		}
	}
	idle := sum.State == api.BindingStopped || sum.State == api.BindingDisabled
	switch {
	case !b.Enabled:
		sum.State, sum.Reason = api.BindingDisabled, ""
	case idle && nowMS-b.UpdatedAtMS < startGrace.Milliseconds():
		sum.State, sum.Reason = api.BindingStarting, "no replica has reported on it yet"
	}
	return sum
}
