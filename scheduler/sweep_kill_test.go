package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// TestSweepersMendSchedulesOfAKilledStore kills the store at random, in the middle of
// scripts, while replicas tick schedules and others come and go. After a sweep nothing
// is left to mend, and each schedule has made one job a tick.
func TestSweepersMendSchedulesOfAKilledStore(t *testing.T) {
	t.Parallel()
	server := storagetest.DurableServer(t)
	cfg := storage.Config{URL: server.URL}
	f := newTicking(t, cfg)
	replicas := []*ticking{f, f.beside(t, cfg), f.beside(t, cfg)}
	mended, failed, fired := map[string]int{}, 0, int64(0)
	for range storagetest.Kills() / 2 {
		tenant := storagetest.Tenant(t)
		for _, r := range replicas {
			r.tenant = tenant
		}
		queues := map[string]storage.SchedulePath{}
		for i, policy := range []string{api.OverlapParallel, api.OverlapSkip, api.OverlapQueue} {
			for k := range 3 {
				name := fmt.Sprintf("schedule-%d-%d", i, k)
				q := name
				if i+k == 0 {
					q = "work" // whose jobs are taken
				}
				queues[q] = f.add(t, name, func(s *api.Schedule) {
					s.Queue, s.OverlapPolicy, s.MaxCatchupTicks = &api.ScheduleQueue{Name: q}, policy, 1_000_000
				})
			}
		}
		failed += tickUntilKilled(t, replicas, server)
		for _, r := range replicas {
			storagetest.AwaitReachable(t, r.store)
		}
		for kind, n := range f.sweepAll(t, f.sweeper(t)) {
			mended[kind] += n
		}
		f.catchUp(t, queues)
		if got := f.sweepAll(t, f.sweeper(t)); len(got) != 0 {
			t.Errorf("second sweep: got repairs %v, want none", got)
		}
		f.catchUp(t, queues)
		for q, path := range queues {
			f.sound(t, path, q)
			fired += f.load(t, path).State.Fired
		}
		if err := f.rdb().FlushDB(t.Context()).Err(); err != nil {
			t.Fatalf("FlushDB: %v", err)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d ticks were fired, %d calls failed, and %v were mended", fired, failed, mended)
}

// catchUp ticks until no schedule is behind.
func (f *ticking) catchUp(t *testing.T, queues map[string]storage.SchedulePath) {
	t.Helper()
	for range 100 {
		f.round(t)
		behind := false
		for _, path := range queues {
			behind = behind || f.load(t, path).State.NextTickMS <= f.ms.Load()
		}
		if !behind {
			return
		}
		f.advance(time.Second) // the claim of a replica that failed runs out
	}
	t.Error("got schedules behind after 100 rounds, want none")
}

// tickUntilKilled lets replicas tick, and others make and delete schedules, until the
// store is killed, starts it again, and counts the calls that it did not answer.
func tickUntilKilled(t *testing.T, replicas []*ticking, server *storagetest.Server) (failed int) {
	t.Helper()
	var mu sync.Mutex
	var work sync.WaitGroup
	until := func(step func(n int) error) {
		work.Go(func() {
			for n := 0; ; n++ {
				switch err := step(n); api.ErrorCode(err) {
				case "", api.CodeStoreConflict:
				case api.CodeStoreUnavailable:
					mu.Lock()
					defer mu.Unlock()
					failed++
					return
				default:
					t.Errorf("step: got error %v, want success, code %s or code %s", err, api.CodeStoreConflict, api.CodeStoreUnavailable)
					return
				}
			}
		})
	}
	for _, r := range replicas {
		until(func(int) error {
			r.advance(100 * time.Millisecond)
			return r.tickOnce(t.Context())
		})
		until(func(n int) error { return r.comeAndGo(t.Context(), fmt.Sprint("other-", n%3)) })
	}
	<-time.After(20*time.Millisecond + rand.N(200*time.Millisecond))
	server.Kill()
	work.Wait()
	server.Start(t)
	return failed
}

// tickOnce fires the due ticks of the tenant.
func (f *ticking) tickOnce(ctx context.Context) error {
	m := storage.DueSchedulePrefix + f.tenant
	key := storage.KeyDue(storage.DueShard(m))
	score, err := f.rdb().ZScore(ctx, key, m).Result()
	if errors.Is(err, redis.Nil) || err == nil && int64(score) > f.ms.Load() {
		return nil
	}
	if err != nil {
		return storage.Failure(ctx, "read a due set", err)
	}
	_, err = f.Tend(ctx, []storage.DueMember{{Key: key, Member: m, Score: int64(score)}}, f.ms.Load())
	return err
}

// comeAndGo makes a schedule that is not there, and changes or deletes one that is.
func (f *ticking) comeAndGo(ctx context.Context, name string) error {
	before, err := f.schedules.Load(ctx, f.path(name))
	if err != nil {
		return err
	}
	now := f.ms.Load()
	after := &schedules.Stored{Access: api.AccessGranted, Schedule: api.Schedule{
		Name: name, EverySeconds: 3600, OverlapPolicy: api.OverlapSkip, Queue: &api.ScheduleQueue{Name: "others"}, Enabled: true,
		Revision: 1, CreatedAtMS: now, UpdatedAtMS: now,
	}}
	if before.Meta != nil {
		if rand.IntN(2) == 0 {
			return f.schedules.Delete(ctx, before)
		}
		after.EverySeconds, after.Revision, after.CreatedAtMS = 1800, before.Meta.Revision+1, before.Meta.CreatedAtMS
	}
	next, err := scheduler.NextTicks(f.tenant, namespace, &after.Schedule, now, 1)
	if err != nil {
		return err
	}
	put := schedules.Put{Path: f.path(name), NextMS: next[0], After: after}
	if before.Meta != nil {
		put.Before = before
	}
	return f.schedules.Put(ctx, put)
}
