package calls

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
)

func TestPercentilesAreInterpolated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		durations []traffic.DurationCount
		p50, p99  int64
	}{
		"one bucket":           {[]traffic.DurationCount{{BelowMS: 128, Calls: 100}}, 96, 128},
		"one call":             {[]traffic.DurationCount{{BelowMS: 16, Calls: 1}}, 12, 16},
		"within a millisecond": {[]traffic.DurationCount{{BelowMS: 1, Calls: 1000}}, 1, 1},
		"two buckets":          {[]traffic.DurationCount{{BelowMS: 64, Calls: 90}, {BelowMS: 128, Calls: 10}}, 50, 122},
		"an empty bucket":      {[]traffic.DurationCount{{BelowMS: 4, Calls: 50}, {BelowMS: 8}, {BelowMS: 1024, Calls: 50}}, 4, 1014},
		"the last bucket":      {[]traffic.DurationCount{{BelowMS: 1 << (buckets - 1), Calls: 4}}, 786432, 1043334},
	} {
		got := []int64{*percentile(tc.durations, .5), *percentile(tc.durations, .99)}
		if d := cmp.Diff([]int64{tc.p50, tc.p99}, got); d != "" {
			t.Errorf("%s: difference (-want +got):\n%s", name, d)
		}
	}
	if got := percentile(nil, .5); got != nil {
		t.Errorf("percentile without calls: got %d ms, want nil", *got)
	}
}

// TestTheLongestCallHasABucket: no call is longer than the last bucket, so its bound is one.
func TestTheLongestCallHasABucket(t *testing.T) {
	t.Parallel()
	if last := int64(1) << (buckets - 1); api.MaxTimeoutMS >= last {
		t.Errorf("got %d ms as the bound of the last bucket, want more than the longest timeout of %d ms", last, api.MaxTimeoutMS)
	}
}
