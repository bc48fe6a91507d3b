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
	// The pauses between two looks for the domain.
	domainPauseMin = 500 * time.Millisecond
	domainPauseMax = 15 * time.Second
	domainTimeout  = 10 * time.Second
	// lastPolls is how long calls for tasks that are under way may go on when a worker
	// is to take no more. A call that is cut off while the server answers it loses a
	// task; where there are tasks the answers are here by then.
	lastPolls = 500 * time.Millisecond
	// settledPoll is after how long a call for tasks that has not failed is one that
	// waits for some. Where there are none its answer takes a minute.
	settledPoll = 2 * time.Second
)

// activityWorker is a worker of Cadence's client for a binding as it was at one time.
type activityWorker struct {
	b      *binding
	stored *bindings.Record
	client client.Client
	gate   *gate

	ctx     context.Context // ends when the worker is to take no more tasks
	retired context.CancelFunc

	mu     sync.Mutex
	state  api.BindingState
	reason string
}

func newActivityWorker(b *binding, stored *bindings.Record) *activityWorker {
	w := &activityWorker{b: b, stored: stored, state: api.BindingFailing, reason: "connecting to the Cadence server"}
	w.ctx, w.retired = context.WithCancel(b.s.life)
	w.gate = newGate(b.s.conn.Service, w)
	w.client = client.NewClient(b.s.conn.Service, stored.Domain, &client.Options{Identity: stored.WorkerID})
	return w
}

func (w *activityWorker) retire() { w.retired() }

// run works until the worker is retired, and returns when it can take no task any
// more.
func (w *activityWorker) run() {
	defer w.gate.cut()
	if !w.awaitDomain() {
		return
	}
	polling, err := worker.NewV2(w.gate, w.stored.Domain, w.stored.Tasklist, worker.Options{
		Identity:                           w.stored.WorkerID,
		MaxConcurrentActivityExecutionSize: w.stored.Limits.MaxInflightTasks,
		MaxConcurrentActivityTaskPollers:   w.stored.Pollers.Activity,
		DisableWorkflowWorker:              true,
		Logger:                             w.b.logger.WithOptions(zap.IncreaseLevel(max(zapcore.WarnLevel, w.b.logger.Level()))),
		MetricsScope:                       tally.NoopScope,
	})
	if err != nil {
		w.set(api.BindingFailing, "the worker cannot be made: "+err.Error())
		w.b.logger.Error("a worker cannot be made", zap.Error(err))
		<-w.ctx.Done()
		return
	}
	polling.RegisterActivityWithOptions(w.gate.execute, activity.RegisterOptions{Name: anyActivity})
	if err := polling.Start(); err != nil { // the domain is there: see gate.DescribeDomain
		w.set(api.BindingFailing, "the worker cannot be started: "+err.Error())
		w.b.logger.Error("a worker cannot be started", zap.Error(err))
		<-w.ctx.Done()
		return
	}
	w.set(api.BindingRunning, "")
	<-w.ctx.Done()
	w.gate.shut()
	polling.Stop() // once: a second call would panic
}

// awaitDomain waits until the domain is there; false where the worker is retired
// first.
func (w *activityWorker) awaitDomain() bool {
	for pause := domainPauseMin; ; pause = min(2*pause, domainPauseMax) {
		err := w.gate.describe(w.ctx)
		if err == nil {
			return true
		}
		if w.ctx.Err() != nil {
			return false
		}
		w.troubled(err)
		select {
		case <-w.ctx.Done():
			return false
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// troubled notes what the server said, or did not.
func (w *activityWorker) troubled(err error) {
	var absent *shared.EntityNotExistsError
	if errors.As(err, &absent) {
		w.set(api.BindingWaiting, "the domain does not exist")
		return
	}
	if w.set(api.BindingFailing, publicError(err)) {
		w.b.logger.Warn("the Cadence server refuses or does not answer", zap.Error(err))
	}
}

// set keeps how the worker gets on; where that changed it says so, and logs it.
func (w *activityWorker) set(state api.BindingState, reason string) (changed bool) {
	w.mu.Lock()
	same := w.state == state && w.reason == reason
	w.state, w.reason = state, reason
	w.mu.Unlock()
	if !same {
		w.b.logger.Info("worker", zap.String("state", string(state)), zap.String("reason", reason),
			zap.String("domain", w.stored.Domain), zap.String("tasklist", w.stored.Tasklist))
	}
	return !same
}

// well notes that the server answered a call for tasks, or lets it wait for some.
func (w *activityWorker) well() {
	w.mu.Lock()
	well := w.state == api.BindingRunning
	w.mu.Unlock()
	if !well {
		w.set(api.BindingRunning, "")
	}
}

func (w *activityWorker) standing() (api.BindingState, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.reason
}

// publicError is what a tenant is told of err: what Cadence says of the call, and
// nothing of the network.
func publicError(err error) string {
	var bad *shared.BadRequestError
	var denied *shared.AccessDeniedError
	var busy *shared.ServiceBusyError
	var limit *shared.LimitExceededError
	var inactive *shared.DomainNotActiveError
	var internal *shared.InternalServiceError
	switch {
	case errors.As(err, &internal):
		return "the Cadence server reports a failure of its own"
	case errors.As(err, &bad):
		return "the Cadence server refuses: " + bad.Message
	case errors.As(err, &denied):
		return "the Cadence server refuses: " + denied.Message
	case errors.As(err, &busy):
		return "the Cadence server is busy: " + busy.Message
	case errors.As(err, &limit):
		return "the Cadence server refuses: " + limit.Message
	case errors.As(err, &inactive):
		return "the Cadence server refuses: " + inactive.Message
	}
	return "the Cadence server does not answer"
}
