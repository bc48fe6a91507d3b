// Package floors remembers how far sets were consumed, so that reads do not begin at their starts.
package floors

import "sync"

// Floors remember from which score to read a set whose head is consumed. On KVRocks a read
// from the start walks over every entry that was deleted there since the last compaction
// (docs/decisions/keyset-cursors.md has measurements). Scores are milliseconds since 1970.
//
// Reads begin a margin below the floor, for entries that arrive late, and at the start every
// ten minutes. If all entries up to 12:00:00 are consumed, reads begin at 11:59:00. An entry
// that a process with a slow clock adds at 11:58:00 waits until the floor restarts, ten
// minutes after it was first set, when reads begin at 0 again.
//
// Floors are of one process and only save work: losing them costs one slow read. The zero
// value is ready for use and reads every set from its start. Floors are safe for concurrent
// use.
type Floors struct {
	mu  sync.Mutex
	all map[string]*floor // by the set's key; at most floorEntries
}

// floor is the score below which a set was consumed, and the moment at which it is forgotten.
type floor struct{ at, restart int64 }

const (
	// MarginMS is how late an entry may be added, in milliseconds, without waiting for a
	// restart of the floor.
	MarginMS       = 60_000
	floorRestartMS = 10 * 60_000
	// floorEntries is the number of sets whose floors are kept. One more, and all floors are
	// dropped, which costs a slow read of each set.
	floorEntries = 50_000
)

// From returns the least score from which to read key at now (milliseconds since 1970): 0
// where no floor is known, or where it has to restart.
func (f *Floors) From(key string, now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.all[key]
	if known == nil || !known.holds(now) {
		return 0
	}
	return max(0, known.at-MarginMS)
}

// holds reports whether the floor is valid at now. A floor that lies ahead of now was set
// by a wrong clock.
func (k *floor) holds(now int64) bool { return now < k.restart && k.at <= now+MarginMS }

// Consumed records that key holds no entry below at, except for late ones. at is the
// score of the first entry that is left, or now if no entry up to now is left. A lower at
// than an earlier call's has no effect.
func (f *Floors) Consumed(key string, at, now int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil || len(f.all) >= floorEntries {
		f.all = map[string]*floor{}
	}
	known := f.all[key]
	if known == nil || !known.holds(now) {
		known = &floor{restart: now + floorRestartMS}
		f.all[key] = known
	}
	known.at = max(known.at, at)
}
