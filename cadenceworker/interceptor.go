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

// anyActivity is the only activity type that is registered with the client's worker. The
// worker drops tasks of other types silently, and a type cannot be unregistered.
const anyActivity = "sous"

// interceptor wraps the service client of a worker and sees every task: it polls only
// with a free slot, hands over tasks of all types as anyActivity, and ends polling without
// losing a task.
//
// Its calls, in the order of a task: PollForActivityTask (a goroutine of the client) takes a
// slot, counts the poll as under way, and stores the delivery of the task; the client's worker
// decodes the task and calls execute in another goroutine, which takes the delivery, runs the
// task, and releases the slot. Between the two the task is in deliveries only, and shut waits
// for it: the client's worker drops tasks that it has not started when it is stopped.
type interceptor struct {
	workflowserviceclient.Interface
	w *activityWorker

	// calls is the context of polls; cancelCalls ends it.
	calls       context.Context
	cancelCalls context.CancelFunc

	mu         sync.Mutex
	domain     *shared.DescribeDomainResponse
	shutting   bool
	under      int                  // polls that have not returned
	deliveries map[string]*delivery // tasks that the client's worker has not started, by token
	drained    chan struct{}        // closed when shutting is set, under is 0, and deliveries is empty
}

// delivery is a task that the server has delivered and execute has not received yet.
type delivery struct {
	kind   string            // its activity type
	header map[string][]byte // the header that the workflow passed with the input
	came   time.Time         // when the first poll returned it
	waited time.Duration     // time in the tasklist, by the server's clock
	times  int               // deliveries of the same token
}

// newInterceptor returns an interceptor for w that calls service. cancelCalls must follow.
func newInterceptor(service workflowserviceclient.Interface, w *activityWorker) *interceptor {
	g := &interceptor{Interface: service, w: w, deliveries: map[string]*delivery{}, drained: make(chan struct{})}
	g.calls, g.cancelCalls = context.WithCancel(w.b.s.life)
	return g
}

// describe reads the domain from the server and keeps it for DescribeDomain.
func (g *interceptor) describe(ctx context.Context) error {
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

// DescribeDomain returns the stored domain to the client's worker. The worker asks for it
// at its start, retries without end, and could not be stopped meanwhile.
func (g *interceptor) DescribeDomain(context.Context, *shared.DescribeDomainRequest, ...yarpc.CallOption) (*shared.DescribeDomainResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.domain, nil
}

// PollForActivityTask polls for a task once there is a free slot for it. The task keeps
// the slot until execute returns. A poll without a task returns after about a minute, with an
// empty token. Waiting for a slot ends when the worker is retired; a poll that was sent ends with
// an answer of the server, or when the client or shut cancels it.
func (g *interceptor) PollForActivityTask(ctx context.Context, request *shared.PollForActivityTaskRequest, options ...yarpc.CallOption) (*shared.PollForActivityTaskResponse, error) {
	taskSlots := g.w.b.slots
	waiting, stopWaiting := either(ctx, g.w.ctx)
	defer stopWaiting()
	if err := taskSlots.acquire(waiting); err != nil {
		return nil, g.hold(ctx, err)
	}
	if !g.enter() {
		taskSlots.release()
		return nil, g.hold(ctx, context.Canceled)
	}
	calling, stopCalling := either(ctx, g.calls)
	defer stopCalling()
	healthy := time.AfterFunc(healthyPoll, g.w.markRunning)
	task, err := g.Interface.PollForActivityTask(calling, request, options...)
	healthy.Stop()
	got := err == nil && len(task.GetTaskToken()) > 0
	if !got {
		taskSlots.release()
	}
	g.answered(calling, task, got, err)
	return task, g.hold(ctx, err)
}

// either returns a context that ends with the first of a and b.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

// hold delays the error of a poll of a retired worker until the client ends the poll: the
// client would otherwise back off before it checks whether it has to stop.
func (g *interceptor) hold(ctx context.Context, err error) error {
	if err != nil && g.w.ctx.Err() != nil {
		<-ctx.Done()
	}
	return err
}

// enter counts a poll. It returns false if no more polls are allowed.
func (g *interceptor) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shutting {
		return false
	}
	g.under++
	return true
}

// answered records the result of a poll.
func (g *interceptor) answered(ctx context.Context, task *shared.PollForActivityTaskResponse, got bool, err error) {
	s := g.w.b.s
	switch {
	case got:
		s.metrics.polls.WithLabelValues(pollTask).Inc()
		g.pass(task)
	case err == nil:
		s.metrics.polls.WithLabelValues(pollEmpty).Inc()
	case ctx.Err() == nil:
		s.metrics.polls.WithLabelValues(pollError).Inc()
		g.w.setError(err)
	}
	if err == nil {
		g.w.b.counts.lastPollMS.Store(s.store.NowMS())
		g.w.markRunning()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
	g.noteDrained()
}

// pass records a task that the client's worker will start, and hides its type.
func (g *interceptor) pass(task *shared.PollForActivityTaskResponse) {
	s, counts := g.w.b.s, &g.w.b.counts
	counts.taken.Add(1)
	counts.inFlight.Add(1)
	waited := max(0, time.Duration(task.GetStartedTimestamp()-task.GetScheduledTimestampOfThisAttempt()))
	s.metrics.waits.Observe(waited.Seconds())
	token, name := string(task.GetTaskToken()), anyActivity
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deliveries[token] == nil {
		g.deliveries[token] = &delivery{
			kind: task.GetActivityType().GetName(), header: task.GetHeader().GetFields(), came: time.Now(), waited: waited,
		}
	}
	g.deliveries[token].times++
	task.ActivityType = &shared.ActivityType{Name: &name}
}

// execute is the activity that the client's worker runs for every task. It runs the task
// and responds to the server itself. To the worker it returns ErrResultPending: the
// worker drops results that arrive after it was stopped.
func (g *interceptor) execute(ctx context.Context, input []byte) ([]byte, error) {
	b := g.w.b
	defer b.slots.release()
	defer b.counts.inFlight.Add(-1)
	// Add comes before begun, so that a drain that has seen the task begin waits for it.
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

// begun removes a task from the deliveries and returns its delivery.
func (g *interceptor) begun(token []byte) *delivery {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.deliveries[string(token)]
	p.times--
	if p.times == 0 {
		delete(g.deliveries, string(token))
	}
	g.noteDrained()
	return p
}

// noteDrained closes drained when shut has nothing left to wait for; mu must be held.
func (g *interceptor) noteDrained() {
	if g.shutting && g.under == 0 && len(g.deliveries) == 0 {
		select {
		case <-g.drained:
		default:
			close(g.drained)
		}
	}
}

// shut stops polling and returns when the client's worker has started all delivered
// tasks.
//
//	shutting is set      enter refuses new polls
//	up to pollGrace      polls in progress may return a task by themselves
//	cancelCalls          the others are cancelled
//	up to domainTimeout  execute takes the delivered tasks
func (g *interceptor) shut() {
	g.mu.Lock()
	g.shutting = true
	g.noteDrained()
	g.mu.Unlock()
	select {
	case <-g.drained:
		g.cancelCalls()
		return
	case <-time.After(pollGrace):
	}
	g.cancelCalls()
	select {
	case <-g.drained:
	case <-time.After(domainTimeout):
		g.w.b.logger.Error("delivered tasks did not start and will time out")
	}
}
