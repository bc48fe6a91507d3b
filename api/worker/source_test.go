package worker_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/worker"
)

// source is a queue in memory, with leases by the clock.
type source struct {
	mu      sync.Mutex
	pending []*entry
	jobs    map[string]*entry
	more    chan struct{} // closed when something is pending
	away    error         // what every call answers, nil: the source is there
	hang    bool          // fetches wait for their context
	fetched []api.FetchRequest
	acks    []api.JobAck  // those that were taken
	fails   []api.JobFail // those that were taken
	beats   []api.JobHeartbeat
	calls   int           // that were to settle, the unanswered ones included
	refuse  api.Code      // what every ack answers
	takes   time.Duration // how long an ack is under way
	finds   time.Duration // how long a fetch that finds something is under way
	asked   []int         // what the fetches under way ask for
	asks    [][]int       // a copy of asked for each fetch, made as it began
}

type entry struct {
	api.FetchedJob
	state     api.JobState
	until     time.Time // the lease's end
	reclaimed int
}

func newSource(payloads ...string) *source {
	s := &source{jobs: map[string]*entry{}, more: make(chan struct{})}
	for i, p := range payloads {
		s.put(&entry{FetchedJob: api.FetchedJob{ID: fmt.Sprint(i), Queue: "work", Payload: json.RawMessage(p), MaxAttempts: 1}})
	}
	return s
}

// numbers are n payloads: 0, 1, …
func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

func (s *source) put(e *entry) {
	e.state = api.JobPending
	s.jobs[e.ID] = e
	s.pending = append(s.pending, e)
	close(s.more)
	s.more = make(chan struct{})
}

// reclaim makes jobs pending again whose lease is over.
func (s *source) reclaim() {
	for _, e := range s.jobs {
		if e.state == api.JobActive && !time.Now().Before(e.until) {
			e.reclaimed++
			s.put(e)
		}
	}
}

func (s *source) FetchJobs(ctx context.Context, r api.FetchRequest) ([]api.FetchedJob, error) {
	s.mu.Lock()
	s.fetched = append(s.fetched, r)
	s.asked = append(s.asked, r.Count)
	s.asks = append(s.asks, slices.Clone(s.asked))
	hang := s.hang
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = slices.Delete(s.asked, slices.Index(s.asked, r.Count), slices.Index(s.asked, r.Count)+1)
	}()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	over := time.After(time.Duration(r.WaitMS) * time.Millisecond)
	for {
		s.mu.Lock()
		s.reclaim()
		out, more, err := s.take(r), s.more, s.away
		s.mu.Unlock()
		if len(out) > 0 || err != nil {
			time.Sleep(s.finds)
			return out, err
		}
		select {
		case <-more:
		case <-time.After(100 * time.Millisecond): // leases
		case <-over:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *source) take(r api.FetchRequest) (out []api.FetchedJob) {
	for s.away == nil && len(out) < r.Count && len(s.pending) > 0 {
		e := s.pending[0]
		s.pending = s.pending[1:]
		e.state, e.until = api.JobActive, time.Now().Add(time.Duration(r.LeaseMS)*time.Millisecond)
		e.Attempt++
		e.LeaseEpoch++
		out = append(out, e.FetchedJob)
	}
	return out
}

// settle answers for one job; do is called while the lease holds.
func (s *source) settle(id string, epoch int64, do func(*entry)) api.JobOutcome {
	e := s.jobs[id]
	if e == nil || e.state != api.JobActive || e.LeaseEpoch != epoch {
		out := api.JobOutcome{ID: id, Code: api.CodeJobLeaseLost}
		if e != nil {
			out.State = e.state
		}
		return out
	}
	do(e)
	return api.JobOutcome{ID: id, OK: true, State: e.state}
}

func (s *source) AckJobs(_ context.Context, acks []api.JobAck) (out []api.JobOutcome, err error) {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.away != nil {
		return nil, s.away
	}
	for _, a := range acks {
		if s.refuse != "" {
			out = append(out, api.JobOutcome{ID: a.ID, Code: s.refuse, Message: "no"})
			continue
		}
		out = append(out, s.settle(a.ID, a.LeaseEpoch, func(e *entry) {
			e.state = api.JobCompleted
			s.acks = append(s.acks, a)
		}))
	}
	return out, nil
}

func (s *source) FailJobs(_ context.Context, fails []api.JobFail) (out []api.JobOutcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.away != nil {
		return nil, s.away
	}
	for _, f := range fails {
		out = append(out, s.settle(f.ID, f.LeaseEpoch, func(e *entry) {
			s.fails = append(s.fails, f)
			if f.SnoozeMS != nil {
				e.Attempt--
			}
			e.state = api.JobDead
			if e.Attempt < e.MaxAttempts && !f.Fatal {
				s.put(e)
			}
		}))
	}
	return out, nil
}

func (s *source) HeartbeatJobs(_ context.Context, _ string, beats []api.JobHeartbeat) (out []api.JobOutcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return nil, s.away
	}
	for _, h := range beats {
		out = append(out, s.settle(h.ID, h.LeaseEpoch, func(e *entry) {
			s.beats = append(s.beats, h)
			e.until = time.Now().Add(time.Duration(h.LeaseMS) * time.Millisecond)
			if h.Checkpoint != nil {
				e.Checkpoint = h.Checkpoint
			}
		}))
	}
	return out, nil
}

// with runs f while no call does.
func (s *source) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *source) goAway(err error) { s.with(func() { s.away = err }) }

// states counts the jobs of each state.
func (s *source) states() map[api.JobState]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[api.JobState]int{}
	for _, e := range s.jobs {
		out[e.state]++
	}
	return out
}

// failed are the fails that were taken, by id.
func (s *source) failed() []api.JobFail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(slices.Values(s.fails), func(a, b api.JobFail) int { return cmp.Compare(a.ID, b.ID) })
}

var errAway = errors.New("the source is away")

// running is a worker that a test has begun.
type running struct {
	*worker.Worker
	stop func()
	done chan error
}

// run begins a worker over s, which OnError must leave in peace unless c says else.
func run(t *testing.T, s worker.Source, c worker.Config, h worker.Handler) *running {
	t.Helper()
	if c.OnError == nil {
		c.OnError = func(err error) { t.Errorf("OnError: got error %v, want no call", err) }
	}
	w, err := worker.New(s, c)
	if err != nil {
		t.Fatalf("worker.New: %v", err)
	}
	w.Handle("work", h)
	ctx, stop := context.WithCancel(t.Context())
	out := &running{w, stop, make(chan error, 1)}
	go func() { out.done <- w.Run(ctx) }()
	return out
}

// end stops the worker and waits for it.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Errorf("unexpected error: %v", err)
	}
}
