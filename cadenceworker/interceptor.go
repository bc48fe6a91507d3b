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
	i := &interceptor{Interface: service, w: w, deliveries: map[string]*delivery{}, drained: make(chan struct{})}
	i.calls, i.cancelCalls = context.WithCancel(w.b.s.life)
	return i
}

// describe reads the domain from the server and keeps it for DescribeDomain.
func (i *interceptor) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	found, err := i.Interface.DescribeDomain(ctx, &shared.DescribeDomainRequest{Name: &i.w.stored.Domain})
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.domain = found
	return nil
}

// DescribeDomain returns the stored domain to the client's worker. The worker asks for it
// at its start, retries without end, and could not be stopped meanwhile.
func (i *interceptor) DescribeDomain(context.Context, *shared.DescribeDomainRequest, ...yarpc.CallOption) (*shared.DescribeDomainResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.domain, nil
}

// PollForActivityTask polls for a task once there is a free slot for it. The task keeps
// the slot until execute returns. A poll without a task returns after about a minute, with an
// empty token. Waiting for a slot ends when the worker is retired; a poll that was sent ends with
// an answer of the server, or when the client or shut cancels it.
func (i *interceptor) PollForActivityTask(ctx context.Context, request *shared.PollForActivityTaskRequest, options ...yarpc.CallOption) (*shared.PollForActivityTaskResponse, error) {
	taskSlots := i.w.b.slots
	waiting, stopWaiting := either(ctx, i.w.ctx)
	defer stopWaiting()
	if err := taskSlots.acquire(waiting); err != nil {
		return nil, i.hold(ctx, err)
	}
	if !i.enter() {
		taskSlots.release()
		return nil, i.hold(ctx, context.Canceled)
	}
	calling, stopCalling := either(ctx, i.calls)
	defer stopCalling()
	healthy := time.AfterFunc(healthyPoll, i.w.markRunning)
	task, err := i.Interface.PollForActivityTask(calling, request, options...)
	healthy.Stop()
	got := err == nil && len(task.GetTaskToken()) > 0
	if !got {
		taskSlots.release()
	}
	i.answered(calling, task, got, err)
	return task, i.hold(ctx, err)
}

// either returns a context that ends with the first of a and b.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

// hold delays the error of a poll of a retired worker until the client ends the poll: the
// client would otherwise back off before it checks whether it has to stop.
func (i *interceptor) hold(ctx context.Context, err error) error {
	if err != nil && i.w.ctx.Err() != nil {
		<-ctx.Done()
	}
	return err
}

// enter counts a poll. It returns false if no more polls are allowed.
func (i *interceptor) enter() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shutting {
		return false
	}
	i.under++
	return true
}

// answered records the result of a poll.
func (i *interceptor) answered(ctx context.Context, task *shared.PollForActivityTaskResponse, got bool, err error) {
	s := i.w.b.s
	switch {
	case got:
		s.metrics.polls.WithLabelValues(pollTask).Inc()
		i.pass(task)
	case err == nil:
		s.metrics.polls.WithLabelValues(pollEmpty).Inc()
	case ctx.Err() == nil:
		s.metrics.polls.WithLabelValues(pollError).Inc()
		i.w.setError(err)
	}
	if err == nil {
		i.w.b.counts.lastPollMS.Store(s.store.NowMS())
		i.w.markRunning()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.under--
	i.noteDrained()
}

// pass records a task that the client's worker will start, and hides its type.
func (i *interceptor) pass(task *shared.PollForActivityTaskResponse) {
	s, counts := i.w.b.s, &i.w.b.counts
	counts.taken.Add(1)
	counts.inFlight.Add(1)
	waited := max(0, time.Duration(task.GetStartedTimestamp()-task.GetScheduledTimestampOfThisAttempt()))
	s.metrics.waits.Observe(waited.Seconds())
	token, name := string(task.GetTaskToken()), anyActivity
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deliveries[token] == nil {
		i.deliveries[token] = &delivery{
			kind: task.GetActivityType().GetName(), header: task.GetHeader().GetFields(), came: time.Now(), waited: waited,
		}
	}
	i.deliveries[token].times++
	task.ActivityType = &shared.ActivityType{Name: &name}
}

// execute is the activity that the client's worker runs for every task. It runs the task
// and responds to the server itself. To the worker it returns ErrResultPending: the
// worker drops results that arrive after it was stopped.
func (i *interceptor) execute(ctx context.Context, input []byte) ([]byte, error) {
	b := i.w.b
	defer b.slots.release()
	defer b.counts.inFlight.Add(-1)
	// Add comes before begun, so that a drain that has seen the task begin waits for it.
	b.s.tasks.Add(1)
	defer b.s.tasks.Done()
	info := activity.GetInfo(ctx)
	p := i.begun(info.TaskToken)
	info.ActivityType.Name = p.kind
	t := newTask(ctx, info, i.w, input)
	t.trace(p)
	t.run()
	return nil, activity.ErrResultPending
}

// begun removes a task from the deliveries and returns its delivery.
func (i *interceptor) begun(token []byte) *delivery {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.deliveries[string(token)]
	p.times--
	if p.times == 0 {
		delete(i.deliveries, string(token))
	}
	i.noteDrained()
	return p
}

// noteDrained closes drained when shut has nothing left to wait for; mu must be held.
func (i *interceptor) noteDrained() {
	if i.shutting && i.under == 0 && len(i.deliveries) == 0 {
		select {
		case <-i.drained:
		default:
			close(i.drained)
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
func (i *interceptor) shut() {
	i.mu.Lock()
	i.shutting = true
	i.noteDrained()
	i.mu.Unlock()
	select {
	case <-i.drained:
		i.cancelCalls()
		return
	case <-time.After(pollGrace):
	}
	i.cancelCalls()
	select {
	case <-i.drained:
	case <-time.After(domainTimeout):
		i.w.b.logger.Error("delivered tasks did not start and will time out")
	}
}
