package scheduler

import "github.com/codesous/sous/api"

// catchupSteps bounds the late ticks that one call of catchUp looks at. The next one looks at
// those behind them.
const catchupSteps = 20_000

// catchUp applies the catch-up policy of a schedule whose next tick is tick. It returns the
// first tick that is to be fired, which may be later than now, 0 if there is none, and the
// number of late ticks before it that the policy leaves out.
func catchUp(s *api.Schedule, t timing, tick, now int64) (first, missed int64) {
	late, keep := now-api.CatchupGraceMS, 0
	switch s.Catchup {
	case api.CatchupAll:
		keep = s.MaxCatchupTicks
	case api.CatchupLatest:
		keep = 1
	}
	if every, ok := t.(interval); ok && tick < late { // an interval is computed, not walked over
		if over := (late-1-tick)/every.periodMS + 1 - int64(keep); over > 0 {
			tick, missed = tick+over*every.periodMS, over
		}
	}
	var lates []int64
	for ; tick > 0 && tick < late && len(lates) < catchupSteps; tick = t.next(tick) {
		lates = append(lates, tick)
	}
	if s.Catchup == api.CatchupLatest && tick >= late && tick <= now {
		keep = 0 // the last one is not late
	}
	if over := len(lates) - keep; over > 0 {
		lates, missed = lates[over:], missed+int64(over)
	}
	if len(lates) > 0 {
		return lates[0], missed
	}
	return tick, missed
}
