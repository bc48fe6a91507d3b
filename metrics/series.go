package metrics

import (
	"sync"
	"sync/atomic"
	"time"
)

// MaxSeries bounds the label sets of a metric of functions, without those of Other, and
// seriesIdle is the time after which an idle one may be replaced. Ten thousand sets of invocations_total
// and invocation_seconds_total are 20,000 series for the scraper.
const (
	MaxSeries  = 10_000
	seriesIdle = time.Hour
	// searchInterval is the least time between two searches for idle ones.
	searchInterval = time.Minute
)

// Series keeps a value for each of a bounded number of keys. Without a bound, tenants
// could create label sets at will: every version of a function is one.
type Series[K comparable, V any] struct {
	most  int
	open  func(K) V
	close func(K)   // it is replaced by another
	other func(K) K // the shared key that counts where there is no room

	mu    sync.RWMutex
	kept  map[K]*seriesEntry[V]
	next  int64 // when idle entries may be searched for again; Unix seconds
	spare Memo[K, V]
}

type seriesEntry[V any] struct {
	value   V
	touched atomic.Int64 // Unix seconds
}

// NewSeries returns a Series of at most most values of open. closing is called for a key that
// another one replaces.
func NewSeries[K comparable, V any](most int, open func(K) V, closing func(K), other func(K) K) *Series[K, V] {
	return &Series[K, V]{most: most, open: open, close: closing, other: other, kept: map[K]*seriesEntry[V]{}}
}

// Get returns the value that counts for key at now: its own, or that of other(key) while
// all entries are in use. A key that has an entry costs a read lock and, once a second, the
// update of its time.
func (s *Series[K, V]) Get(key K, now time.Time) V {
	second := now.Unix()
	s.mu.RLock()
	entry := s.kept[key]
	full := len(s.kept) >= s.most && second < s.next
	s.mu.RUnlock()
	switch {
	case entry != nil:
		if entry.touched.Load() != second {
			entry.touched.Store(second)
		}
		return entry.value
	case full:
		return s.spare.Get(s.other(key), s.open)
	}
	return s.admit(key, second)
}

// admit makes an entry for key where there is room, or in place of an idle entry. The
// search for idle entries walks over all of them under the lock, so it runs at most once in
// searchInterval; in between, new keys count for other(key).
func (s *Series[K, V]) admit(key K, second int64) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.kept[key]; entry != nil {
		return entry.value
	}
	if len(s.kept) >= s.most && second >= s.next {
		s.next = second + int64(searchInterval/time.Second)
		for k, entry := range s.kept {
			if second-entry.touched.Load() >= int64(seriesIdle/time.Second) {
				delete(s.kept, k)
				s.close(k)
			}
		}
	}
	if len(s.kept) >= s.most {
		return s.spare.Get(s.other(key), s.open)
	}
	entry := &seriesEntry[V]{value: s.open(key)}
	entry.touched.Store(second)
	s.kept[key] = entry
	return entry.value
}
