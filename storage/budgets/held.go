package budgets

import (
	"context"
	"sort"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/storage"
)

// The jobs that a budget holds are a sorted set. The score of a job that the limit of a day holds is the
// moment of the reset. That of a job that the limit of each job holds is capScore and the limit that it
// had then, so that those are found that a higher one would not hold:
//
//	1760054400000      01JC… until 2025-10-10
//	1000000005000000   01JD… by a limit of 5 USD, until it is raised or an operator approves the job
const capScore = 1_000_000_000_000_000

// DayScore returns the score of a job that the limit of a day holds.
func (c *Cover) DayScore() int64 { return c.ResetsMS }

// JobScore returns the score of a job that the limit of each job holds.
func (c *Cover) JobScore() int64 { return capScore + int64(*c.PerJobUSD) }

// Began returns when the day of now began, in Unix milliseconds.
func (r *Record) Began(now int64) int64 {
	const seconds = 50 * 60 * 60 // as of the longest day
	today, _ := budget.Day(r.zone, now)
	first := now/1000 - seconds
	n := sort.Search(seconds, func(n int) bool {
		day, _ := budget.Day(r.zone, (first+int64(n))*1000)
		return day >= today
	})
	return (first + int64(n)) * 1000
}

// Next returns when the budget is to be looked at next, in Unix milliseconds, 0 for never.
func (r *Record) Next(now int64) int64 {
	if r.DailyUSD == nil {
		return 0
	}
	_, next := budget.Day(r.zone, now)
	return next
}

// Find returns a budget of a tenant by its id as it is now, nil if it does not exist any more, and up to
// limit of the jobs that it holds and has no reason to hold at now. Errors: CodeStoreUnavailable.
func (r *Repository) Find(ctx context.Context, tenant, id string, now int64, limit int64) (rec *Record, free []string, err error) {
	set, err := r.Refresh(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	found := set.Covering(now, func(r *Record) bool { return r.ID == id })
	ranges := [][2]string{{"-inf", "+inf"}}
	if len(found) > 0 {
		rec, ranges = found[0].Record, found[0].free(now)
	}
	key := r.store.JobKeys(tenant).HeldBy(id)
	for _, span := range ranges {
		if int64(len(free)) >= limit {
			break
		}
		jobs, err := r.store.Client().ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: span[0], Max: span[1], Count: limit - int64(len(free))}).Result()
		if err != nil {
			return nil, nil, storage.Failure(ctx, "read held jobs", err)
		}
		free = append(free, jobs...)
	}
	return rec, free, nil
}

// free returns the ranges of the scores of jobs that the budget has no reason to hold.
func (c *Cover) free(now int64) [][2]string {
	if c.OnExceed == budget.OnExceedAlert {
		return [][2]string{{"-inf", "+inf"}}
	}
	days := strconv.FormatInt(now, 10)
	if !c.Reached(0) {
		days = exclusive(capScore)
	}
	jobs := "+inf"
	if c.PerJobUSD != nil {
		jobs = exclusive(capScore + *c.PerJobUSD)
	}
	return [][2]string{{"-inf", days}, {strconv.FormatInt(capScore, 10), jobs}}
}

func exclusive(score agent.USD) string { return "(" + strconv.FormatInt(int64(score), 10) }

// Held is a job that a budget may hold, and its run as it was read, "" for none.
type Held struct{ ID, Run string }

// Drop removes jobs from those that a budget holds, each if its run is as it was read. Errors:
// CodeStoreUnavailable.
func (r *Repository) Drop(ctx context.Context, tenant, id string, jobs []Held) error {
	all := r.store.JobKeys(tenant)
	keys, args := []string{all.HeldBy(id)}, make([]any, 0, 2*len(jobs))
	for _, job := range jobs {
		keys, args = append(keys, all.Run(job.ID)), append(args, job.ID, job.Run)
	}
	_, err := r.store.Script(ctx, scriptDrop, keys, args...)
	return err
}
