package sweeper

import (
	"context"
	"time"
)

// course is a way over part of the store that is gone lap after lap, in pieces.
type course interface {
	// piece goes on, for about so many reads, and adds what it did to total.
	piece(ctx context.Context, now time.Time, reads int, total *Counts) (piece, error)
	// stop lets go of what the course holds. Another piece begins a new lap.
	stop()
}

// piece is part of a lap.
type piece struct {
	reads int  // that it took
	busy  bool // the store is in use there, or something was mended
	end   bool // of the lap
}

// lap is how far a course has come, and how fast it goes.
type lap struct {
	name   string
	course course
	share  int // of a step's reads, among all courses'

	under bool // a lap is under way
	began time.Time
	start time.Time // the same by the process's own clock
	found bool      // it was busy somewhere
	idle  bool      // the lap before it was nowhere
	rest  time.Time // nothing is to be done before that, where it is idle
}

// ready says whether a piece may be done at now, and begins a new lap if the one before
// is over and began at least least ago.
func (l *lap) ready(now time.Time, least time.Duration) bool {
	if l.idle && now.Before(l.rest) {
		return false
	}
	if !l.under {
		if now.Sub(l.began) < least {
			return false
		}
		l.under, l.began, l.start, l.found = true, now, time.Now(), false
	}
	return true
}
