// Package cadenceworker runs functions as the activities of Cadence workflows. A
// Supervisor follows the worker bindings and has a worker for each that is enabled;
// a Conn, beside it, starts and signals workflows for functions.
package cadenceworker

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	// readEvery is how often all bindings are read: notices of changes may be lost.
	readEvery = 10 * time.Second
	// readAgain is how soon they are read again after the store did not answer.
	readAgain = time.Second
	// reportEvery is how often what changed in a binding's status is stored.
	reportEvery = 2 * time.Second
	// answerTimeout bounds what follows the end of a drain's patience: tasks that were
	// stopped are answered, and the reports are withdrawn.
	answerTimeout = 2 * time.Second
)

// Engine runs functions; *invoker.Invoker is one.
type Engine interface {
	Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error)
}

// Config is what a Supervisor can be told; zero values mean the documented default.
type Config struct {
	// Conn is the Cadence server (default: none; bindings are told so in their
	// status). It stays the caller's to close, after the Supervisor.
	Conn *Conn
	// Logger gets what no caller can be told (default: none).
	Logger *zap.Logger
	// Metrics is where the metrics are exported (default: nowhere).
	Metrics prometheus.Registerer
	// Tracer is who gets the spans of tasks (default: nobody).
	Tracer trace.TracerProvider
}

// Supervisor keeps a worker for each enabled binding.
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

	// life outlives Run: tasks in hand run under it, and answer under it.
	life context.Context
	end  context.CancelFunc

	wake    chan storage.BindingPath // bindings that changed
	missed  chan struct{}            // holds a token where notices may have been missed
	polling sync.WaitGroup           // workers that may still take tasks
	tasks   sync.WaitGroup           // tasks in hand

	mu      sync.Mutex
	bound   map[storage.BindingPath]*binding
	hand    map[taskKey]*task
	hurried bool // whoever comes is stopped
}

// taskKey names a task in hand.
type taskKey struct{ tenant, activationID string }

// New makes a supervisor over a store and an engine, which stay the caller's to
// close, after it.
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
		bound: map[storage.BindingPath]*binding{}, hand: map[taskKey]*task{},
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.metrics = newSupervisorMetrics(s)
	if err := s.metrics.register(cfg.Metrics); err != nil {
		s.end()
		return nil, fmt.Errorf("cadenceworker: %w", err)
	}
	return s, nil
}

// Run follows the bindings until ctx ends; then no task is taken any more, and it
// returns when none can come in: see Close. It is called once at most.
func (s *Supervisor) Run(ctx context.Context) {
	if err := s.store.Subscribe(ctx, s.hear); err != nil {
		return // ctx has ended
	}
	var reporting sync.WaitGroup
	reporting.Go(func() { s.report(ctx) })
	// Changes that are heard of do not put off the reading of all.
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

// read is a RunOnce of the loop; it gives after how long the next is.
func (s *Supervisor) read(ctx context.Context) time.Duration {
	began := time.Now()
	err := s.RunOnce(ctx)
	if ctx.Err() != nil {
		return 0
	}
	s.metrics.loop.Round(began, err)
	if err != nil {
		s.logger.Warn("worker bindings could not be read", zap.Error(err))
		return readAgain
	}
	return readEvery
}

// hear takes a notice of the store.
func (s *Supervisor) hear(c storage.Change) {
	switch c.Kind {
	case storage.ChangeBinding:
		select {
		case s.wake <- storage.BindingPath{Tenant: c.Tenant, Namespace: c.Namespace, Name: c.Binding}:
		default:
			s.readSoon() // so many at once: all are read
		}
	case storage.ChangeResubscribed:
		s.readSoon()
	}
}

func (s *Supervisor) readSoon() {
	select {
	case s.missed <- struct{}{}:
	default: // a token is there already
	}
}

// RunOnce reads all bindings and gives each its worker.
func (s *Supervisor) RunOnce(ctx context.Context) error {
	all, err := s.bindings.All(ctx)
	if err != nil {
		return err
	}
	there := make(map[storage.BindingPath]bool, len(all))
	for i := range all {
		there[all[i].Path] = true
		s.apply(all[i].Path, &all[i].Record)
	}
	s.mu.Lock()
	var gone []storage.BindingPath
	for path := range s.bound {
		if !there[path] {
			gone = append(gone, path)
		}
	}
	s.mu.Unlock()
	for _, path := range gone {
		s.drop(path)
	}
	s.check(ctx)
	return nil
}

// refresh reads one binding, and gives it its worker.
func (s *Supervisor) refresh(ctx context.Context, path storage.BindingPath) error {
	b, err := s.bindings.Get(ctx, path)
	switch {
	case api.ErrorCode(err) == api.CodeBindingNotFound:
		s.drop(path)
		return nil
	case err != nil:
		return err
	}
	s.apply(path, b)
	s.check(ctx)
	return nil
}

func (s *Supervisor) apply(path storage.BindingPath, stored *bindings.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bound[path]
	if b == nil {
		b = newBinding(s, path)
		s.bound[path] = b
	}
	b.apply(stored)
}

// drop ends the work for a binding that is no more.
func (s *Supervisor) drop(path storage.BindingPath) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bound[path]; b != nil {
		b.stop()
		delete(s.bound, path)
	}
}

// check looks whether the functions of each binding are there.
func (s *Supervisor) check(ctx context.Context) {
	s.mu.Lock()
	bound := make([]*binding, 0, len(s.bound))
	for _, b := range s.bound {
		bound = append(bound, b)
	}
	s.mu.Unlock()
	for _, b := range bound {
		b.check(ctx)
	}
}

// enter takes a task in hand; false where it is already, or nothing runs any more.
func (s *Supervisor) enter(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hand[t.key] != nil {
		return false
	}
	s.hand[t.key] = t
	if s.hurried {
		t.stop(errShutdown)
	}
	return true
}

func (s *Supervisor) leave(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hand, t.key)
}

// inHand is how many tasks run here.
func (s *Supervisor) inHand() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hand)
}

// Close waits for the tasks in hand until ctx ends, stops the rest, which Cadence is
// told to retry, and withdraws this replica's reports. Run is to be ended before.
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
		s.hurry()
		select {
		case <-done:
		case <-time.After(answerTimeout):
			err = errors.New("cadenceworker: tasks were left without an answer: they time out")
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

// hurry stops what is in hand, and what is on its way here.
func (s *Supervisor) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried = true
	for _, t := range s.hand {
		t.stop(errShutdown)
	}
}
