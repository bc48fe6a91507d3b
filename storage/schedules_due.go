package storage

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// DueSchedule is a schedule and when its next tick is, in milliseconds.
type DueSchedule struct {
	Path SchedulePath
	AtMS int64
}

// Due reads the heads of tenants' due sets from floors on, up to limit schedules of each,
// due at now or not, in one round trip.
func (r *Schedules) Due(ctx context.Context, floors *Floors, tenants []string, now int64, limit int) ([][]DueSchedule, error) {
	pipe := r.s.rdb.Pipeline()
	heads := make([]*redis.ZSliceCmd, len(tenants))
	for i, tenant := range tenants {
		key := r.s.keys.scheduleDue(tenant)
		heads[i] = pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{
			Min: strconv.FormatInt(floors.From(key, now), 10), Max: "+inf", Count: int64(limit),
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Failure(ctx, "read due schedules", err)
	}
	out := make([][]DueSchedule, len(tenants))
	for i, tenant := range tenants {
		consumed := now
		for k, z := range heads[i].Val() {
			member, _ := z.Member.(string)
			namespace, name, _ := strings.Cut(member, "/")
			out[i] = append(out[i], DueSchedule{SchedulePath{tenant, namespace, name}, int64(z.Score)})
			if k == 0 {
				consumed = min(now, int64(z.Score)) // what is due has to be found again
			}
		}
		floors.Consumed(r.s.keys.scheduleDue(tenant), consumed, now)
	}
	return out, nil
}

// PutOff has schedules that are due looked at again at at, and not sooner. It changes
// nothing but their due entries, and none of a schedule that is due later still.
func (r *Schedules) PutOff(ctx context.Context, paths []SchedulePath, at int64) error {
	pipe := r.s.rdb.Pipeline()
	for _, p := range paths {
		pipe.ZAddArgs(ctx, r.s.keys.scheduleDue(p.Tenant), redis.ZAddArgs{
			XX: true, GT: true, Members: []redis.Z{{Score: float64(at), Member: p.member()}},
		})
	}
	_, err := pipe.Exec(ctx)
	return Failure(ctx, "put schedules off", err)
}

// DueEntries gives the moments at which schedules are due by their tenants' due sets, 0 for
// those that are not in them.
func (r *Schedules) DueEntries(ctx context.Context, paths []SchedulePath) ([]int64, error) {
	pipe := r.s.rdb.Pipeline()
	scores := make([]*redis.FloatCmd, len(paths))
	for i, p := range paths {
		scores[i] = pipe.ZScore(ctx, r.s.keys.scheduleDue(p.Tenant), p.member())
	}
	if err := ExecOptional(ctx, pipe); err != nil {
		return nil, Failure(ctx, "read due schedules", err)
	}
	out := make([]int64, len(paths))
	for i, score := range scores {
		out[i] = int64(score.Val())
	}
	return out, nil
}

// Unmark takes a job out of those in flight, and says whether it was there.
func (r *Schedules) Unmark(ctx context.Context, path SchedulePath, jobID string) (bool, error) {
	n, err := r.s.rdb.ZRem(ctx, r.s.keys.schedule(path.Tenant, path.Namespace, path.Name).inflight(), jobID).Result()
	return n == 1, Failure(ctx, "unmark a job", err)
}
