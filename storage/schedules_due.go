package storage

import (
	"context"
	"strconv"
	"strings"

	"github.com/codesous/sous/storage/floors"
	"github.com/redis/go-redis/v9"
)

// DueSchedule is an entry of a tenant's due set: a schedule with the moment of its next tick,
// in milliseconds since 1970. If the state of the schedule has another moment, the state decides.
type DueSchedule struct {
	Path SchedulePath
	AtMS int64
}

// Due reads the heads of tenants' due sets, from the known floors on, in one round trip: up to limit
// schedules of each tenant, whether they are due at now or later, soonest first. The result
// has a list for each of tenants. known belongs to the caller, which passes the same ones
// each time; Due advances them. Errors: CodeStoreUnavailable.
func (r *Schedules) Due(ctx context.Context, known *floors.Floors, tenants []string, now int64, limit int) ([][]DueSchedule, error) {
	pipe := r.s.rdb.Pipeline()
	heads := make([]*redis.ZSliceCmd, len(tenants))
	for i, tenant := range tenants {
		key := r.s.keys.scheduleDue(tenant)
		heads[i] = pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{
			Min: strconv.FormatInt(known.From(key, now), 10), Max: "+inf", Count: int64(limit),
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
				consumed = min(now, int64(z.Score)) // a schedule that is due must be found again
			}
		}
		known.Consumed(r.s.keys.scheduleDue(tenant), consumed, now)
	}
	return out, nil
}

// PutOff moves the due entries of schedules to at (milliseconds since 1970), so that one that
// cannot be ticked does not stay at the head of its set. It changes no entry that is later
// than at, and adds none: the schedule may have been deleted meanwhile.
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

// DueEntries returns the moments, in milliseconds, of schedules in their tenants' due
// sets; 0 for a schedule that is not in one.
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

// Unmark removes a job from the jobs in flight of a schedule. It reports whether the job
// was one of them.
func (r *Schedules) Unmark(ctx context.Context, path SchedulePath, jobID string) (bool, error) {
	n, err := r.s.rdb.ZRem(ctx, r.s.keys.schedule(path.Tenant, path.Namespace, path.Name).inflight(), jobID).Result()
	return n == 1, Failure(ctx, "unmark a job", err)
}
