package scheduler_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
	"github.com/codesous/sous/storage/storagetest"
)

// settles runs step before the nth pipeline that settles members of due sets.
type settles struct {
	nth  int64
	seen atomic.Int64
	step func()
}

func (*settles) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (*settles) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (s *settles) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		first := cmds[0]
		if strings.HasPrefix(strings.ToLower(first.Name()), "eval") && strings.HasPrefix(fmt.Sprint(first.Args()[3]), "cs:due:") && s.seen.Add(1) == s.nth {
			s.step()
		}
		return next(ctx, cmds)
	}
}

// TestATenantIsMarkedForItsNextTick marks a tenant for a later tick of another schedule
// while the ticker visits it. The tenant must be marked for the earlier tick all the same.
func TestATenantIsMarkedForItsNextTick(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			cfg := backend.Config(t)
			f := newTicking(t, cfg)
			beside := f.beside(t, cfg)
			f.add(t, "often", nil)
			f.advance(time.Second)
			f.store.Client().AddHook(&settles{nth: 2, step: func() {
				path := f.path("seldom")
				s := api.Schedule{Name: path.Name, EverySeconds: 60, Queue: &api.ScheduleQueue{Name: "work"}, Enabled: true, Revision: 1, CreatedAtMS: f.ms.Load()}
				err := beside.schedules.Put(t.Context(), schedules.Put{Path: path, NextMS: f.ms.Load() + 3_000, After: &schedules.Stored{Schedule: s}})
				if err != nil {
					t.Errorf("Put: %v", err)
				}
			}})
			if _, err := f.Tend(t.Context(), f.due(t), f.ms.Load()); err != nil {
				t.Fatalf("Tend: %v", err)
			}
			next := f.load(t, f.path("often")).State.NextTickMS
			if due := f.marked(t); due == 0 || due > next {
				t.Errorf("tenant due in %d ms, want at most %d: its next tick", due-f.ms.Load(), next-f.ms.Load())
			}
		})
	}
}

// TestManyTenantsAreClaimedAnew: those who come last are not another replica's already
// when their turn comes.
func TestManyTenantsAreClaimedAnew(t *testing.T) {
	t.Parallel()
	f := newTicking(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.add(t, "often", nil)
	began := f.advance(time.Second)
	due := f.due(t)
	f.advance(20 * time.Second) // as long as those before them took
	var claim int64
	f.store.Client().AddHook(&settles{nth: 2, step: func() { claim = f.marked(t) }})
	if _, err := f.Tend(t.Context(), due, began); err != nil {
		t.Fatalf("Tend: %v", err)
	}
	if claim <= f.ms.Load() {
		t.Errorf("claim until %d, want it after %d", claim, f.ms.Load())
	}
}

// marked is when the tenant is due, 0 for never.
func (f *ticking) marked(t *testing.T) int64 {
	t.Helper()
	m := storage.DueSchedulePrefix + f.tenant
	return int64(f.rdb().ZScore(t.Context(), storage.KeyDue(storage.DueShard(m)), m).Val())
}
