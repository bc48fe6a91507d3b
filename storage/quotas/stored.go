package quotas

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/kvstore"
)

// counting is the state of the counts of a tenant's records on this replica.
type counting struct {
	mu      sync.Mutex
	next    int64 // when the records may be counted again, in ms
	last    int64 // when they were counted, in ms
	reserve int64 // jobs that were taken and not yet enqueued
}

// Take implements storage.Quotas. It counts the tenant's records before it refuses.
func (k *Keeper) Take(ctx context.Context, name string, amounts ...quota.Amount) error {
	t := k.tenant(name)
	limits := k.limitsOf(ctx, t)
	err := k.take(ctx, t, limits, amounts)
	if api.ErrorCode(err) != api.CodeTenantQuota || !k.countAgain(ctx, t, 0) {
		return k.noted(err)
	}
	return k.noted(k.take(ctx, t, limits, amounts))
}

// reserveMost bounds the jobs that a replica takes in advance. It is the number by which each
// replica may exceed the limit when the jobs are counted meanwhile.
const reserveMost = 5000

// Enqueue implements storage.Quotas.
func (k *Keeper) Enqueue(ctx context.Context, name string, jobs, bytes int64) error {
	if err := k.admit(ctx, name, []spend{{quota.JobBytes, float64(bytes)}}); err != nil {
		return err
	}
	return k.jobs(ctx, name, jobs)
}

// jobs takes n jobs. The store is asked once for many of them: a part of the limit is taken in
// advance. CodeTenantQuota, CodeStoreUnavailable.
func (k *Keeper) jobs(ctx context.Context, name string, n int64) error {
	t := k.tenant(name)
	limits := k.limitsOf(ctx, t)
	if limits.Jobs < 0 {
		return nil
	}
	t.counts.mu.Lock()
	held := t.counts.reserve
	if held >= n {
		t.counts.reserve -= n
		t.counts.mu.Unlock()
		return nil
	}
	t.counts.mu.Unlock()
	extra := min(limits.Jobs/200, reserveMost)
	if extra > 0 && k.take(ctx, t, limits, []quota.Amount{{Quota: quota.Jobs, Amount: n + extra}}) == nil {
		t.counts.mu.Lock()
		t.counts.reserve += extra
		t.counts.mu.Unlock()
		return nil
	}
	return k.Take(ctx, name, quota.Amount{Quota: quota.Jobs, Amount: n})
}

// noted counts a refusal.
func (k *Keeper) noted(err error) error {
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.CodeTenantQuota && e.Quota != nil {
		k.metrics.refusals.WithLabelValues(e.Quota.Unit).Inc()
	}
	return err
}

// Return implements storage.Quotas.
func (k *Keeper) Return(ctx context.Context, name string, amounts ...quota.Amount) {
	back := make([]quota.Amount, len(amounts))
	for i, a := range amounts {
		back[i] = quota.Amount{Quota: a.Quota, Amount: -a.Amount}
	}
	if err := k.take(ctx, k.tenant(name), k.defaults, back); err != nil {
		k.metrics.failed.Inc() // a count corrects it
	}
}

// take runs the script that adds amounts. A reply that was lost fails the call: the amounts may
// then be too high until the next count.
func (k *Keeper) take(ctx context.Context, t *tenant, limits *limitSet, amounts []quota.Amount) error {
	args := make([]any, 0, 1+3*len(amounts))
	args = append(args, k.store.NowMS())
	for _, a := range amounts {
		args = append(args, string(a.Quota), a.Amount, limits.Of(a.Quota))
	}
	reply, err := k.store.ScriptOnce(ctx, storage.ScriptQuotaTake, []string{k.store.Keys().QuotaUse(t.name)}, args...)
	if err != nil {
		return err
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) == 0 {
		return api.Errorf(api.CodeInternal, "quota_take.lua replied %v", reply)
	}
	if parts[0] == "quota" && len(parts) == 4 {
		q, _ := parts[1].(string)
		return quota.Exceeded(quota.Name(q), int64(number(parts[2])), int64(number(parts[3])))
	}
	for i, a := range amounts {
		if i+1 < len(parts) {
			after := int64(number(parts[i+1]))
			k.grown(ctx, t, a.Quota, limits.Of(a.Quota), after-a.Amount, after)
		}
	}
	return nil
}

// Grown implements storage.Quotas: it warns when a use passes 80% of its limit.
func (k *Keeper) Grown(name string, q quota.Name, limit, before, after int64) {
	if crosses(limit, before, after) {
		k.warn(name, q, limit, after)
	}
}

// crosses reports whether a use passes the line of the warning.
func crosses(limit, before, after int64) bool {
	line := max(1, int64(warnAt*float64(limit)))
	return limit > 0 && before < line && after >= line
}

// grown is Grown for an amount that may be too high: it counts the records before it warns.
func (k *Keeper) grown(ctx context.Context, t *tenant, q quota.Name, limit, before, after int64) {
	if !crosses(limit, before, after) {
		return
	}
	if slices.Contains(indexed, q) {
		if !k.countAgain(ctx, t, 0) {
			return // it was counted a moment ago, and warned then
		}
		counted, err := beforeCount(ctx, k.store, t.name, []quota.Name{q})
		if err != nil {
			return
		}
		after = int64(number(counted[0]))
	}
	k.Grown(t.name, q, limit, before, after)
}

// Refused implements storage.Quotas.
func (k *Keeper) Refused(_ string, q quota.Name) {
	k.metrics.refusals.WithLabelValues(string(q)).Inc()
}

// Stored returns the amounts that a tenant stores, by quota, as they were last counted.
// CodeStoreUnavailable.
func Stored(ctx context.Context, s *storage.Store, tenant string) (map[quota.Name]int64, error) {
	raw, err := s.Client().HGetAll(ctx, s.Keys().QuotaUse(tenant)).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read quotas", err)
	}
	used := map[quota.Name]int64{}
	for name, text := range raw {
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil { // else a field of a newer release
			used[quota.Name(name)] = max(0, n)
		}
	}
	keys, bytes, err := kvstore.New(s).Usage(ctx, tenant)
	used[quota.KVKeys], used[quota.KVBytes] = keys, bytes
	return used, err
}
