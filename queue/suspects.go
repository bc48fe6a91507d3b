package queue

// suspectsMax bounds what is suspected at once. What is not remembered is come upon
// again.
const suspectsMax = 1000

// Suspects remembers since when something has looked as if it was cut short: the call
// that is to make it whole may be under way.
type Suspects[K comparable] struct{ since map[K]int64 }

// Ripe notes that k looks so at now, and says whether it has for graceMS.
func (s *Suspects[K]) Ripe(k K, now, graceMS int64) bool {
	since, known := s.since[k]
	if known {
		return now-since >= graceMS
	}
	if len(s.since) < suspectsMax {
		if s.since == nil {
			s.since = map[K]int64{}
		}
		s.since[k] = now
	}
	return false
}

// Clear forgets k: it is mended, or looks well again.
func (s *Suspects[K]) Clear(k K) { delete(s.since, k) }

// due gives those that have looked so for graceMS at now.
func (s *Suspects[K]) due(now, graceMS int64) (due []K) {
	for k, since := range s.since {
		if now-since >= graceMS {
			due = append(due, k)
		}
	}
	return due
}
