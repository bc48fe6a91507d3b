package cadenceworker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/cadenceworker"
	"github.com/codesous/sous/cadenceworker/cadencetest"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/storagetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A poller of a worker that was stopped may rest for some seconds before it ends.
		goleak.IgnoreAnyFunction("go.uber.org/cadence/internal/common/backoff.(*ConcurrentRetrier).throttleInternal"),
		goleak.IgnoreAnyFunction("go.uber.org/cadence/internal/common/util.AwaitWaitGroup.func1"))
}

const (
	namespace = "default"
	tasklist  = "activities"
	decisions = "workflows" // the tasklist of the tests' own workflow worker
)

// bench is a supervisor over a store and an engine of its own, with a domain of its
// own on a Cadence server.
type bench struct {
	t       *testing.T
	server  *cadencetest.Server
	store   *storage.Store
	url     string
	tenant  string
	domain  string
	client  client.Client
	tracer  trace.TracerProvider
	replica *replica
}

// replica is what a process runs.
type replica struct {
	engine *invoker.Invoker
	sup    *cadenceworker.Supervisor
	reg    *prometheus.Registry
	end    func(timer time.Duration) error // as a process ends; nil errors for a second call
}

// options of a bench.
type options struct {
	server *cadencetest.Server // default: the shared one
	domain string              // default: a new one; "-": none, and no workflow worker
	// noServer is a platform that knows none.
	noServer bool
	tracer   trace.TracerProvider // default: none
	conn     func(*cadenceworker.Conn) *cadenceworker.Conn
}

func newBench(t *testing.T, o options) *bench {
	t.Helper()
	t.Parallel()
	cadencetest.Skip(t)
	if !o.noServer {
		o.server = cadencetest.Start(t)
	}
	return newBenchOf(t, o)
}

func newBenchOf(t *testing.T, o options) *bench {
	t.Helper()
	redis := storagetest.Redis(t)
	b := &bench{
		t: t, server: o.server, url: redis.URL, tenant: storagetest.Tenant(t), domain: o.domain, tracer: o.tracer,
		store: storagetest.Open(t, storage.Config{URL: redis.URL}),
	}
	if b.server != nil && b.domain == "" {
		b.domain = b.server.Domain(t)
	}
	if b.server != nil && b.domain != "-" {
		b.workflows()
	}
	b.replica = b.start(o.conn)
	return b
}

// workflows begins to run the tests' workflows in the domain.
func (b *bench) workflows() {
	b.t.Helper()
	b.client = b.server.Client(b.t, b.domain, carriers{})
	b.server.Work(b.t, b.domain, decisions, func(w worker.Worker) {
		w.RegisterWorkflowWithOptions(runPlan, workflow.RegisterOptions{Name: "plan"})
		w.RegisterWorkflowWithOptions(awaitSignal, workflow.RegisterOptions{Name: "await"})
	}, carriers{})
}

// start runs a replica of the bench's store until its end, or the test's.
func (b *bench) start(change func(*cadenceworker.Conn) *cadenceworker.Conn) *replica {
	b.t.Helper()
	t := b.t
	logger := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	var conn *cadenceworker.Conn
	if b.server != nil {
		conn = b.server.Dial(t)
		if change != nil {
			conn = change(conn)
		}
	}
	pool, err := sandbox.New(sandbox.Config{Executable: sandboxtest.Executable(t), Spares: 1})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	broker, err := queue.New(t.Context(), b.store, queue.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	cfg := invoker.Config{Tracer: b.tracer}
	if conn != nil {
		cfg.Workflows = conn // a nil *Conn would not be nothing
	}
	engine, err := invoker.New(t.Context(), b.store, pool, broker, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	reg := prometheus.NewRegistry()
	sup, err := cadenceworker.New(t.Context(), b.store, engine, cadenceworker.Config{Conn: conn, Logger: logger, Metrics: reg, Tracer: b.tracer})
	if err != nil {
		t.Fatalf("cadenceworker.New: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { sup.Run(ctx) })
	var once sync.Once
	end := func(timer time.Duration) (err error) {
		once.Do(func() {
			stop()
			running.Wait()
			bounded, cancel := context.WithTimeout(context.Background(), timer)
			defer cancel()
			closing, done := context.WithTimeout(context.Background(), 20*time.Second)
			defer done()
			err = errors.Join(sup.Close(bounded), engine.Close(closing), pool.Close(closing))
			broker.Close()
		})
		return err
	}
	t.Cleanup(func() {
		if err := end(5 * time.Second); err != nil {
			t.Errorf("end: %v", err)
		}
	})
	return &replica{engine: engine, sup: sup, reg: reg, end: end}
}

// publish makes a version of name and points prod at it.
func (b *bench) publish(name, source string, change ...func(*api.VersionConfig)) {
	b.t.Helper()
	t, ctx := b.t, b.t.Context()
	config := api.VersionConfig{
		Entry: bundle.EntryJS, Handler: api.DefaultHandler, TimeoutMS: 20_000,
		MemoryMB: api.DefaultMemoryMB, MaxConcurrency: 100,
	}
	for _, c := range change {
		c(&config)
	}
	tar, err := bundle.Pack(map[string][]byte{bundle.EntryJS: []byte(source)})
	if err != nil {
		t.Fatalf("bundle.Pack: %v", err)
	}
	now := b.store.NowMS()
	_, err = storage.NewFunctions(b.store).Create(ctx, api.Function{
		Tenant: b.tenant, Namespace: namespace, Name: name, Runtime: api.RuntimeJS,
		Entry: api.DefaultEntry, Handler: api.DefaultHandler, CreatedAtMS: now,
	})
	if err != nil && api.ErrorCode(err) != api.CodeFunctionExists {
		t.Fatalf("Create: %v", err)
	}
	draft := api.Draft{
		DraftID: api.NewDraftID(now), SHA256: bundle.Digest(tar), Files: map[string][]byte{bundle.EntryJS: nil},
		CreatedAtMS: now, ExpiresAtMS: now + api.DraftTTLMS,
	}
	if err := storage.NewDrafts(b.store).Put(ctx, b.tenant, namespace, name, draft); err != nil {
		t.Fatalf("Put: %v", err)
	}
	_, _, err = storage.NewVersions(b.store).Publish(ctx, storage.Publish{
		Tenant: b.tenant, Namespace: namespace, Function: name, DraftID: draft.DraftID,
		SHA256: draft.SHA256, Bundle: tar, Config: config, Alias: "prod", NowMS: now,
	})
	if err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

// binding is one that runs each of the functions as the activity of its name.
func (b *bench) binding(functions ...string) bindings.Record {
	w := api.WorkerBinding{
		Name: "worker", Domain: b.domain, Tasklist: tasklist, Enabled: true,
		ActivityMap: map[string]api.JobTarget{},
	}
	for _, f := range functions {
		w.ActivityMap[f] = api.JobTarget{Function: f}
	}
	w.Normalize()
	return bindings.Record{WorkerBinding: w, Principal: api.Principal{Sub: "test", Roles: []string{"admin"}}, Access: api.AccessUnrestricted}
}

// bind creates a binding.
func (b *bench) bind(stored bindings.Record) {
	b.t.Helper()
	if err := stored.Validate(); err != nil {
		b.t.Fatalf("stored.Validate: %v", err)
	}
	if _, err := b.bindings().Create(b.t.Context(), b.tenant, namespace, stored, b.store.NowMS()); err != nil {
		b.t.Fatalf("Create: %v", err)
	}
}

func (b *bench) bindings() *bindings.Repository { return bindings.New(b.store) }

func (b *bench) path() storage.BindingPath {
	return storage.BindingPath{Tenant: b.tenant, Namespace: namespace, Name: "worker"}
}

// change changes the binding.
func (b *bench) change(f func(*bindings.Record)) {
	b.t.Helper()
	_, err := b.bindings().Update(b.t.Context(), b.path(), nil, b.store.NowMS(), func(s *bindings.Record) error { f(s); return nil })
	if err != nil {
		b.t.Fatalf("Update: %v", err)
	}
}

// awaitStatus waits until the binding's status is as is says.
func (b *bench) awaitStatus(what string, is func(api.BindingCounts) bool) api.BindingCounts {
	b.t.Helper()
	var last api.BindingStatus
	eventually(b.t, what, func() error {
		var err error
		last, err = b.bindings().Status(b.t.Context(), b.path())
		if err != nil {
			return err
		}
		if !is(last.Status) {
			return fmt.Errorf("%+v", last.Status)
		}
		return nil
	})
	return last.Status
}

// begin starts the tests' workflow.
func (b *bench) begin(p plan) client.WorkflowRun {
	b.t.Helper()
	return b.beginIn(b.t.Context(), p)
}

// beginIn is begin by a caller with the span of ctx.
func (b *bench) beginIn(ctx context.Context, p plan) client.WorkflowRun {
	b.t.Helper()
	run, err := b.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		TaskList: decisions, ExecutionStartToCloseTimeout: 5 * time.Minute, DecisionTaskStartToCloseTimeout: 10 * time.Second,
	}, "plan", p)
	if err != nil {
		b.t.Fatalf("ExecuteWorkflow: %v", err)
	}
	return run
}

// wait waits for a workflow's end.
func (b *bench) wait(run client.WorkflowRun) report {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	var out report
	if err := run.Get(ctx, &out); err != nil {
		b.t.Fatalf("run.Get: %v", err)
	}
	return out
}

// tryWait waits for a while, and returns what comes in the way.
func (b *bench) tryWait(run client.WorkflowRun, out *report) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	return run.Get(ctx, out)
}

func (b *bench) do(p plan) report {
	b.t.Helper()
	return b.wait(b.begin(p))
}

// activations are a function's, newest first.
func (b *bench) activations(function string) []api.Activation {
	b.t.Helper()
	var out []api.Activation
	for cursor := ""; ; {
		items, next, err := activations.New(b.store).List(b.t.Context(), activations.Filter{
			Tenant: b.tenant, Namespace: namespace, Function: function, Limit: 500, Cursor: cursor,
		})
		if err != nil {
			b.t.Fatalf("List: %v", err)
		}
		out = append(out, items...)
		cursor = next
		if next == "" {
			return out
		}
	}
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got error %v after 60 s, want none", what, err)
		}
		time.Sleep(20 * time.Millisecond) // between two questions, not in place of one
	}
}
