package sweeper

import (
	"context"
	"time"
)

// walker goes over part of the store again and again. One time over all of it is a pass; a
// pass is done in chunks. The sweeper calls it from one goroutine.
type walker interface {
	// chunk continues the pass, for about the given number of reads, and adds what it did to
	// total. With the first chunk after the end of a pass another pass begins.
	chunk(ctx context.Context, now time.Time, reads int, total *Counts) (chunk, error)
	// stop ends the pass and releases what the walker holds.
	stop()
}

// chunk describes a part of a pass that was done.
type chunk struct {
	reads int  // that it took
	busy  bool // the store is in use there, or something was repaired
	end   bool // it was the last one of the pass
}

// progress is how far a walker's pass has come, and how fast it goes.
//
//	state    from                              until
//	running  the first chunk of a pass         its last chunk
//	resting  the end of a pass that was busy   PassInterval after the start of that pass
//	idle     the end of a pass without finds   a chunk that is busy, or a failure of the store
//
// An idle walker goes on with passes, one chunk after each pause.
type progress struct {
	name   string
	walker walker
	share  int // of a step's reads; the shares of all walkers sum up to the whole

	running    bool      // a pass is under way
	began      time.Time // when the pass began, by the time that RunOnce was given
	clock      time.Time // the same moment by the process's own clock
	found      bool      // a chunk of this pass was busy
	idle       bool      // no chunk of the pass before was
	pauseUntil time.Time // of an idle walker
}

// ready reports whether a chunk may be done at now. It begins a new pass if none is under way
// and the last one began at least interval ago.
func (p *progress) ready(now time.Time, interval time.Duration) bool {
	if p.idle && now.Before(p.pauseUntil) {
		return false
	}
	if !p.running {
		if now.Sub(p.began) < interval {
			return false
		}
		p.running, p.began, p.clock, p.found = true, now, time.Now(), false
	}
	return true
}
