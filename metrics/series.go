package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

// MaxSeries bounds the label sets of a metric of functions, without those of Other for all
// tenants, and seriesIdle is the time after which an idle one may be replaced. Ten thousand sets
// of invocations_total and invocation_seconds_total are 20,000 series for the scraper.
const (
	MaxSeries  = 10_000
	seriesIdle = time.Hour
	// searchInterval is the least time between two searches for idle ones.
	searchInterval = time.Minute
)

// SeriesOf says how a Series makes and names its values.
type SeriesOf[K comparable, V any] struct {
	Open  func(K) V
	Close func(K) // another key replaces this one
	// Tenant returns whose key it is, and Other the shared key that counts in its place for
	// keys of a tenant that have no room, or of all tenants where tenant is the constant Other.
	Tenant func(K) string
	Other  func(key K, tenant string) K
}

// Series keeps a value for each of a bounded number of keys. Without a bound, tenants
// could create label sets at will: every version of a function is one. A tenant has room for at
// most as many keys as are free, so one tenant takes at most half of the room, the next
// half of the rest, and a tenant with few functions finds some.
type Series[K comparable, V any] struct {
	most int
	of   SeriesOf[K, V]

	mu    sync.RWMutex
	kept  map[K]*seriesEntry[V]
	count map[string]int // the kept keys of each tenant
	next  int64          // when idle entries may be searched for again; Unix seconds
	spare Memo[K, V]
}

type seriesEntry[V any] struct {
	value   V
	touched atomic.Int64 // Unix seconds
}

// touch remembers that the entry was used, and returns its value.
func (e *seriesEntry[V]) touch(second int64) V {
	if e.touched.Load() != second {
		e.touched.Store(second)
	}
	return e.value
}

// NewSeries returns a Series of at most most values.
func NewSeries[K comparable, V any](most int, of SeriesOf[K, V]) *Series[K, V] {
	return &Series[K, V]{most: most, of: of, kept: map[K]*seriesEntry[V]{}, count: map[string]int{}}
}

// Get returns the value that counts for key at now: its own; that of the other keys of its tenant
// while the tenant has no room; or that of the other keys of all tenants while there is no
// room at all. A key of the tenant Other is not bounded. A key that has an entry costs a read lock and, once a second, the update of its time.
func (s *Series[K, V]) Get(key K, now time.Time) V {
	if s.of.Tenant(key) == Other {
		return s.spare.Get(key, s.of.Open)
	}
	second := now.Unix()
	s.mu.RLock()
	entry := s.kept[key]
	if entry == nil && second < s.next && !s.room(key) {
		key = s.of.Other(key, s.of.Tenant(key))
		entry = s.kept[key]
	}
	full := len(s.kept) >= s.most && second < s.next
	s.mu.RUnlock()
	switch {
	case entry != nil:
		return entry.touch(second)
	case full:
		return s.spare.Get(s.of.Other(key, Other), s.of.Open)
	}
	return s.admit(key, second)
}

// room reports whether there is room for one more key of the tenant of key. The other keys of a
// tenant need room only among all: they are few.
func (s *Series[K, V]) room(key K) bool {
	tenant, free := s.of.Tenant(key), s.most-len(s.kept)
	return s.count[tenant] < free || free > 0 && s.of.Other(key, tenant) == key
}

// admit makes an entry for key, or for the other keys of its tenant, where there is room or in
// place of an idle entry. The search for idle entries walks over all of them under the lock, so it
// runs at most once in searchInterval; in between, new keys count for the shared ones.
func (s *Series[K, V]) admit(key K, second int64) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.kept[key]; entry != nil {
		return entry.touch(second)
	}
	if !s.room(key) && second >= s.next {
		s.next = second + int64(searchInterval/time.Second)
		s.closeIdle(second)
	}
	if !s.room(key) {
		key = s.of.Other(key, s.of.Tenant(key))
		if entry := s.kept[key]; entry != nil {
			return entry.touch(second)
		}
		if !s.room(key) {
			return s.spare.Get(s.of.Other(key, Other), s.of.Open)
		}
	}
	entry := &seriesEntry[V]{value: s.of.Open(key)}
	entry.touched.Store(second)
	s.kept[key] = entry
	s.count[s.of.Tenant(key)]++
	return entry.value
}

func (s *Series[K, V]) closeIdle(second int64) {
	for key, entry := range s.kept {
		if second-entry.touched.Load() < int64(seriesIdle/time.Second) {
			continue
		}
		delete(s.kept, key)
		s.of.Close(key)
		tenant := s.of.Tenant(key)
		s.count[tenant]--
		if s.count[tenant] == 0 {
			delete(s.count, tenant)
		}
	}
}
