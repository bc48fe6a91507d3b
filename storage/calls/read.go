package calls

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api/traffic"
	"github.com/codesous/sous/storage"
)

// failures is the field of failed calls, beside the numbers of the buckets.
const failures = "f"

// Repository reads the counts of functions.
type Repository struct{ s *storage.Store }

// New returns the counts in s.
func New(s *storage.Store) *Repository { return &Repository{s} }

// replies are those of one function.
type replies struct {
	days    [2]*redis.MapStringStringCmd
	failure *redis.StringCmd
}

// Add sets the calls of the functions of a namespace that of names: those of the current hour
// and of the 23 hours before. CodeStoreUnavailable.
func (r *Repository) Add(ctx context.Context, tenant, namespace string, of []traffic.FunctionCalls) error {
	if len(of) == 0 {
		return nil
	}
	hour := r.s.NowMS() / hourMS
	from := hour - hoursOfDay + 1
	keys := r.s.Keys()
	pipe := r.s.Client().Pipeline()
	all := make([]replies, len(of))
	for i, f := range of {
		for d := range all[i].days {
			all[i].days[d] = pipe.HGetAll(ctx, keys.FunctionCalls(tenant, namespace, f.Name, hour/hoursOfDay-int64(d)))
		}
		all[i].failure = pipe.Get(ctx, keys.FunctionFailure(tenant, namespace, f.Name))
	}
	if err := storage.ExecOptional(ctx, pipe); err != nil {
		return storage.Failure(ctx, "read calls of functions", err)
	}
	for i := range of {
		of[i].SinceMS = from * hourMS
		var durations [buckets]int64
		for d, reply := range all[i].days {
			sum(&of[i], &durations, reply.Val(), hour/hoursOfDay-int64(d), from)
		}
		of[i].Durations = []traffic.DurationCount{}
		for b, n := range durations {
			if n > 0 {
				of[i].Durations = append(of[i].Durations, traffic.DurationCount{BelowMS: 1 << b, Calls: n})
				of[i].Calls += n
			}
		}
		of[i].P50MS, of[i].P99MS = percentile(of[i].Durations, .5), percentile(of[i].Durations, .99)
		if raw := all[i].failure.Val(); raw != "" {
			last, err := storage.Decode[traffic.FunctionFailure](raw)
			if err != nil {
				return err
			}
			of[i].LastFailure = &last
		}
	}
	return nil
}

// sum adds the counts of a day, from the hour from on, to f and durations. It skips fields that
// it does not know, such as those of a newer release.
func sum(f *traffic.FunctionCalls, durations *[buckets]int64, counts map[string]string, day, from int64) {
	for field, text := range counts {
		inDay, kind, _ := strings.Cut(field, ":")
		hour, err := strconv.ParseInt(inDay, 10, 64)
		n, malformed := strconv.ParseInt(text, 10, 64)
		if err != nil || malformed != nil || day*hoursOfDay+hour < from {
			continue
		}
		if kind == failures {
			f.Failures += n
		} else if b, err := strconv.Atoi(kind); err == nil && b >= 0 && b < buckets {
			durations[b] += n
		}
	}
}
