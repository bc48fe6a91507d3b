package repair

const (
	// suspectsMax bounds what is suspected at once. What is not remembered is come upon
	// again.
	suspectsMax = 1000
	// suspectsForgetMS is when nobody will meet a suspect again: what it was is gone.
	suspectsForgetMS = 6 * 60 * 60_000
)

// Suspects remembers since when something has looked as if it was cut short: the call
// that is to make it whole may be under way.
type Suspects[K comparable] struct{ all map[K]suspect }

// suspect is how something looks, and since when.
type suspect struct {
	how     string
	sinceMS int64
}

// Confirmed notes that k looks as how says at now, and says whether it has for graceMS.
func (s *Suspects[K]) Confirmed(k K, how string, now, graceMS int64) bool {
	known, ok := s.all[k]
	if ok && known.how == how {
		return now-known.sinceMS >= graceMS
	}
	if !ok && len(s.all) >= suspectsMax {
		s.forget(now)
	}
	if ok || len(s.all) < suspectsMax {
		if s.all == nil {
			s.all = map[K]suspect{}
		}
		s.all[k] = suspect{how, now}
	}
	return false
}

// forget makes room.
func (s *Suspects[K]) forget(now int64) {
	for _, k := range s.overdue(now, suspectsForgetMS) {
		delete(s.all, k)
	}
}

// Clear forgets k: it is mended, or looks well again.
func (s *Suspects[K]) Clear(k K) { delete(s.all, k) }

// overdue gives those that have looked so for graceMS at now.
func (s *Suspects[K]) overdue(now, graceMS int64) (due []K) {
	for k, known := range s.all {
		if now-known.sinceMS >= graceMS {
			due = append(due, k)
		}
	}
	return due
}
