package scheduler

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
)

func TestCatchUp(t *testing.T) {
	t.Parallel()
	const now = 1_000_000_000
	second := newInterval(1000, "t/ns/s")
	at := func(back int64) int64 { return second.next(now - back*1000 - 1000) } // the tick within that second
	hourly, err := newCronTiming("0 * * * *", "")
	if err != nil {
		t.Fatalf("newCronTiming: %v", err)
	}
	const hours = int64(3_600_000)
	for name, c := range map[string]struct {
		timing        timing
		catchup       string
		most          int
		tick          int64
		first, missed int64
	}{
		"one on time, none":          {second, api.CatchupNone, 60, at(1), at(1), 0},
		"all on time, none":          {second, api.CatchupNone, 60, at(9), at(9), 0},
		"late, all":                  {second, api.CatchupAll, 60, at(40), at(40), 0},
		"late, all, capped":          {second, api.CatchupAll, 5, at(40), at(14), 26},
		"late, latest":               {second, api.CatchupLatest, 60, at(40), at(9), 31},
		"late, none":                 {second, api.CatchupNone, 60, at(40), at(9), 31},
		"a year, all":                {second, api.CatchupAll, 60, at(31_536_000), at(69), 31_536_000 - 69},
		"cron, none":                 {hourly, api.CatchupNone, 60, now - now%hours - 5*hours, now - now%hours + hours, 6},
		"cron, latest":               {hourly, api.CatchupLatest, 60, now - now%hours - 5*hours, now - now%hours, 5},
		"cron, all":                  {hourly, api.CatchupAll, 60, now - now%hours - 5*hours, now - now%hours - 5*hours, 0},
		"cron, all, capped":          {hourly, api.CatchupAll, 2, now - now%hours - 5*hours, now - now%hours - hours, 4},
		"the cap is of late ones":    {second, api.CatchupAll, 1, at(9), at(9), 0},
		"latest leaves none on time": {second, api.CatchupLatest, 1, at(5), at(5), 0},
	} {
		first, missed := catchUp(&api.Schedule{Catchup: c.catchup, MaxCatchupTicks: c.most}, c.timing, c.tick, now)
		if first != c.first || missed != c.missed {
			t.Errorf("%s: first %d ms ago, %d missed; want %d ms ago, %d", name, now-first, missed, now-c.first, c.missed)
		}
	}
}

// TestCatchUpLeavesOutWhatItSays goes through every tick by hand.
func TestCatchUpLeavesOutWhatItSays(t *testing.T) {
	t.Parallel()
	minutely, err := newCronTiming("*/7 * * * *", "America/New_York")
	if err != nil {
		t.Fatalf("newCronTiming: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var timing timing = newInterval(rapid.Int64Range(1, 90).Draw(t, "every")*1000, "x")
		if rapid.Bool().Draw(t, "cron") {
			timing = minutely
		}
		now := rapid.Int64Range(1_700_000_000_000, 1_800_000_000_000).Draw(t, "now")
		tick := timing.next(now - rapid.Int64Range(1, 40_000_000).Draw(t, "behind"))
		s := &api.Schedule{
			Catchup:         rapid.SampledFrom([]string{api.CatchupAll, api.CatchupLatest, api.CatchupNone}).Draw(t, "catchup"),
			MaxCatchupTicks: rapid.IntRange(1, 100).Draw(t, "most"),
		}
		if tick > now {
			return
		}
		var late, onTime []int64
		for at := tick; at <= now; at = timing.next(at) {
			if at < now-api.CatchupGraceMS {
				late = append(late, at)
			} else {
				onTime = append(onTime, at)
			}
		}
		keep := map[string]int{api.CatchupAll: s.MaxCatchupTicks, api.CatchupLatest: 1}[s.Catchup]
		if s.Catchup == api.CatchupLatest && len(onTime) > 0 {
			keep = 0
		}
		keep = min(keep, len(late))
		want := append(late[len(late)-keep:], onTime...)
		want = append(want, timing.next(now))
		// Skipping the missed ticks may take several calls.
		first, missed := tick, int64(0)
		for {
			next, more := catchUp(s, timing, first, now)
			first, missed = next, missed+more
			if more == 0 {
				break
			}
		}
		if first != want[0] || missed != int64(len(late)-keep) {
			t.Fatalf("first %d, %d missed; want %d, %d", first, missed, want[0], len(late)-keep)
		}
	})
}
