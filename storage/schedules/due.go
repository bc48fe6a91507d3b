package schedules

import (
	"context"
	"strconv"
	"strings"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/floors"
	"github.com/redis/go-redis/v9"
)

// Entry is an entry of a tenant's due set: a schedule with the moment of its next tick,
// in milliseconds since 1970. If the state of the schedule has another moment, the state decides.
type Entry struct {
	Path storage.SchedulePath
	AtMS int64
}

// Due reads the heads of tenants' due sets, from the known floors on, in one round trip: up to limit
// schedules of each tenant, whether they are due at now or later, soonest first. The result
// has a list for each of tenants. known belongs to the caller, which passes the same ones
// each time; Due advances them. Errors: CodeStoreUnavailable.
func (r *Repository) Due(ctx context.Context, known *floors.Floors, tenants []string, now int64, limit int) ([][]Entry, error) {
	pipe := r.s.Client().Pipeline()
	heads := make([]*redis.ZSliceCmd, len(tenants))
	for i, tenant := range tenants {
		key := r.s.ScheduleDueKey(tenant)
		heads[i] = pipe.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{
			Min: strconv.FormatInt(known.From(key, now), 10), Max: "+inf", Count: int64(limit),
		})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read due schedules", err)
	}
	out := make([][]Entry, len(tenants))
	for i, tenant := range tenants {
		consumed := now
		for k, z := range heads[i].Val() {
			member, _ := z.Member.(string)
			namespace, name, _ := strings.Cut(member, "/")
			out[i] = append(out[i], Entry{storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: name}, int64(z.Score)})
			if k == 0 {
				consumed = min(now, int64(z.Score)) // a schedule that is due must be found again
			}
		}
		known.Consumed(r.s.ScheduleDueKey(tenant), consumed, now)
	}
	return out, nil
}

// PutOff moves the due entries of schedules to at (milliseconds since 1970), so that one that
// cannot be ticked does not stay at the head of its set. It changes no entry that is later
// than at, and adds none: the schedule may have been deleted meanwhile.
func (r *Repository) PutOff(ctx context.Context, paths []storage.SchedulePath, at int64) error {
	pipe := r.s.Client().Pipeline()
	for _, p := range paths {
		pipe.ZAddArgs(ctx, r.s.ScheduleDueKey(p.Tenant), redis.ZAddArgs{
			XX: true, GT: true, Members: []redis.Z{{Score: float64(at), Member: p.Member()}},
		})
	}
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "put schedules off", err)
}

// DueEntries returns the moments, in milliseconds, of schedules in their tenants' due
// sets; 0 for a schedule that is not in one.
func (r *Repository) DueEntries(ctx context.Context, paths []storage.SchedulePath) ([]int64, error) {
	pipe := r.s.Client().Pipeline()
	scores := make([]*redis.FloatCmd, len(paths))
	for i, p := range paths {
		scores[i] = pipe.ZScore(ctx, r.s.ScheduleDueKey(p.Tenant), p.Member())
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return nil, storage.Failure(ctx, "read due schedules", err)
	}
	out := make([]int64, len(paths))
	for i, score := range scores {
		out[i] = int64(score.Val())
	}
	return out, nil
}

// Unmark removes a job from the jobs in flight of a schedule. It reports whether the job
// was one of them.
func (r *Repository) Unmark(ctx context.Context, path storage.SchedulePath, jobID string) (bool, error) {
	_, inFlight := r.s.ScheduleKeys(path)
	n, err := r.s.Client().ZRem(ctx, inFlight, jobID).Result()
	return n == 1, storage.Failure(ctx, "unmark a job", err)
}
