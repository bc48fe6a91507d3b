package calls

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// What the functions of a tenant have used on a day, UTC, is one hash, which is kept for 400
// days. A field is the namespace, the function and a letter:
//
//	cs:usage:t_acme01:20454   {"default/mail:n": 124, "default/mail:c": 930, "default/mail:m": 15}
//
// mail was called 124 times, and used 0.93 CPU seconds and 0.015 GB-seconds. The counter of calls
// writes the sums of two seconds, in the same pipeline as the calls.
const (
	usedCalls  = "n"
	usedErrors = "f"
	usedCPU    = "c" // ms
	usedMemory = "m" // thousandths of GB-seconds
	usedWall   = "w" // ms
	usedEgress = "e" // bytes

	usageTTL = 400 * 24 * time.Hour
	// MaxUsageDays bounds the days of one reading.
	MaxUsageDays = 100
	// maxUsageRows bounds the functions of a reading by function, all days together.
	maxUsageRows = 50_000
	usageScan    = 1000
)

// used holds the use by the calls of a tally. CPU is in microseconds: most calls take less than
// a millisecond.
type used struct {
	calls, cpuMicros, memory, wall, egress int64
}

func (u *used) add(a *api.Activation, memoryMB int) {
	u.calls++
	u.cpuMicros += int64(a.CPUMS * 1000)
	u.memory += quota.MilliGBSeconds(memoryMB, a.DurationMS)
	u.wall += a.DurationMS
	u.egress += a.EgressBytes
}

// write adds what t has used to the hash of its day.
func (t *tally) write(ctx context.Context, pipe redis.Pipeliner, day string, key place) {
	fields := []struct {
		kind string
		n    int64
	}{
		{usedCalls, t.used.calls},
		{usedErrors, t.failures},
		{usedCPU, (t.used.cpuMicros + 999) / 1000},
		{usedMemory, t.used.memory},
		{usedWall, t.used.wall},
		{usedEgress, t.used.egress},
	}
	for _, f := range fields {
		if f.n > 0 {
			increment(ctx, pipe, day, key.namespace+"/"+key.function+":"+f.kind, f.n)
		}
	}
	pipe.PExpire(ctx, day, usageTTL)
}

// Usage returns what a tenant's functions have used from a day to another, both included and
// counted from 1970 in UTC: a sum for each day, and with byFunction also each function's.
// CodeInvalid for more than MaxUsageDays, or for more functions than one answer holds.
func (r *Repository) Usage(ctx context.Context, tenant string, from, to int64, byFunction bool) (days []quota.UsageDay, functions []quota.FunctionUsage, err error) {
	if to < from || to-from >= MaxUsageDays {
		return nil, nil, api.Errorf(api.CodeInvalid, "the days must be in order, at most %d of them", MaxUsageDays)
	}
	days = []quota.UsageDay{}
	for day := from; day <= to; day++ {
		text := time.UnixMilli(day * hourMS * hoursOfDay).UTC().Format(time.DateOnly)
		sums, err := r.day(ctx, r.s.Keys().UsageDay(tenant, day))
		if err != nil {
			return nil, nil, err
		}
		total := quota.UsageDay{Day: text}
		for name, sum := range sums {
			total = added(total, sum)
			if byFunction {
				namespace, function, _ := strings.Cut(name, "/")
				sum.Day = text
				functions = append(functions, quota.FunctionUsage{Namespace: namespace, Function: function, UsageDay: sum})
			}
		}
		if len(sums) > 0 {
			days = append(days, total)
		}
		if len(functions) > maxUsageRows {
			return nil, nil, api.Errorf(api.CodeInvalid, "these days have more than %s functions: ask for fewer days", api.CountText(maxUsageRows))
		}
	}
	slices.SortFunc(functions, func(a, b quota.FunctionUsage) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Function, b.Function))
	})
	return days, functions, nil
}

// day reads the hash of a day, in pages: it may have a field for each of many functions.
func (r *Repository) day(ctx context.Context, key string) (map[string]quota.UsageDay, error) {
	sums := map[string]quota.UsageDay{}
	seen := map[string]bool{}
	for cursor := uint64(0); ; {
		fields, next, err := r.s.Client().HScan(ctx, key, cursor, "", usageScan).Result()
		if err != nil {
			return nil, storage.Failure(ctx, "read usage", err)
		}
		for i := 0; i+1 < len(fields); i += 2 {
			name, kind, _ := strings.Cut(fields[i], ":")
			n, err := strconv.ParseInt(fields[i+1], 10, 64)
			if err != nil || seen[fields[i]] { // a scan may return a field twice
				continue
			}
			seen[fields[i]] = true
			sums[name] = added(sums[name], usageOf(kind, n))
		}
		if next == 0 {
			return sums, nil
		}
		cursor = next
	}
}

// usageOf returns n of a kind of field; nothing for a kind of a newer release.
func usageOf(kind string, n int64) (u quota.UsageDay) {
	switch kind {
	case usedCalls:
		u.Calls = n
	case usedErrors:
		u.Errors = n
	case usedCPU:
		u.CPUSeconds = float64(n) / 1000
	case usedMemory:
		u.GBSeconds = float64(n) / 1000
	case usedWall:
		u.WallSeconds = float64(n) / 1000
	case usedEgress:
		u.EgressBytes = n
	}
	return u
}

func added(a, b quota.UsageDay) quota.UsageDay {
	a.Calls += b.Calls
	a.Errors += b.Errors
	a.CPUSeconds += b.CPUSeconds
	a.GBSeconds += b.GBSeconds
	a.WallSeconds += b.WallSeconds
	a.EgressBytes += b.EgressBytes
	return a
}
