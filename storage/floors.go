package storage

import "sync"

// Floors remember from which score to read a set whose head is consumed. On KVRocks a read
// from the start walks over every entry that was ever deleted there. Reads begin a margin
// below the floor, for entries that arrive late, and at the start from time to time.
type Floors struct {
	mu  sync.Mutex
	all map[string]*floor
}

type floor struct{ at, restart int64 }

const (
	// FloorMarginMS is how late an entry may be added.
	FloorMarginMS  = 60_000
	floorRestartMS = 10 * 60_000
	floorEntries   = 50_000
)

// From returns the least score from which to read key at now (milliseconds).
func (f *Floors) From(key string, now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.all[key]
	if known == nil || !known.holds(now) {
		return 0
	}
	return max(0, known.at-FloorMarginMS)
}

// holds reports whether the floor is valid at now. A floor that lies ahead of now was set
// by a wrong clock.
func (k *floor) holds(now int64) bool { return now < k.restart && k.at <= now+FloorMarginMS }

// Consumed records that key holds no entry below at, except for late ones.
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
