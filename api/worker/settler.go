package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/coalesce"
	"github.com/codesous/sous/api/sleep"
)

// settlement is how one job is settled: by exactly one of ack and fail.
type settlement struct {
	job   *Job
	ack   *api.JobAck
	fail  *api.JobFail
	beats []api.JobHeartbeat // to be sent before
}

// settler settles jobs in groups. Jobs that arrive during a call are settled by the next
// one. There is no timer: a single job is settled at once.
type settler struct {
	w      *Worker
	groups *coalesce.Coalescer[struct{}, settlement]
}

func newSettler(life context.Context, w *Worker) *settler {
	s := &settler{w: w}
	s.groups = coalesce.New(life, coalesce.Config[settlement]{Count: api.MaxSettleJobs}, s.settleGroup)
	return s
}

func (s *settler) add(how settlement) { s.groups.Add(struct{}{}, how) }

// flush waits until all jobs are settled.
func (s *settler) flush() { s.groups.Wait() }

// settleGroup settles a group in at most one call for each kind.
func (s *settler) settleGroup(ctx context.Context, _ struct{}, group []settlement) {
	var acked, failed []*Job
	var acks []api.JobAck
	var fails []api.JobFail
	var beforeAcks, beforeFails []api.JobHeartbeat
	for _, how := range group {
		if how.ack != nil {
			acked, acks, beforeAcks = append(acked, how.job), append(acks, *how.ack), append(beforeAcks, how.beats...)
			continue
		}
		failed, fails, beforeFails = append(failed, how.job), append(fails, *how.fail), append(beforeFails, how.beats...)
	}
	if len(acks) > 0 {
		s.settle(ctx, acked, s.ackRefused, func(ctx context.Context) ([]api.JobOutcome, error) {
			if err := s.send(ctx, beforeAcks); err != nil {
				return nil, err
			}
			return s.w.source.AckJobs(ctx, acks)
		})
	}
	if len(fails) > 0 {
		s.settle(ctx, failed, s.refused, func(ctx context.Context) ([]api.JobOutcome, error) {
			if err := s.send(ctx, beforeFails); err != nil {
				return nil, err
			}
			return s.w.source.FailJobs(ctx, fails)
		})
	}
}

// send sends the heartbeats that come before settlements.
func (s *settler) send(ctx context.Context, beats []api.JobHeartbeat) error {
	for part := range slices.Chunk(beats, api.MaxSettleJobs) {
		if _, err := s.w.source.HeartbeatJobs(ctx, s.w.cfg.ID, part); err != nil {
			return err
		}
	}
	return nil
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
	s.add(j.failed(fmt.Errorf("the ack was refused: %s: %s", o.Code, o.Message), s.w.cfg.Lease))
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
	d := b.next/2 + rand.N(b.next/2)
	b.next = min(2*b.next, backoffMax)
	_ = sleep.For(ctx, d) // the caller checks ctx
}
