package repair

const (
	// suspectsMax is the maximum number of suspects. Others are found again by a later
	// scan.
	suspectsMax = 1000
	// suspectsForgetMS is the age, in milliseconds, after which a suspect is forgotten if
	// room is needed. It no longer exists, or a scan would have confirmed or cleared it.
	suspectsForgetMS = 6 * 60 * 60_000
)

// Suspects remembers since when records have been in a state that an unfinished call or a crash
// can explain. Only a state that lasts is the result of a crash. The zero value is ready to use.
// It is not safe for concurrent use. With a grace of 60 s:
//
//	scan at  state found    Confirmed
//	0 s      wrong, "a"     false; remembered since 0 s
//	30 s     wrong, "a"     false
//	40 s     wrong, "b"     false; another state, remembered since 40 s
//	90 s     right          the caller calls Clear
//	120 s    wrong, "b"     false; remembered since 120 s
//	180 s    wrong, "b"     true: repair it, then call Clear
type Suspects[K comparable] struct{ all map[K]suspect }

// suspect is the state of a record, and since when it has been in it, in Unix milliseconds.
type suspect struct {
	how     string
	sinceMS int64
}

// Confirmed records that k is in the state how at now, a Unix time in milliseconds, and reports
// whether it has been in this state for graceMS. how distinguishes states that are wrong
// for different reasons; "" is a state like any other. If there is no room for k, it is not
// remembered and Confirmed returns false.
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

// forget removes old suspects.
func (s *Suspects[K]) forget(now int64) {
	for _, k := range s.overdue(now, suspectsForgetMS) {
		delete(s.all, k)
	}
}

// Clear removes k, which was repaired or needs no repair.
func (s *Suspects[K]) Clear(k K) { delete(s.all, k) }

// overdue returns the suspects that have been in their state for graceMS at now.
func (s *Suspects[K]) overdue(now, graceMS int64) (due []K) {
	for k, known := range s.all {
		if now-known.sinceMS >= graceMS {
			due = append(due, k)
		}
	}
	return due
}
