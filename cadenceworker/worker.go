package cadenceworker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/uber-go/tally"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/activity"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/bindings"
)

const (
	// domainPauseMin and domainPauseMax bound the pause between two reads of the domain.
	domainPauseMin = 500 * time.Millisecond
	domainPauseMax = 15 * time.Second
	// domainTimeout bounds one read of the domain, and the wait for the start of the tasks
	// that a retired worker was delivered.
	domainTimeout = 10 * time.Second
	// pollGrace is how long unfinished polls of a retired worker are awaited. Cancelling
	// a poll while the server answers it loses a task; if there are tasks, the
	// answers arrive within this time.
	pollGrace = 500 * time.Millisecond
	// healthyPoll is the time after which a poll that has not failed is considered
	// healthy. Without tasks the server answers it after a minute.
	healthyPoll = 2 * time.Second
)

// activityWorker is a worker of Cadence's client for one revision of a binding. Its states:
//
//	starting until the first answer of the server
//	failing  after a call that failed, and for good if the client's worker cannot be created
//	         or started
//	waiting  while the domain does not exist
//	running  after the start of the client's worker, and after a poll that succeeded or has
//	         been open for healthyPoll
//
// After retire, run starts no new polls, waits for those in progress (shut), and then stops
// the client's worker. Tasks that have started continue without it.
type activityWorker struct {
	b           *binding
	stored      *bindings.Record
	pollers     int // concurrent polls, at most stored.Pollers.Activity
	client      client.Client
	interceptor *interceptor

	ctx    context.Context    // ends when the worker has to stop polling
	cancel context.CancelFunc // of ctx

	mu     sync.Mutex
	state  api.BindingState
	reason string
}

// newActivityWorker returns a worker for stored, the record of b, with a number of concurrent polls.
// It does nothing until run.
func newActivityWorker(b *binding, stored *bindings.Record, pollers int) *activityWorker {
	w := &activityWorker{b: b, stored: stored, pollers: pollers, state: api.BindingStarting, reason: "connecting to the Cadence server"}
	w.ctx, w.cancel = context.WithCancel(b.s.life)
	w.interceptor = newInterceptor(b.s.conn.Service, w)
	w.client = client.NewClient(b.s.conn.Service, stored.Domain, &client.Options{Identity: stored.WorkerID})
	return w
}

// retire makes run stop polling. It does not wait.
func (w *activityWorker) retire() { w.cancel() }

// run polls until the worker is retired and returns when no more tasks can arrive.
func (w *activityWorker) run() {
	defer w.interceptor.cancelCalls()
	if !w.awaitDomain() {
		return
	}
	polling, err := worker.NewV2(w.interceptor, w.stored.Domain, w.stored.Tasklist, worker.Options{
		Identity:                           w.stored.WorkerID,
		MaxConcurrentActivityExecutionSize: w.stored.Limits.MaxInflightTasks,
		MaxConcurrentActivityTaskPollers:   w.pollers,
		DisableWorkflowWorker:              true,
		Logger:                             w.b.logger.WithOptions(zap.IncreaseLevel(max(zapcore.WarnLevel, w.b.logger.Level()))),
		MetricsScope:                       tally.NoopScope,
	})
	if err != nil {
		w.set(zapcore.ErrorLevel, api.BindingFailing, "creating the worker failed: "+err.Error(), err)
		<-w.ctx.Done()
		return
	}
	polling.RegisterActivityWithOptions(w.interceptor.execute, activity.RegisterOptions{Name: anyActivity})
	if err := polling.Start(); err != nil { // not because of the domain, see interceptor.DescribeDomain
		w.set(zapcore.ErrorLevel, api.BindingFailing, "starting the worker failed: "+err.Error(), err)
		<-w.ctx.Done()
		return
	}
	w.markRunning() // a poll that fails changes the state to failing
	<-w.ctx.Done()
	w.interceptor.shut()
	polling.Stop() // once: a second call would panic
}

// awaitDomain waits until the domain exists. It returns false if the worker is retired
// first. The pause between two tries doubles from domainPauseMin up to domainPauseMax and is
// shortened by a random part of at most half, so that the workers of many bindings do not call
// at the same moment after an outage.
func (w *activityWorker) awaitDomain() bool {
	for pause := domainPauseMin; ; pause = min(2*pause, domainPauseMax) {
		err := w.interceptor.describe(w.ctx)
		if err == nil {
			return true
		}
		if w.ctx.Err() != nil {
			return false
		}
		w.setError(err)
		select {
		case <-w.ctx.Done():
			return false
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// setError sets the state for an error of the server, or of the connection to it.
func (w *activityWorker) setError(err error) {
	var absent *shared.EntityNotExistsError
	if errors.As(err, &absent) {
		w.set(zapcore.InfoLevel, api.BindingWaiting, "the domain does not exist", nil)
		return
	}
	w.set(zapcore.WarnLevel, api.BindingFailing, publicError(err), err)
}

// markRunning sets the state after the start of the client's worker, or after a poll that
// succeeded or is healthy.
func (w *activityWorker) markRunning() { w.set(zapcore.InfoLevel, api.BindingRunning, "", nil) }

// set sets the state and its reason. If they changed, it logs them once, at the given level
// and with cause, the error that led to the state, which may be nil.
func (w *activityWorker) set(level zapcore.Level, state api.BindingState, reason string, cause error) {
	w.mu.Lock()
	same := w.state == state && w.reason == reason
	w.state, w.reason = state, reason
	w.mu.Unlock()
	if !same {
		w.b.logger.Log(level, "the state of a worker changed", zap.String("state", string(state)), zap.String("reason", reason),
			zap.String("domain", w.stored.Domain), zap.String("tasklist", w.stored.Tasklist), zap.Error(cause))
	}
}

func (w *activityWorker) status() (api.BindingState, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.reason
}

// publicError returns the message of err for tenants: Cadence's message about the call,
// and no details of the network.
func publicError(err error) string {
	var bad *shared.BadRequestError
	var denied *shared.AccessDeniedError
	var busy *shared.ServiceBusyError
	var limit *shared.LimitExceededError
	var inactive *shared.DomainNotActiveError
	var internal *shared.InternalServiceError
	switch {
	case errors.As(err, &internal):
		return "the Cadence server reports an internal error"
	case errors.As(err, &bad):
		return "the Cadence server rejects the call: " + bad.Message
	case errors.As(err, &denied):
		return "the Cadence server rejects the call: " + denied.Message
	case errors.As(err, &busy):
		return "the Cadence server is busy: " + busy.Message
	case errors.As(err, &limit):
		return "the Cadence server rejects the call: " + limit.Message
	case errors.As(err, &inactive):
		return "the Cadence server rejects the call: " + inactive.Message
	}
	return "the call to the Cadence server failed"
}
