package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// settlement is how one job is settled: exactly one of the two.
type settlement struct {
	ack  *api.JobAck
	fail *api.JobFail
}

// settler settles jobs in groups: whatever has gathered while the call before was
// under way goes in the next one. No timer: a lone job is settled at once.
type settler struct {
	w       *Worker
	mu      sync.Mutex
	acks    []*Job
	ackList []api.JobAck
	fails   []*Job
	failing []api.JobFail
	busy    bool
	wake    chan struct{} // holds a token when something waits
	idle    *sync.Cond    // told when nothing waits or is under way
}

func newSettler(w *Worker) *settler {
	s := &settler{w: w, wake: make(chan struct{}, 1)}
	s.idle = sync.NewCond(&s.mu)
	return s
}

func (s *settler) add(j *Job, how settlement) {
	s.mu.Lock()
	if how.ack != nil {
		s.acks, s.ackList = append(s.acks, j), append(s.ackList, *how.ack)
	} else {
		s.fails, s.failing = append(s.fails, j), append(s.failing, *how.fail)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// flush waits until everything is settled.
func (s *settler) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy || len(s.acks) > 0 || len(s.fails) > 0 {
		s.idle.Wait()
	}
}

func (s *settler) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		for s.step(ctx) {
		}
	}
}

// step settles one group of each kind; false if there was none.
func (s *settler) step(ctx context.Context) bool {
	s.mu.Lock()
	acks, ackList := head(&s.acks), head(&s.ackList)
	fails, failing := head(&s.fails), head(&s.failing)
	s.busy = len(acks)+len(fails) > 0
	if !s.busy {
		s.idle.Broadcast()
		s.mu.Unlock()
		return false
	}
	s.mu.Unlock()
	if len(acks) > 0 {
		s.settle(ctx, acks, func(ctx context.Context) ([]api.JobOutcome, error) { return s.w.source.AckJobs(ctx, ackList) })
	}
	if len(fails) > 0 {
		s.settle(ctx, fails, func(ctx context.Context) ([]api.JobOutcome, error) { return s.w.source.FailJobs(ctx, failing) })
	}
	return true
}

// head takes the first group of a list.
func head[T any](list *[]T) []T {
	n := min(len(*list), api.MaxSettleJobs)
	group := (*list)[:n:n]
	*list = (*list)[n:]
	return group
}

// settle makes the call until it is answered, or until no lease can hold any
// more: an unanswered call may have settled them, and a repeat is a success.
func (s *settler) settle(ctx context.Context, jobs []*Job, call func(context.Context) ([]api.JobOutcome, error)) {
	defer func() {
		for _, j := range jobs {
			s.w.settled(j)
		}
	}()
	pause := newBackoff()
	for until := time.Now().Add(s.w.cfg.Lease); ; {
		bounded, cancel := context.WithTimeout(ctx, s.w.cfg.Lease)
		outcomes, err := call(bounded)
		cancel()
		if err == nil {
			for i, o := range outcomes {
				if !o.OK && i < len(jobs) && !jobs[i].isLost() {
					s.w.cfg.OnError(fmt.Errorf("worker: job %s was not settled: %s: %s", o.ID, o.Code, o.Message))
				}
			}
			return
		}
		s.w.cfg.OnError(fmt.Errorf("worker: settle %d jobs: %w", len(jobs), err))
		if ctx.Err() != nil || time.Now().After(until) {
			return
		}
		pause.wait(ctx)
	}
}

// backoff is a growing pause with jitter.
type backoff struct{ next time.Duration }

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
)

func newBackoff() *backoff { return &backoff{backoffMin} }

func (b *backoff) reset() { b.next = backoffMin }

func (b *backoff) wait(ctx context.Context) {
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	b.next = min(2*b.next, backoffMax)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
