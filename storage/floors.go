package storage

import "sync"

// Floors remember from where sets that are consumed at their head are read: on
// KVRocks a read from the very start walks over all that was ever deleted there.
// They go back by a margin, for entries that came late, and now and then to the
// start.
type Floors struct {
	mu  sync.Mutex
	all map[string]*floor
}

type floor struct{ at, restart int64 }

const (
	// FloorMarginMS is how late an entry may come.
	FloorMarginMS  = 60_000
	floorRestartMS = 10 * 60_000
	floorEntries   = 50_000
)

// From gives the least score at which key is to be read at now.
func (f *Floors) From(key string, now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.all[key]
	if known == nil || !known.holds(now) {
		return 0
	}
	return max(0, known.at-FloorMarginMS)
}

// holds says whether the floor is still to be used: one that lies ahead of now is of a
// clock that was wrong.
func (k *floor) holds(now int64) bool { return now < k.restart && k.at <= now+FloorMarginMS }

// Consumed remembers that key holds nothing below at that is not late.
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
