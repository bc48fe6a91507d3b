package calls

import (
	"math"

	"github.com/codesous/sous/api/traffic"
)

// percentile estimates the duration in milliseconds, rounded up, that the share of calls, from
// 0 to 1, did not exceed. It is nil without calls. Like histogram_quantile of Prometheus, it
// assumes that the calls of a bucket are spread evenly over it:
//
//	{below 64 ms: 90 calls, below 128 ms: 10 calls}, .99   64 + (128-64) * 9/10 = 122 ms
func percentile(durations []traffic.DurationCount, share float64) *int64 {
	total := int64(0)
	for _, d := range durations {
		total += d.Calls
	}
	rank, below := share*float64(total), int64(0)
	for _, d := range durations {
		if d.Calls > 0 && float64(below+d.Calls) >= rank {
			from := float64(d.BelowMS / 2) // 0 for the calls below 1 ms
			ms := int64(math.Ceil(from + (float64(d.BelowMS)-from)*(rank-float64(below))/float64(d.Calls)))
			return &ms
		}
		below += d.Calls
	}
	return nil
}
