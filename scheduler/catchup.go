package scheduler

import "github.com/codesous/sous/api"

// catchupSteps bounds the late ticks that one call of catchUp looks at. The next one looks at
// those behind them. Two weeks of a tick each minute have about as many; the ticks of an interval
// are computed instead.
const catchupSteps = 20_000

// catchUp applies the catch-up policy of a schedule whose next tick is tick. It returns the
// first tick that is to be fired, which may be later than now, 0 if there is none, and the
// number of late ticks before it that the policy leaves out. A tick is late if it is more than
// api.CatchupGraceMS, 10 s, before now.
//
// A schedule that ticks each minute, after an outage from 12:00:30 to 12:10:05: its next tick is
// 12:01:00. The nine ticks from 12:01 to 12:09 are late, 12:10 is not.
//
//	policy                   first  missed  fired by the following moves
//	all, MaxCatchupTicks 60  12:01  0       12:01, 12:02, … 12:10
//	all, MaxCatchupTicks 3   12:07  6       12:07, 12:08, 12:09, 12:10
//	latest                   12:10  9       12:10
//	none                     12:10  9       12:10
//
// At 12:10:30, 12:10 is late as well, and the next tick is 12:11: latest still fires 12:10, with
// 9 missed, and none fires nothing until 12:11, with 10 missed.
//
// A result with missed ticks becomes a move of its own, which counts them. The tick is fired by
// the move behind it, for which catchUp is called again, with first as the next tick.
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
