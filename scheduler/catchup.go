package scheduler

import "github.com/codesous/sous/api"

// catchupSteps bounds how many late ticks one look goes through: what is beyond is for
// the next one.
const catchupSteps = 20_000

// catchUp says from which tick on a schedule is to be fired whose next tick is tick:
// those that are late and that its policy leaves out are passed over, missed of them.
// first may lie ahead of now; 0 means that there is none.
func catchUp(s *api.Schedule, t timing, tick, now int64) (first, missed int64) {
	late, keep := now-api.CatchupGraceMS, 0
	switch s.Catchup {
	case api.CatchupAll:
		keep = s.MaxCatchupTicks
	case api.CatchupLatest:
		keep = 1
	}
	if every, ok := t.(interval); ok && tick < late { // there is no need to walk over them
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
