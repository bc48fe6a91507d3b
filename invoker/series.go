package invoker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/metrics"
)

// How many label sets a metric of functions has, beside those of metrics.Other,
// and how long one that nothing happened to is kept where others want its place.
const (
	maxSeries  = 10_000
	seriesIdle = time.Hour
	// seriesLook is the least time between two searches for such places.
	seriesLook = time.Minute
)

// series keeps what counts for each of a bounded number of keys: tenants make
// functions and versions as they like, and each is a label set.
type series[K comparable, V any] struct {
	most  int
	open  func(K) V
	close func(K)   // its place is taken by another
	other func(K) K // the key, of few, that counts where there is no place

	mu    sync.RWMutex
	kept  map[K]*seriesEntry[V]
	look  int64 // when places may be searched for again; Unix seconds
	spare metrics.Memo[K, V]
}

type seriesEntry[V any] struct {
	value   V
	touched atomic.Int64 // Unix seconds
}

func newSeries[K comparable, V any](most int, open func(K) V, closing func(K), other func(K) K) *series[K, V] {
	return &series[K, V]{most: most, open: open, close: closing, other: other, kept: map[K]*seriesEntry[V]{}}
}

// get gives what counts for key at now.
func (s *series[K, V]) get(key K, now time.Time) V {
	second := now.Unix()
	s.mu.RLock()
	entry := s.kept[key]
	full := len(s.kept) >= s.most && second < s.look
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

// admit gives key a place of its own if there is one, or one that has not been
// touched for long.
func (s *series[K, V]) admit(key K, second int64) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := s.kept[key]; entry != nil {
		return entry.value
	}
	if len(s.kept) >= s.most && second >= s.look {
		s.look = second + int64(seriesLook/time.Second)
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
