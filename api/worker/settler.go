package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/codesous/sous/api"
)

// settlement is how one job is settled: by exactly one of ack and fail.
type settlement struct {
	ack  *api.JobAck
	fail *api.JobFail
	beat *api.JobHeartbeat // to be sent before fail, nil for none
}

// settler settles jobs in groups. Jobs that arrive during a call are settled by the next
// one. There is no timer: a single job is settled at once.
type settler struct {
	w       *Worker
	mu      sync.Mutex
	acks    []*Job
	ackList []api.JobAck
	fails   []*Job
	failing []api.JobFail
	beats   map[*Job]api.JobHeartbeat // by failed job, if it has one
	busy    bool
	wake    chan struct{} // has a token if jobs wait
	idle    *sync.Cond    // notified when no jobs wait and no call runs
}

func newSettler(w *Worker) *settler {
	s := &settler{w: w, wake: make(chan struct{}, 1), beats: map[*Job]api.JobHeartbeat{}}
	s.idle = sync.NewCond(&s.mu)
	return s
}

func (s *settler) add(j *Job, how settlement) {
	s.mu.Lock()
	if how.ack != nil {
		s.acks, s.ackList = append(s.acks, j), append(s.ackList, *how.ack)
	} else {
		s.fails, s.failing = append(s.fails, j), append(s.failing, *how.fail)
		if how.beat != nil {
			s.beats[j] = *how.beat
		}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// flush waits until all jobs are settled.
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
	var beats []api.JobHeartbeat
	for _, j := range fails {
		if beat, ok := s.beats[j]; ok {
			beats = append(beats, beat)
			delete(s.beats, j)
		}
	}
	s.busy = len(acks)+len(fails) > 0
	if !s.busy {
		s.idle.Broadcast()
		s.mu.Unlock()
		return false
	}
	s.mu.Unlock()
	if len(acks) > 0 {
		s.settle(ctx, acks, s.ackRefused, func(ctx context.Context) ([]api.JobOutcome, error) {
			return s.w.source.AckJobs(ctx, ackList)
		})
	}
	if len(fails) > 0 {
		s.settle(ctx, fails, s.refused, func(ctx context.Context) ([]api.JobOutcome, error) {
			if len(beats) > 0 {
				if _, err := s.w.source.HeartbeatJobs(ctx, s.w.cfg.ID, beats); err != nil {
					return nil, err
				}
			}
			return s.w.source.FailJobs(ctx, failing)
		})
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

// settle repeats the call until it is answered, or until all leases must have expired. A
// call without a response may have settled the jobs; its repeat then succeeds.
func (s *settler) settle(ctx context.Context, jobs []*Job, refused func(*Job, api.JobOutcome), call func(context.Context) ([]api.JobOutcome, error)) {
	pause := newBackoff()
	for until := time.Now().Add(s.w.cfg.Lease); ; {
		bounded, cancel := context.WithTimeout(ctx, s.w.cfg.Lease)
		outcomes, err := call(bounded)
		cancel()
		if err == nil && len(outcomes) != len(jobs) {
			err = fmt.Errorf("%d outcomes", len(outcomes))
		}
		if err == nil {
			for i, o := range outcomes {
				if o.OK {
					s.w.settled(jobs[i])
				} else {
					refused(jobs[i], o)
				}
			}
			return
		}
		s.w.cfg.OnError(fmt.Errorf("worker: settle %d jobs: %w", len(jobs), err))
		if ctx.Err() != nil || time.Now().After(until) {
			break
		}
		pause.wait(ctx)
	}
	for _, j := range jobs {
		s.w.settled(j)
	}
}

// refused unregisters a job that could not be settled.
func (s *settler) refused(j *Job, o api.JobOutcome) {
	if !j.isLost() {
		s.w.cfg.OnError(fmt.Errorf("worker: job %s was not settled: %s: %s", o.ID, o.Code, o.Message))
	}
	s.w.settled(j)
}

// ackRefused fails an attempt whose result the queue rejects. Its lease would otherwise
// expire as if the worker had died.
func (s *settler) ackRefused(j *Job, o api.JobOutcome) {
	if o.Code == api.CodeJobLeaseLost || o.Code == api.CodeJobNotFound {
		s.refused(j, o)
		return
	}
	s.add(j, j.failed(fmt.Errorf("the ack was refused: %s: %s", o.Code, o.Message), s.w.cfg.Lease))
}

// backoff returns a growing pause with jitter.
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
