package slots

// Ready holds the queues that may have work. They are visited by turns of the tenants: a tenant with
// many queues delays those of another by one visit in each turn.
//
//	add a1 a2 a3      waiting: a(a1 a2 a3)
//	Turn = a1         waiting: a(a2 a3)          visited: a1
//	add b1            waiting: a(a2 a3) b(b1)    visited: a1
//	Turn = a2 b1      waiting: a(a3)             visited: a1 a2 b1
//	remove a2         waiting: a(a3)             visited: a1 b1
//	Again             waiting: a(a3 a1) b(b1)
//
// It is not safe for concurrent use.
type Ready[Q comparable] struct {
	tenant  func(Q) string
	tenants map[string]*readyQueues[Q]
	waiting int // queues that wait for a visit
}

type readyQueues[Q comparable] struct {
	waits map[Q]bool // true: it waits for a visit, and is in line; false: it was visited
	line  []Q        // with queues that wait no more: they are skipped
}

// NewReady returns an empty Ready. tenant returns whose queue it is.
func NewReady[Q comparable](tenant func(Q) string) *Ready[Q] {
	return &Ready[Q]{tenant: tenant, tenants: map[string]*readyQueues[Q]{}}
}

func (r *Ready[Q]) of(q Q) *readyQueues[Q] {
	t := r.tenants[r.tenant(q)]
	if t == nil {
		t = &readyQueues[Q]{waits: map[Q]bool{}}
		r.tenants[r.tenant(q)] = t
	}
	return t
}

// Add has q wait for a visit, if it does not wait for one already.
func (r *Ready[Q]) Add(q Q) {
	t := r.of(q)
	if t.waits[q] {
		return
	}
	t.waits[q] = true
	t.line = append(t.line, q)
	r.waiting++
}

// Keep adds q as one that was visited.
func (r *Ready[Q]) Keep(q Q) {
	t := r.of(q)
	if _, held := t.waits[q]; !held {
		t.waits[q] = false
	}
}

// Remove removes q.
func (r *Ready[Q]) Remove(q Q) {
	t := r.tenants[r.tenant(q)]
	if t == nil {
		return
	}
	if t.waits[q] {
		r.waiting--
	}
	delete(t.waits, q)
	if len(t.waits) == 0 {
		delete(r.tenants, r.tenant(q))
	}
}

// Turn returns the next queue of each tenant that has one waiting, as visited from now on. The order
// of the tenants is random.
func (r *Ready[Q]) Turn() (turn []Q) {
	for _, t := range r.tenants {
		for len(t.line) > 0 {
			q := t.line[0]
			t.line = t.line[1:]
			if t.waits[q] {
				t.waits[q] = false
				r.waiting--
				turn = append(turn, q)
				break
			}
		}
	}
	return turn
}

// Again has those wait for a visit that were visited, behind the others of their tenants.
func (r *Ready[Q]) Again() {
	for _, t := range r.tenants {
		for q, waits := range t.waits {
			if !waits {
				r.Add(q)
			}
		}
	}
}

// Waiting returns the number of queues that wait for a visit.
func (r *Ready[Q]) Waiting() int { return r.waiting }

// Empty reports whether there is no queue.
func (r *Ready[Q]) Empty() bool { return len(r.tenants) == 0 }
