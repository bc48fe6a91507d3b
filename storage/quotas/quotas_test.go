package quotas_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/quotas"
	"github.com/codesous/sous/storage/quotas/quotastest"
	"github.com/codesous/sous/storage/storagetest"
)

func function(tenant, name string) api.Function {
	return api.Function{Tenant: tenant, Namespace: "default", Name: name, Runtime: api.RuntimeJS, CreatedAtMS: 1}
}

// use returns the stored amount of a quota.
func use(t *testing.T, s *storage.Store, tenant string, q quota.Name) int64 {
	t.Helper()
	used, err := quotas.Stored(t.Context(), s, tenant)
	if err != nil {
		t.Fatalf("Stored: %v", err)
	}
	return used[q]
}

// TestFunctionsStopAtTheLimit: replicas that create functions at the same time do not exceed the
// limit by one, and a refusal names the limit and the use.
func TestFunctionsStopAtTheLimit(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		const limit, calls = 5, 40
		tenant := storagetest.Tenant(t)
		if err := quotas.Set(t.Context(), s, tenant, quota.TenantLimits{Functions: limit}); err != nil {
			t.Fatalf("Set: %v", err)
		}
		quotastest.Limit(t, s, quota.TenantLimits{})
		errs := storagetest.Concurrently(calls, func(i int) error {
			_, err := storage.NewFunctions(s).Create(t.Context(), function(tenant, fmt.Sprintf("f%d", i)))
			return err
		})
		made := 0
		for _, err := range errs {
			var e *api.Error
			switch {
			case err == nil:
				made++
			case !errors.As(err, &e) || e.Code != api.CodeTenantQuota || e.Quota == nil || e.Quota.Unit != "functions" || e.Quota.Limit != limit:
				t.Errorf("Create: got error %v, want %s with the limit", err, api.CodeTenantQuota)
			}
		}
		names, _, err := storage.NewFunctions(s).Names(t.Context(), tenant, "default", "", 100)
		if err != nil || len(names) != limit || made != limit {
			t.Errorf("got %d functions, %d calls that made one, and error %v, want %d of both", len(names), made, err, limit)
		}
		// A repeat of a call that succeeded takes nothing.
		if _, err := storage.NewFunctions(s).Create(t.Context(), function(tenant, names[0])); err != nil {
			t.Errorf("Create again: got error %v, want none", err)
		}
		if got := use(t, s, tenant, quota.Functions); got != limit {
			t.Errorf("use of functions: got %d, want %d", got, limit)
		}
	})
}

// TestAmountsAreCorrected: an amount that a crash left too high is corrected before a request is
// refused, and the amounts of a store without any are computed.
func TestAmountsAreCorrected(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant := storagetest.Tenant(t)
		for _, name := range []string{"a", "b", "c"} { // as an earlier release did, without quotas
			if _, err := storage.NewFunctions(s).Create(t.Context(), function(tenant, name)); err != nil {
				t.Fatalf("Create: %v", err)
			}
		}
		if got := use(t, s, tenant, quota.Functions); got != 0 {
			t.Fatalf("use before the count: got %d, want 0", got)
		}
		walk := quotas.NewWalk(s, tenant)
		for end := false; !end; {
			var err error
			_, end, err = walk.Step(t.Context())
			if err != nil {
				t.Fatalf("Step: %v", err)
			}
		}
		if got := use(t, s, tenant, quota.Functions); got != 3 {
			t.Errorf("use after the count: got %d, want 3", got)
		}
		if got := use(t, s, tenant, quota.Namespaces); got != 1 {
			t.Errorf("namespaces after the count: got %d, want 1", got)
		}
		quotastest.Limit(t, s, quota.TenantLimits{Functions: 4})
		if err := s.Client().HSet(t.Context(), s.Keys().QuotaUse(tenant), "functions", 4).Err(); err != nil { // a crash
			t.Fatalf("HSet: %v", err)
		}
		if _, err := storage.NewFunctions(s).Create(t.Context(), function(tenant, "d")); err != nil {
			t.Errorf("Create with an amount that is too high: got error %v, want none", err)
		}
		if _, err := storage.NewFunctions(s).Create(t.Context(), function(tenant, "e")); api.ErrorCode(err) != api.CodeTenantQuota {
			t.Errorf("Create over the limit: got error %v, want %s", err, api.CodeTenantQuota)
		}
	})
}

// TestUsageCountsOnceIn10Seconds: readers of the usage at the same time, or within 10 s, cost one
// count of the records together.
func TestUsageCountsOnceIn10Seconds(t *testing.T) {
	t.Parallel()
	const namespaces = 300
	var now atomic.Int64
	now.Store(1_760_000_000_000)
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	sent := storagetest.CountCommands(s.Client())
	k, tenant := quotastest.Limit(t, s, quota.TenantLimits{}), storagetest.Tenant(t)
	for i := range namespaces {
		if err := s.Client().SAdd(t.Context(), s.Keys().Namespaces(tenant), fmt.Sprintf("n%d", i)).Err(); err != nil {
			t.Fatalf("SAdd: %v", err)
		}
	}
	const each = 50 // commands of a reading without a count, at most
	for _, round := range []struct {
		name        string
		at          int64 // in ms
		readers     int
		least, most int64
	}{
		{"8 at the same time", 0, 8, namespaces, 7*namespaces + 8*each},
		{"9.9 s after the count", 9_900, 1, 0, each},
		{"10 s after it", 10_000, 1, namespaces, 7*namespaces + each},
	} {
		now.Store(1_760_000_000_000 + round.at)
		before := sent()
		for _, err := range storagetest.Concurrently(round.readers, func(int) error {
			used, err := k.Usage(t.Context(), tenant)
			for _, u := range used {
				if u.Name == quota.Namespaces && u.Used != namespaces {
					err = fmt.Errorf("got %d namespaces, want %d", u.Used, namespaces)
				}
			}
			return err
		}) {
			if err != nil {
				t.Errorf("Usage, %s: got error %v, want none", round.name, err)
			}
		}
		if got := sent() - before; got < round.least || got > round.most {
			t.Errorf("Usage, %s: got %d commands, want from %d to %d", round.name, got, round.least, round.most)
		}
	}
}

// TestACountKeepsWhatIsAddedMeanwhile: a count that began before an addition does not lose it.
func TestACountKeepsWhatIsAddedMeanwhile(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		tenant := storagetest.Tenant(t)
		key := s.Keys().QuotaUse(tenant)
		if err := s.Client().HSet(t.Context(), key, "functions", 12).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		// 10 before the count, which found 7; 2 were added meanwhile.
		reply, err := s.Script(t.Context(), storage.ScriptQuotaRecount, []string{key}, 5000, "functions", 10, 7, 2000)
		if err != nil || fmt.Sprint(reply) != "[9]" {
			t.Errorf("quota_recount.lua: got %v and error %v, want [9]", reply, err)
		}
		// A record may still be on its way: the use is not lowered for a while.
		s.Client().HSet(t.Context(), key, "functions:t", 4000)
		for now, want := range map[int]string{5000: "[9]", 6000: "[3]"} {
			s.Client().HSet(t.Context(), key, "functions", 9)
			reply, err := s.Script(t.Context(), storage.ScriptQuotaRecount, []string{key}, now, "functions", 9, 3, 2000)
			if err != nil || fmt.Sprint(reply) != want {
				t.Errorf("quota_recount.lua at %d: got %v and error %v, want %s", now, reply, err, want)
			}
		}
	})
}

// replicas returns keepers of stores of their own on one server.
func replicas(t *testing.T, cfg storage.Config, n int, defaults quota.TenantLimits) []*quotas.Keeper {
	t.Helper()
	all := make([]*quotas.Keeper, n)
	for i := range all {
		all[i] = quotastest.Limit(t, storagetest.Open(t, cfg), defaults)
	}
	return all
}

// TestReplicasTogetherKeepARate: replicas that are called as fast as possible admit what the limit
// allows in that time, and the burst of one period.
func TestReplicasTogetherKeepARate(t *testing.T) {
	t.Parallel()
	const limit, seconds, n = 400, 4, 4
	var now atomic.Int64
	now.Store(1_760_000_000_000)
	all := replicas(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }}, n, quota.TenantLimits{Calls: limit})
	tenant := storagetest.Tenant(t)
	var admitted atomic.Int64
	for step := range seconds * 20 { // of 50 ms
		var wg sync.WaitGroup
		for _, k := range all {
			wg.Go(func() {
				for range 40 {
					switch err := k.Call(t.Context(), tenant); api.ErrorCode(err) {
					case "":
						admitted.Add(1)
					case api.CodeTenantRate:
					default:
						t.Errorf("Call: got error %v, want none or %s", err, api.CodeTenantRate)
					}
				}
			})
		}
		wg.Wait()
		now.Add(50)
		if step%20 == 19 {
			for _, k := range all {
				if _, err := k.RunOnce(t.Context()); err != nil {
					t.Errorf("RunOnce: %v", err)
				}
			}
		}
	}
	// The time from the first call to the last is a step less than seconds.
	most, least := int64(limit*seconds+limit), int64(limit*seconds*9/10)
	if got := admitted.Load(); got > most || got < least {
		t.Errorf("got %d calls admitted in %d s, want from %d to %d", got, seconds, least, most)
	}
}

// TestCallsSendNoCommands: while a share lasts, calls are admitted from memory.
func TestCallsSendNoCommands(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	sent := storagetest.CountCommands(s.Client())
	k := quotastest.Limit(t, s, quota.TenantLimits{Calls: 1_000_000})
	free := quotastest.Limit(t, s, quota.TenantLimits{})
	tenant := storagetest.Tenant(t)
	for _, k := range []*quotas.Keeper{k, free} {
		if err := k.Call(t.Context(), tenant); err != nil {
			t.Fatalf("Call: %v", err)
		}
	}
	before := sent()
	for range 10_000 {
		if err := errors.Join(k.Call(t.Context(), tenant), free.Call(t.Context(), tenant)); err != nil {
			t.Fatalf("Call: %v", err)
		}
	}
	if got := sent() - before; got != 0 {
		t.Errorf("20,000 calls: got %d commands, want none", got)
	}
}

// TestFirstUsesAreNotRefused: a tenant's first use of a rate is admitted, also right after the lease
// of another rate, and if a call needs several rates.
func TestFirstUsesAreNotRefused(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		k := quotastest.Limit(t, s, quota.TenantLimits{Calls: 100, CPU: 100, Memory: 100})
		tenant := storagetest.Tenant(t)
		for name, use := range map[string]func() error{
			"call":   func() error { return k.Call(t.Context(), tenant) },
			"egress": func() error { return k.Egress(t.Context(), tenant) },
			"jobs":   func() error { return k.Enqueue(t.Context(), tenant, 1, 1000) },
		} {
			if err := use(); err != nil {
				t.Errorf("the first use of %s: got error %v, want none", name, err)
			}
		}
		if k.Records(t.Context(), tenant) != nil {
			t.Error("the first use of records: got a refusal, want none")
		}
	})
}

// TestADebtIsPaid: CPU time that calls have used beyond the limit refuses the next ones until the
// rate has refilled.
func TestADebtIsPaid(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_760_000_000_000)
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	k := quotastest.Limit(t, s, quota.TenantLimits{CPU: 60}) // a second each second, 60 at once
	tenant := storagetest.Tenant(t)
	if err := k.Call(t.Context(), tenant); err != nil {
		t.Fatalf("Call: got error %v, want none", err)
	}
	k.Charge(tenant, quota.CPU, 90_000) // 90 s
	now.Add(1000)
	err := k.Call(t.Context(), tenant)
	var e *api.Error
	if !errors.As(err, &e) || e.Code != api.CodeTenantRate || e.Quota == nil || e.Quota.Unit != "cpu_seconds_per_minute" || e.RetryAfter < 20*time.Second || e.RetryAfter > 40*time.Second {
		t.Fatalf("Call with a debt of 30 s: got error %v with %+v, want %s and a retry after about 30 s", err, e, api.CodeTenantRate)
	}
	now.Add(40_000)
	if err := k.Call(t.Context(), tenant); err != nil {
		t.Errorf("Call after the debt is paid: got error %v, want none", err)
	}
}

// TestLongCallsAreCharged: a call that takes as long as a call may is charged at its end, although
// its tenant did nothing else meanwhile.
func TestLongCallsAreCharged(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_760_000_000_000)
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }})
	k := quotastest.Limit(t, s, quota.TenantLimits{CPU: 60})
	tenant := storagetest.Tenant(t)
	if err := k.Call(t.Context(), tenant); err != nil {
		t.Fatalf("Call: got error %v, want none", err)
	}
	for range api.MaxTimeoutMS / 1000 {
		now.Add(1000)
		if _, err := k.RunOnce(t.Context()); err != nil {
			t.Fatalf("RunOnce: got error %v, want none", err)
		}
	}
	k.Charge(tenant, quota.CPU, 300_000)
	now.Add(1000)
	if err := k.Call(t.Context(), tenant); api.ErrorCode(err) != api.CodeTenantRate {
		t.Errorf("Call after one of 300 s of processor time: got error %v, want %s", err, api.CodeTenantRate)
	}
}

// TestEgressIsOverdrawn: bytes that flow beyond the share are admitted up to a bound, and then
// refused until the debt is paid, without a command to the store.
func TestEgressIsOverdrawn(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, tt := range []struct {
		name   string
		limits quota.TenantLimits
		quota  quota.Name
		bound  int64
	}{
		{"a minute", quota.TenantLimits{Egress: 6 * mib}, quota.Egress, 6 * mib},
		{"a day", quota.TenantLimits{EgressDay: 10_000 * mib}, quota.EgressDay, 100 * mib},
		{"a day, with a small limit", quota.TenantLimits{EgressDay: 100 * mib}, quota.EgressDay, 64 * mib},
		{"a day, with a tiny limit", quota.TenantLimits{EgressDay: mib}, quota.EgressDay, mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
			sent := storagetest.CountCommands(s.Client())
			k := quotastest.Limit(t, s, tt.limits)
			tenant := storagetest.Tenant(t)
			if err := k.Egress(t.Context(), tenant); err != nil {
				t.Fatalf("Egress: got error %v, want none", err)
			}
			before := sent()
			k.Charge(tenant, tt.quota, tt.bound) // the share that Egress leased is at least 1
			if err := k.Overdrawn(tenant, tt.quota); err != nil {
				t.Errorf("Overdrawn at the bound: got error %v, want none", err)
			}
			k.Charge(tenant, tt.quota, tt.bound)
			err := k.Overdrawn(tenant, tt.quota)
			var e *api.Error
			if !errors.As(err, &e) || e.Code != api.CodeTenantRate || e.Quota == nil || e.Quota.Unit != string(tt.quota) {
				t.Errorf("Overdrawn beyond the bound: got error %v with %+v, want %s", err, e, api.CodeTenantRate)
			}
			for _, q := range []quota.Name{quota.Egress, quota.EgressDay} {
				if q != tt.quota && k.Overdrawn(tenant, q) != nil {
					t.Errorf("Overdrawn of %s, which is not limited: got an error, want none", q)
				}
			}
			if got := sent() - before; got != 0 {
				t.Errorf("Charge and Overdrawn: got %d commands, want none", got)
			}
			if _, err := k.RunOnce(t.Context()); err != nil {
				t.Fatalf("RunOnce: got error %v, want none", err)
			}
			if tt.bound*2 <= tt.limits.EgressDay && k.Overdrawn(tenant, tt.quota) != nil {
				t.Error("Overdrawn after a lease of what the store had left: got an error, want none")
			}
		})
	}
}

// TestSharesOutliveTheStore: while the store does not answer, a replica goes on with the share that
// it had, and not with more.
func TestSharesOutliveTheStore(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	down := &failing{}
	var now atomic.Int64
	now.Store(1_760_000_000_000)
	s := storagetest.Open(t, storage.Config{
		URL: server.URL, Clock: func() time.Time { return time.UnixMilli(now.Load()) }, Hook: func(c redis.UniversalClient) { c.AddHook(down) },
	})
	k := quotastest.Limit(t, s, quota.TenantLimits{Calls: 100})
	tenant := storagetest.Tenant(t)
	second := func() (admitted int) {
		for range 20 {
			for range 10 {
				if k.Call(t.Context(), tenant) == nil {
					admitted++
				}
			}
			now.Add(50)
		}
		_, _ = k.RunOnce(t.Context()) // fails while the store is down
		return admitted
	}
	for range 4 {
		second()
	}
	down.fail.Store(true)
	for range 3 {
		if got := second(); got < 50 || got > 160 {
			t.Errorf("a second without the store: got %d calls admitted, want about the share of 100", got)
		}
	}
}

// failing fails all commands once it is told to.
type failing struct{ fail atomic.Bool }

func (*failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.fail.Load() {
			cmd.SetErr(errors.New("the store is down"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.fail.Load() {
			for _, cmd := range cmds {
				cmd.SetErr(errors.New("the store is down"))
			}
			return errors.New("the store is down")
		}
		return next(ctx, cmds)
	}
}

// TestNewLimitsApply: a notice makes a replica read the limits again.
func TestNewLimitsApply(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		k, tenant := quotastest.Limit(t, s, quota.TenantLimits{}), storagetest.Tenant(t)
		if got := k.LimitsOf(t.Context(), tenant).Functions; got != quota.DefaultTenantLimits().Functions {
			t.Fatalf("functions: got %d, want the default", got)
		}
		if err := quotas.Set(t.Context(), s, tenant, quota.TenantLimits{Functions: 7, Weight: 3}); err != nil {
			t.Fatalf("Set: %v", err)
		}
		storagetest.Eventually(t, func() bool { return k.LimitsOf(t.Context(), tenant).Functions == 7 })
		if got := k.Limits(tenant).Weight; got != 3 {
			t.Errorf("Limits: got weight %d, want 3", got)
		}
		if err := quotas.Set(t.Context(), s, tenant, quota.TenantLimits{Weight: -1}); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("Set of a negative weight: got error %v, want %s", err, api.CodeInvalid)
		}
	})
}

// TestAWarningAt80Percent: one warning each time that a use passes the line.
func TestAWarningAt80Percent(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	core, logged := observer.New(zapcore.WarnLevel)
	k, err := quotas.New(t.Context(), s, quotas.Config{Defaults: quota.TenantLimits{Versions: 10}, Logger: zap.New(core)})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	tenant := storagetest.Tenant(t)
	for range 9 {
		if err := k.Take(t.Context(), tenant, storage.One(quota.Versions)); err != nil {
			t.Fatalf("Take: %v", err)
		}
	}
	if got := logged.Len(); got != 1 {
		t.Errorf("9 of 10: got %d warnings, want 1", got)
	}
	k.Return(t.Context(), tenant, quota.Amount{Quota: quota.Versions, Amount: 3})
	if err := k.Take(t.Context(), tenant, quota.Amount{Quota: quota.Versions, Amount: 2}); err != nil {
		t.Fatalf("Take: %v", err)
	}
	if got := logged.Len(); got != 2 {
		t.Errorf("after the line was passed again: got %d warnings, want 2", got)
	}
}

// TestAFreshReplicaWithoutAStoreRefusesNoRate: a replica that could not lease anything yet answers that
// the store does not, and not that a day's limit is reached.
func TestAFreshReplicaWithoutAStoreRefusesNoRate(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, ScriptPrelude: storagetest.CutAfter(0)})
	k := quotastest.Limit(t, s, quota.TenantLimits{JobBytes: 1 << 30})
	tenant := storagetest.Tenant(t)
	for range 2 { // the second call does not ask the store again
		if err := k.Enqueue(t.Context(), tenant, 0, 10); api.ErrorCode(err) != api.CodeStoreUnavailable {
			t.Errorf("Enqueue: got error %v, want %s", err, api.CodeStoreUnavailable)
		}
	}
}
