// Package cadenceworker runs functions as the activities of Cadence workflows. A
// Supervisor follows the worker bindings and runs a worker for each enabled one. A Conn
// starts and signals workflows for functions.
//
// # The path of a task
//
//	supervisor.go   reads the bindings, at notices and each readEvery
//	binding.go      one binding on this replica: a worker for each revision, shared slots
//	worker.go       one worker of Cadence's client, from the wait for the domain to the drain
//	interceptor.go  polls when there is a slot (slots.go), passes the task to execute
//	task.go         makes the invocation, waits until the limit allows it, runs the function
//	beats.go        sends heartbeats meanwhile
//	answer.go       responds to Cadence by the task's token
//
// status.go stores the state of the bindings for the API; workflows.go and transport.go are the
// connection and the calls of functions.
//
// # Invariants
//
// Cadence's client library is used for what it does well, polling and encoding, and is kept from
// the rest: it would drop tasks of unknown types, lose results after a stop, and retry without
// end. So the worker knows one activity, the task's context is not the client's, and the response
// goes by the token, which any client can present.
//
// A task that was polled has a slot until it was answered. Polling ends without losing a task: the
// polls in progress return, and only those that have no task by then are cancelled (pollGrace).
//
// The activation id is derived from the token of the task. If Cadence delivers a task twice, the
// record of the activation decides which delivery runs it.
package cadenceworker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/cadence/worker"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/tracing"
)

const (
	// readEvery is the interval between reads of all bindings: notices of changes can be lost.
	readEvery = 10 * time.Second
	// readAgain is the interval after a failed read.
	readAgain = time.Second
	// reportEvery is the interval at which changes of a binding's status are stored.
	reportEvery = 2 * time.Second
	// answerTimeout bounds the end of a drain whose context has ended: the responses for
	// stopped tasks, and the removal of the reports.
	answerTimeout = 2 * time.Second
)

// Engine runs functions; *invoker.Invoker is one. Invoke must be safe for concurrent use and
// return soon after ctx has ended.
type Engine interface {
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
}

// Config configures a Supervisor. Zero values mean the documented defaults.
type Config struct {
	// Conn is the connection to the Cadence server (default: none; the status of
	// bindings says so). The caller closes it, after the Supervisor.
	Conn *Conn
	// Logger logs errors that no caller receives (default: none).
	Logger *zap.Logger
	// Metrics registers the metrics (default: not exported).
	Metrics prometheus.Registerer
	// Tracer receives the spans of tasks (default: none).
	Tracer trace.TracerProvider
}

// Supervisor runs a worker for each enabled binding. It is shut down in this order: the context of
// Run ends, polling stops, Run returns, Close waits for the tasks, the caller closes the Conn.
type Supervisor struct {
	store    *storage.Store
	bindings *bindings.Repository
	versions *storage.Versions
	engine   Engine
	conn     *Conn
	logger   *zap.Logger
	metrics  *supervisorMetrics
	tracer   trace.Tracer // nil for none
	replica  string

	// life outlives Run: tasks run and respond under it until Close.
	life context.Context
	end  context.CancelFunc

	wake    chan storage.BindingPath // bindings that changed
	missed  chan struct{}            // has a token if notices may have been lost
	polling sync.WaitGroup           // workers that may still take tasks
	tasks   sync.WaitGroup           // running tasks

	mu       sync.Mutex
	bound    map[storage.BindingPath]*binding
	shares   map[string]share // of pollers, by tenant
	running  map[taskKey]*task
	stopping bool // new tasks are stopped as soon as they are registered
}

// taskKey identifies a running task. The activation id follows from the token, so both
// deliveries of a task have the same key.
type taskKey struct{ tenant, activationID string }

// New returns a supervisor that runs functions by engine. The caller closes store and
// engine after it. ctx provides values only: its end does not stop the supervisor.
func New(ctx context.Context, store *storage.Store, engine Engine, cfg Config) (*Supervisor, error) {
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cadenceworker: %w", err)
	}
	// The client would read and hash the whole program at the first worker's start.
	worker.SetBinaryChecksum(callerName)
	s := &Supervisor{
		store: store, bindings: bindings.New(store), versions: storage.NewVersions(store),
		engine: engine, conn: cfg.Conn, logger: cfg.Logger, tracer: tracing.New(cfg.Tracer, "cadenceworker"),
		replica: host + "-" + uuid.NewString()[:8],
		wake:    make(chan storage.BindingPath, 1024), missed: make(chan struct{}, 1),
		bound: map[storage.BindingPath]*binding{}, shares: map[string]share{}, running: map[taskKey]*task{},
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.metrics = newSupervisorMetrics(s)
	if err := s.metrics.register(cfg.Metrics); err != nil {
		s.end()
		return nil, fmt.Errorf("cadenceworker: %w", err)
	}
	return s, nil
}

// Run follows the bindings until ctx ends. Then it stops polling and returns when no more
// tasks can arrive; Close waits for those that run. Call it once at most.
func (s *Supervisor) Run(ctx context.Context) {
	if err := s.store.Subscribe(ctx, s.onChange); err != nil {
		return // ctx has ended
	}
	var reporting sync.WaitGroup
	reporting.Go(func() { s.report(ctx) })
	// Notices do not delay the read of all bindings.
	for due := time.Now(); ctx.Err() == nil; {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
		case path := <-s.wake:
			if err := s.refresh(ctx, path); err != nil && time.Until(due) > readAgain {
				due = time.Now().Add(readAgain)
			}
		case <-timer.C:
			due = time.Now().Add(s.read(ctx))
		case <-s.missed:
			due = time.Now().Add(s.read(ctx))
		}
		timer.Stop()
	}
	reporting.Wait()
	s.mu.Lock()
	for _, b := range s.bound {
		b.stop()
	}
	s.mu.Unlock()
	s.polling.Wait()
}

// read is one round of the loop. It returns the time until the next one.
func (s *Supervisor) read(ctx context.Context) time.Duration {
	began := time.Now()
	err := s.RunOnce(ctx)
	if ctx.Err() != nil {
		return 0
	}
	s.metrics.loop.Round(began, err)
	if err != nil {
		s.logger.Warn("reading worker bindings failed", zap.Error(err))
		return readAgain
	}
	return readEvery
}

// onChange handles a notice of the store.
func (s *Supervisor) onChange(c storage.Change) {
	switch c.Kind {
	case storage.ChangeBinding:
		select {
		case s.wake <- storage.BindingPath{Tenant: c.Tenant, Namespace: c.Namespace, Name: c.Binding}:
		default:
			s.readSoon() // too many notices: read all bindings
		}
	case storage.ChangeResubscribed:
		s.readSoon()
	}
}

// readSoon makes the loop read all bindings.
func (s *Supervisor) readSoon() {
	select {
	case s.missed <- struct{}{}:
	default: // a token is there already
	}
}

// RunOnce reads all bindings and starts, replaces or stops their workers. It does not wait for
// the workers: one whose domain does not exist keeps trying. Errors: CodeStoreUnavailable, after
// which all workers stay as they are.
func (s *Supervisor) RunOnce(ctx context.Context) error {
	all, err := s.bindings.All(ctx)
	if err != nil {
		return err
	}
	stored := make(map[storage.BindingPath]bool, len(all))
	tenants := map[string]bool{}
	s.mu.Lock()
	for i := range all {
		stored[all[i].Path] = true
		s.bind(all[i].Path, &all[i].Record)
	}
	for path := range s.bound {
		if !stored[path] {
			s.drop(path)
		}
		tenants[path.Tenant] = true
	}
	s.mu.Unlock()
	s.apply(tenants)
	s.check(ctx)
	return nil
}

// refresh reads one binding and starts, replaces or stops its worker.
func (s *Supervisor) refresh(ctx context.Context, path storage.BindingPath) error {
	stored, err := s.bindings.Get(ctx, path)
	gone := api.ErrorCode(err) == api.CodeBindingNotFound
	if err != nil && !gone {
		return err
	}
	s.mu.Lock()
	if gone {
		s.drop(path)
	} else {
		s.bind(path, stored)
	}
	s.mu.Unlock()
	s.apply(map[string]bool{path.Tenant: true})
	s.check(ctx)
	return nil
}

// bind passes a record that was read to its binding, which is created if it is new; mu must be
// held, and apply must follow.
func (s *Supervisor) bind(path storage.BindingPath, stored *bindings.Record) {
	if b := s.bound[path]; b != nil {
		b.latest.Store(stored)
		return
	}
	s.bound[path] = newBinding(s, path, stored)
}

// drop stops the worker of a binding that was deleted; mu must be held.
func (s *Supervisor) drop(path storage.BindingPath) {
	if b := s.bound[path]; b != nil {
		b.stop()
		delete(s.bound, path)
	}
}

// currentBindings returns the bindings of this moment, in no order. Their methods are called
// without the lock.
func (s *Supervisor) currentBindings() []*binding {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.bound))
}

// check checks whether the functions of each binding exist.
func (s *Supervisor) check(ctx context.Context) {
	for _, b := range s.currentBindings() {
		b.check(ctx)
	}
}

// register adds a running task. It returns false if the task runs already on this replica,
// because Cadence has delivered it twice.
func (s *Supervisor) register(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[t.key] != nil {
		return false
	}
	s.running[t.key] = t
	if s.stopping {
		t.stop(errShutdown)
	}
	return true
}

func (s *Supervisor) unregister(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, t.key)
}

// runningTasks returns the number of running tasks.
func (s *Supervisor) runningTasks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Close waits for the running tasks until ctx ends, stops the others so that Cadence
// retries them, and removes this replica's reports. Run must have returned, or its
// context must have ended. An error means that tasks were left, which will time out, or that the
// reports could not be removed, which will expire.
//
//	ctx running  tasks end by themselves and are answered
//	ctx ends     the others are stopped; each responds with a failure, CodeShuttingDown
//	+ 2 s        life ends, and with it the responses that have not reached Cadence
func (s *Supervisor) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.polling.Wait()
		s.tasks.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		s.stopTasks()
		select {
		case <-done:
		case <-time.After(answerTimeout):
			err = errors.New("cadenceworker: some tasks were not answered and will time out")
		}
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	s.mu.Lock()
	paths := make([]storage.BindingPath, 0, len(s.bound))
	for path := range s.bound {
		paths = append(paths, path)
	}
	s.mu.Unlock()
	err = errors.Join(err, s.bindings.Withdraw(bounded, s.replica, paths))
	s.end()
	<-done
	return err
}

// stopTasks stops the running tasks, and those that are registered from now on.
func (s *Supervisor) stopTasks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, t := range s.running {
		t.stop(errShutdown)
	}
}
