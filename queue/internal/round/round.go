// Package round orders the maintenance of due queues, so that no tenant delays another.
//
// The tenants of a round wait in a line. A visitor takes the first tenant, visits one of its
// queues, and puts it back at the end. So no tenant has a second visit before each has had one,
// and no tenant is visited twice at once. A tenant leaves the line when it has no queue or too
// little time left:
//
//	line   a(q1 q2 q3) b(q1) c(q1 q2)    a is taken for its q1
//	line   b(q1) c(q1 q2) a(q2 q3)       and is back
//	line   c(q1 q2) a(q2 q3)             b has no other queue
//	line   a(q2 q3)                      c has used its time: its q2 waits for the next round
package round

import (
	"sync"
	"time"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

const (
	// VisitTime bounds the maintenance of one queue, so that a large backlog does not delay the
	// other queues. The rest is done when its claim has expired.
	VisitTime = time.Second
	// tenantTime bounds the maintenance of one tenant's queues in a round. It is more than
	// VisitTime, so that a slow queue does not take the turn of the others. The queues that are
	// left are visited in the next round.
	tenantTime = 2 * time.Second
	// visitors is how many tenants a round visits at once.
	visitors = 4
)

// Queue is a queue and its member of a due set, as it was read.
type Queue struct {
	jobstore.Queue

	Member storage.DueMember
}

// Round is one round.
type Round struct {
	line chan *turn // has room for all tenants; closed when the last one has left it

	mu      sync.Mutex
	tenants int // that have not left the line
	stopped bool
	left    bool
}

// turn is a tenant in a round. It belongs to the visitor that took it from the line.
type turn struct {
	queues []Queue
	left   time.Duration // of tenantTime
}

// New returns a round of those members of due that are queues. The tenants are in the order of
// their first member.
func New(due []storage.DueMember) *Round {
	var order []*turn
	turns := map[string]*turn{}
	for _, m := range due {
		q, ok := jobstore.QueueOfMember(m.Member)
		if !ok {
			continue
		}
		t := turns[q.Tenant]
		if t == nil {
			t = &turn{left: tenantTime}
			turns[q.Tenant] = t
			order = append(order, t)
		}
		t.queues = append(t.queues, Queue{q, m})
	}
	r := &Round{line: make(chan *turn, len(order)), tenants: len(order)}
	for _, t := range order {
		r.line <- t
	}
	return r
}

// Run calls visit for the queues, several of them at once, each with the time that it may take,
// until visit returns false. left reports whether tenants had no time for all of their queues.
func (r *Round) Run(visit func(q Queue, limit time.Duration) bool) (left bool) {
	var working sync.WaitGroup
	for range min(visitors, r.tenants) {
		working.Go(func() {
			for t := range r.line {
				q := t.queues[0]
				t.queues = t.queues[1:]
				began := time.Now()
				goOn := r.goesOn() && visit(q, min(VisitTime, t.left))
				t.left -= time.Since(began)
				r.putBack(t, goOn)
			}
		})
	}
	working.Wait()
	return r.left && !r.stopped
}

// goesOn reports whether no visit has stopped the round.
func (r *Round) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.stopped
}

// putBack puts t at the end of the line, unless it has to leave.
func (r *Round) putBack(t *turn, goOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = r.stopped || !goOn
	// A visit in a short rest of time would be cut, and its queue wait for the end of its claim.
	if len(t.queues) > 0 && t.left >= VisitTime/2 && !r.stopped {
		r.line <- t
		return
	}
	r.left = r.left || len(t.queues) > 0
	r.tenants--
	if r.tenants == 0 {
		close(r.line)
	}
}
