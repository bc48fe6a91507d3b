package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// visits is a hook that records the visits of queues, by their reads of scheduled jobs.
type visits struct {
	step func(ctx context.Context, nth int, tenant string) // called before such a read

	mu      sync.Mutex
	tenants map[string]string // of the queues, by the key of their scheduled jobs
	seen    []string          // the tenants visited, in order
}

func (*visits) DialHook(next redis.DialHook) redis.DialHook { return next }

func (v *visits) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if tenant := v.tenants[fmt.Sprint(cmd.Args()[min(1, len(cmd.Args())-1)])]; cmd.Name() == "zrangebyscore" && tenant != "" {
			v.mu.Lock()
			v.seen = append(v.seen, tenant)
			nth := len(v.seen)
			v.mu.Unlock()
			v.step(ctx, nth, tenant)
		}
		if ctx.Err() != nil {
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		return next(ctx, cmd)
	}
}

func (*visits) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (v *visits) follow(f *fixture, q string) {
	v.tenants[f.store.JobKeys(f.tenant).Queue(namespace, q).Set(string(api.JobScheduled))] = f.tenant
}

// as returns f with another tenant.
func (f *fixture) as(tenant string) *fixture {
	other := *f
	other.tenant = tenant
	return &other
}

// queuesIn returns the names of n queues of f's tenant that are in the given shard of the due sets.
func (f *fixture) queuesIn(shard, n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("q", i); storage.DueShard(f.member(name)) == shard {
			names = append(names, name)
		}
	}
	return names
}

func (f *fixture) member(q string) string {
	return storage.DueQueuePrefix + f.tenant + "/" + namespace + "/" + q
}

// TestTenantsTakeTurnsInMaintenance: five tenants have many queues that are due for longer than
// that of a sixth one, and whose visits take all their time. They fill more than a page of its
// shard. It is visited after one visit of each of them, or a few that began at the same time, and
// none of them is visited without end.
func TestTenantsTakeTurnsInMaintenance(t *testing.T) {
	t.Parallel()
	const (
		attackers = 5
		queues    = 26
		visitors  = 4 // at once
		turns     = 4 // more than the visits of one attacker, each of which uses half of its time
	)
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	shard := storage.DueShard(f.member(emails))
	v := &visits{tenants: map[string]string{}}
	v.follow(f, emails)
	for range attackers {
		attacker := f.as(storagetest.Tenant(t))
		for _, q := range attacker.queuesIn(shard, queues) {
			attacker.addAt(t, attacker, q, 1)
			v.follow(attacker, q)
		}
	}
	f.addAt(t, f, emails, 2)
	f.clock.advance(time.Second)
	v.step = func(ctx context.Context, nth int, tenant string) {
		if tenant != f.tenant && nth <= attackers*turns { // the others end at once, so that a failure shows soon
			<-ctx.Done()
		}
	}
	f.store.Client().AddHook(v)
	now := f.clock.ms.Load()
	got, err := loopOn(t, f.store, f.Broker).RunOnce(t.Context(), now)
	if err != nil || got.NextMS != now {
		t.Errorf("RunOnce = %+v, %v, want NextMS %d for the queues that are left, and no error", got, err, now)
	}
	if before := slices.Index(v.seen, f.tenant); before < 0 || before > attackers+visitors {
		t.Errorf("the tenant was visited after %d visits of others, want 0 to %d", before, attackers+visitors)
	}
	if n := len(v.seen); n > attackers*turns {
		t.Errorf("RunOnce made %d visits, want at most %d", n, attackers*turns)
	}
	if got := f.fetch(t, 1); len(got) != 1 {
		t.Error("the job of the tenant was not promoted")
	}
}

// TestAClaimCountsFromItsVisit: the claim of a queue that is visited late in a round is as long as
// that of the first one.
func TestAClaimCountsFromItsVisit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	v := &visits{tenants: map[string]string{}}
	names := f.queuesIn(0, 2) // of one shard, so that they are visited in the order of their marks
	for i, q := range names {
		f.addAt(t, f, q, int64(1+i))
		v.follow(f, q)
	}
	f.clock.advance(time.Second)
	v.step = func(ctx context.Context, nth int, _ string) {
		if nth == 1 {
			f.clock.advance(20 * time.Second)
			return
		}
		<-ctx.Done() // the visit is cut, and its claim remains
	}
	f.store.Client().AddHook(v)
	if _, err := loopOn(t, f.store, f.Broker).RunOnce(t.Context(), f.clock.ms.Load()); err != nil {
		t.Fatalf("RunOnce: %v", err)
	}
	claimed, err := f.store.Client().ZScore(t.Context(), storage.KeyDue(0), f.member(names[1])).Result()
	if err != nil || int64(claimed) <= f.clock.ms.Load() {
		t.Errorf("claim of the second queue: got end %.0f, error %v, want more than %d, the time of its visit", claimed, err, f.clock.ms.Load())
	}
}
