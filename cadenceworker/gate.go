package cadenceworker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/activity"
	"go.uber.org/yarpc"
)

// anyActivity is the one activity type that the client's worker knows: it drops tasks
// of others without a word, and can forget none.
const anyActivity = "sous"

// gate stands between the client's worker and the server. Every task passes through
// it, so that one is asked for only where it has a place, none is lost when the
// worker ends, and all arrive, of whatever type.
type gate struct {
	workflowserviceclient.Interface
	w *activityWorker

	// calls ends the calls for tasks that are under way.
	calls context.Context
	cut   context.CancelFunc

	mu       sync.Mutex
	domain   *shared.DescribeDomainResponse
	shutting bool
	under    int                 // calls under way
	passed   map[string]*passing // tasks that the client's worker has not begun, by token
	settled  chan struct{}       // closed when under and passed become empty while shutting
}

// passing is a task on its way through the client's worker.
type passing struct {
	kind   string            // its activity type
	header map[string][]byte // what the workflow says beside its input
	came   time.Time         // when a call brought it first
	waited time.Duration     // from its schedule until then, by the server's clock
	times  int               // deliveries under way
}

func newGate(service workflowserviceclient.Interface, w *activityWorker) *gate {
	g := &gate{Interface: service, w: w, passed: map[string]*passing{}, settled: make(chan struct{})}
	g.calls, g.cut = context.WithCancel(w.b.s.life)
	return g
}

// describe asks for the domain, and keeps the answer.
func (g *gate) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	found, err := g.Interface.DescribeDomain(ctx, &shared.DescribeDomainRequest{Name: &g.w.stored.Domain})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.domain = found
	return nil
}

// DescribeDomain answers the client's worker, which asks at its start, for as long
// as it takes, and cannot be stopped there.
func (g *gate) DescribeDomain(context.Context, *shared.DescribeDomainRequest, ...yarpc.CallOption) (*shared.DescribeDomainResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.domain, nil
}

// PollForActivityTask asks for a task when there is a place for it. The place is the
// task's from then on: see execute.
func (g *gate) PollForActivityTask(ctx context.Context, request *shared.PollForActivityTaskRequest, options ...yarpc.CallOption) (*shared.PollForActivityTaskResponse, error) {
	places := g.w.b.places
	waiting, stopWaiting := either(ctx, g.w.ctx)
	defer stopWaiting()
	if err := places.acquire(waiting); err != nil {
		return nil, g.hold(ctx, err)
	}
	if !g.enter() {
		places.release()
		return nil, g.hold(ctx, context.Canceled)
	}
	calling, stopCalling := either(ctx, g.calls)
	defer stopCalling()
	waits := time.AfterFunc(settledPoll, g.w.well)
	task, err := g.Interface.PollForActivityTask(calling, request, options...)
	waits.Stop()
	got := err == nil && len(task.GetTaskToken()) > 0
	if !got {
		places.release()
	}
	g.answered(calling, task, got, err)
	return task, g.hold(ctx, err)
}

// either is a context that ends with the first of two.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

// hold keeps a failed call of a worker that takes no more tasks until the client ends
// it: a failure would make it rest before it looks whether it is to stop.
func (g *gate) hold(ctx context.Context, err error) error {
	if err != nil && g.w.ctx.Err() != nil {
		<-ctx.Done()
	}
	return err
}

// enter counts a call; false where no more are made.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shutting {
		return false
	}
	g.under++
	return true
}

// answered notes what a call brought.
func (g *gate) answered(ctx context.Context, task *shared.PollForActivityTaskResponse, got bool, err error) {
	s := g.w.b.s
	switch {
	case got:
		s.metrics.polls.WithLabelValues(pollTask).Inc()
		g.pass(task)
	case err == nil:
		s.metrics.polls.WithLabelValues(pollEmpty).Inc()
	case ctx.Err() == nil:
		s.metrics.polls.WithLabelValues(pollError).Inc()
		g.w.troubled(err)
	}
	if err == nil {
		g.w.b.counts.lastPollMS.Store(s.store.NowMS())
		g.w.well()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
	g.settle()
}

// pass notes a task that the client's worker will begin.
func (g *gate) pass(task *shared.PollForActivityTaskResponse) {
	s, counts := g.w.b.s, &g.w.b.counts
	counts.taken.Add(1)
	counts.inFlight.Add(1)
	waited := max(0, time.Duration(task.GetStartedTimestamp()-task.GetScheduledTimestampOfThisAttempt()))
	s.metrics.waits.Observe(waited.Seconds())
	token, name := string(task.GetTaskToken()), anyActivity
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passed[token] == nil {
		g.passed[token] = &passing{
			kind: task.GetActivityType().GetName(), header: task.GetHeader().GetFields(), came: time.Now(), waited: waited,
		}
	}
	g.passed[token].times++
	task.ActivityType = &shared.ActivityType{Name: &name}
}

// execute is every activity: it runs the task to its end, and answers it. What the
// client's worker is given is that the answer comes from elsewhere: it would drop one
// that came after its own end.
func (g *gate) execute(ctx context.Context, input []byte) ([]byte, error) {
	b := g.w.b
	defer b.places.release()
	defer b.counts.inFlight.Add(-1)
	// Before it counts as begun, so that a drain that has seen it begin waits for it.
	b.s.tasks.Add(1)
	defer b.s.tasks.Done()
	info := activity.GetInfo(ctx)
	p := g.begun(info.TaskToken)
	info.ActivityType.Name = p.kind
	t := newTask(ctx, info, g.w, input)
	t.trace(p)
	t.run()
	return nil, activity.ErrResultPending
}

// begun notes that the client's worker has begun a task, and gives what came with it.
func (g *gate) begun(token []byte) *passing {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.passed[string(token)]
	if p.times--; p.times == 0 {
		delete(g.passed, string(token))
	}
	g.settle()
	return p
}

// settle tells shut that all is over; mu is held.
func (g *gate) settle() {
	if g.shutting && g.under == 0 && len(g.passed) == 0 {
		select {
		case <-g.settled:
		default:
			close(g.settled)
		}
	}
}

// shut ends the taking of tasks and returns when the client's worker has begun all
// that came.
func (g *gate) shut() {
	g.mu.Lock()
	g.shutting = true
	g.settle()
	g.mu.Unlock()
	select {
	case <-g.settled:
		g.cut()
		return
	case <-time.After(lastPolls):
	}
	g.cut()
	select {
	case <-g.settled:
	case <-time.After(domainTimeout):
		g.w.b.logger.Error("tasks that were taken did not begin: they time out")
	}
}
