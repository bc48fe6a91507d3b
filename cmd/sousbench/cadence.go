package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/activity"
	cadence "go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cadenceworker"
	"github.com/codesous/sous/cadenceworker/cadencetest"
)

// The load of the Cadence benchmark: cadenceFlows concurrent workflows, each of which runs
// cadenceAtOnce concurrent activities, cadenceTimes times. The second part is one workflow
// that runs cadenceInTurn activities one after the other.
const (
	cadenceDomain    = "bench"
	cadenceDecisions = "decisions" // tasklist of the workflows, whose worker is this process
	cadenceActivity  = "hello"     // activity type of both sides
	cadencePollers   = 8
	cadenceFlows     = 8
	cadenceAtOnce    = 20
	cadenceTimes     = 5
	cadenceInTurn    = 50
)

// The sides: the tasklist of a worker in this process, and that of a binding.
const (
	goTasklist   = "go"
	sousTasklist = "sous"
)

// cadenceBench compares functions with Go activities. Both do nothing; rounds of the same
// workflow run on one side and then on the other. Cadence's server shares the processors with
// them.
func cadenceBench(ctx context.Context, o options) ([]row, error) {
	b, err := newCadenceTestbed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	loaded := map[string]*activityFigures{}
	inTurn := map[string]*activityFigures{}
	stopProfile := func() {}
	for round := range o.rounds + 1 { // the first one warms up, and is dropped
		for _, tasklist := range []string{goTasklist, sousTasklist} {
			if round == 1 && tasklist == sousTasklist {
				stopProfile = startProfile(ctx, o, "cadence")
			}
			if err := b.measure(ctx, loaded, tasklist, cadenceFlows, fanPlan{tasklist, cadenceTimes, cadenceAtOnce}); err != nil {
				return nil, err
			}
			if err := b.measure(ctx, inTurn, tasklist, 1, fanPlan{tasklist, cadenceInTurn, 1}); err != nil {
				return nil, err
			}
		}
	}
	stopProfile()
	base, ours := loaded[goTasklist], loaded[sousTasklist]
	ratio := ours.perSecond() / base.perSecond()
	return []row{
		{name: "Go activity, 8 pollers", value: base.String()},
		{name: "function, 8 pollers", value: ours.String()},
		{"activities a second, share of Go's", fmt.Sprintf("%.2f", ratio), "≥ 0.70", ratio >= 0.7},
		{name: "one at a time, Go activity", value: inTurn[goTasklist].String()},
		{name: "one at a time, function", value: inTurn[sousTasklist].String()},
	}, nil
}

// activityFigures are the rounds of one side, the one that warms up included.
type activityFigures struct {
	rates []float64       // activities a second, of each round
	waits []time.Duration // from schedule to start, of all activities, by the server's clock
}

// perSecond returns the median rate without the first round, which warms up.
func (f *activityFigures) perSecond() float64 {
	sorted := slices.Sorted(slices.Values(f.rates[1:]))
	return sorted[len(sorted)/2]
}

// String returns the cell of the table. Each round has as many waits as the others, so the
// share of the first round is the first part of them.
func (f *activityFigures) String() string {
	waits := f.waits[len(f.waits)/len(f.rates):]
	slices.Sort(waits)
	at := func(q float64) time.Duration { return waits[int(q*float64(len(waits)-1))] }
	return fmt.Sprintf("%.0f/s, schedule to start p50 %s, p99 %s", f.perSecond(), ms(at(0.5)), ms(at(0.99)))
}

// fanPlan is the plan of a workflow: Times times AtOnce concurrent activities of the
// tasklist.
type fanPlan struct {
	Tasklist      string
	Times, AtOnce int
}

// fan is the workflow. It starts the next AtOnce activities when all before have ended.
func fan(ctx workflow.Context, p fanPlan) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskList: p.Tasklist, ScheduleToStartTimeout: time.Minute, StartToCloseTimeout: time.Minute,
	})
	for range p.Times {
		var futures []workflow.Future
		for range p.AtOnce {
			futures = append(futures, workflow.ExecuteActivity(ctx, cadenceActivity, []byte(`{"to":"somebody@example.com"}`)))
		}
		for _, f := range futures {
			if err := f.Get(ctx, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// cadenceTestbed is a Cadence server with a domain, whose workflows and Go activities run
// in this process, and a sous with a worker binding for the other tasklist. The Cadence server
// is the one of tools/cadenceserver, with SQLite in one process: it, and not the workers,
// limits the rates.
type cadenceTestbed struct {
	dir         string
	server      *cadencetest.Server
	conn        *cadenceworker.Conn
	client      cadence.Client
	workers     []worker.Worker
	store, sous *process
}

// newCadenceTestbed starts all processes and workers. If it fails, it has closed it.
func newCadenceTestbed(ctx context.Context, o options) (*cadenceTestbed, error) {
	b := &cadenceTestbed{}
	var err error
	b.dir, err = os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	b.server, err = cadencetest.New()
	if err == nil {
		b.conn, err = cadenceworker.Dial(b.server.GRPCAddr)
	}
	if err == nil {
		err = b.openDomain(ctx)
	}
	if err == nil {
		b.store, err = startStore(ctx, o, b.dir)
	}
	if err == nil {
		b.sous, err = startSous(ctx, o, b.store, append(profileArgs(o), "--cadence-addr", b.server.GRPCAddr)...)
	}
	if err == nil {
		err = b.bind(ctx)
	}
	if err != nil {
		b.close()
	}
	return b, err
}

func (b *cadenceTestbed) close() {
	b.sous.stop()
	b.store.stop()
	for _, w := range b.workers {
		w.Stop()
	}
	if b.server != nil {
		b.server.Close() // calls in progress fail, so that the connection is not waited for
	}
	if b.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = b.conn.Close(ctx) // the server is gone
	}
	_ = os.RemoveAll(b.dir) // the system clears its temporary files
}

// openDomain registers the domain and starts the workers of this process: one for the
// workflows of both sides, and one for the Go activities.
func (b *cadenceTestbed) openDomain(ctx context.Context) error {
	name, days := cadenceDomain, int32(1)
	err := cadence.NewDomainClient(b.conn.Service, nil).Register(ctx, &shared.RegisterDomainRequest{
		Name: &name, WorkflowExecutionRetentionPeriodInDays: &days,
	})
	if err != nil {
		return err
	}
	b.client = cadence.NewClient(b.conn.Service, cadenceDomain, nil)
	decisions, err := worker.NewV2(b.conn.Service, cadenceDomain, cadenceDecisions, worker.Options{
		// With sticky execution, bursts of decisions may stall.
		Logger: zap.NewNop(), DisableActivityWorker: true, DisableStickyExecution: true,
	})
	if err != nil {
		return err
	}
	decisions.RegisterWorkflowWithOptions(fan, workflow.RegisterOptions{Name: "fan"})
	activities, err := worker.NewV2(b.conn.Service, cadenceDomain, goTasklist, worker.Options{
		Logger: zap.NewNop(), DisableWorkflowWorker: true,
		MaxConcurrentActivityTaskPollers: cadencePollers, MaxConcurrentActivityExecutionSize: api.DefaultInflightTasks,
	})
	if err != nil {
		return err
	}
	activities.RegisterActivityWithOptions(func(_ context.Context, _ []byte) ([]byte, error) {
		return []byte(`{"hello":"world"}`), nil
	}, activity.RegisterOptions{Name: cadenceActivity})
	for _, w := range []worker.Worker{decisions, activities} {
		if err := w.Start(); err != nil {
			return err
		}
		b.workers = append(b.workers, w)
	}
	return nil
}

// bind publishes a function and creates a binding that runs it.
func (b *cadenceTestbed) bind(ctx context.Context) error {
	if err := publish(ctx, b.sous, "hello", helloSource, "{}"); err != nil {
		return err
	}
	c, err := client.New("http://"+b.sous.addr, client.Config{})
	if err != nil {
		return err
	}
	_, err = c.Tenant(tenant).Namespace(namespace).CreateBinding(ctx, api.NewBinding{
		Name: "bench", Domain: cadenceDomain, Tasklist: sousTasklist, Pollers: api.BindingPollers{Activity: cadencePollers},
		ActivityMap: map[string]api.JobTarget{cadenceActivity: {Function: "hello"}},
	})
	return err
}

// measure runs flows concurrent workflows to their end and adds a round to the tasklist's
// figures. The rate includes the decisions of the workflows, which both sides need.
func (b *cadenceTestbed) measure(ctx context.Context, into map[string]*activityFigures, tasklist string, flows int, p fanPlan) error {
	f := into[tasklist]
	if f == nil {
		f = &activityFigures{}
		into[tasklist] = f
	}
	began := time.Now()
	runs := make([]cadence.WorkflowRun, flows)
	for i := range runs {
		var err error
		runs[i], err = b.client.ExecuteWorkflow(ctx, cadence.StartWorkflowOptions{
			TaskList: cadenceDecisions, ExecutionStartToCloseTimeout: 5 * time.Minute, DecisionTaskStartToCloseTimeout: 10 * time.Second,
		}, "fan", p)
		if err != nil {
			return err
		}
	}
	for _, run := range runs {
		if err := run.Get(ctx, nil); err != nil {
			return err
		}
	}
	f.rates = append(f.rates, float64(flows*p.Times*p.AtOnce)/time.Since(began).Seconds())
	for _, run := range runs {
		waits, err := b.waits(ctx, run)
		if err != nil {
			return err
		}
		f.waits = append(f.waits, waits...)
	}
	return nil
}

// waits returns the times from schedule to start of a workflow's activities, by its history.
func (b *cadenceTestbed) waits(ctx context.Context, run cadence.WorkflowRun) ([]time.Duration, error) {
	var out []time.Duration
	scheduled := map[int64]int64{}
	history := b.client.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, shared.HistoryEventFilterTypeAllEvent)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return nil, err
		}
		switch event.GetEventType() {
		case shared.EventTypeActivityTaskScheduled:
			scheduled[event.GetEventId()] = event.GetTimestamp()
		case shared.EventTypeActivityTaskStarted:
			at := scheduled[event.ActivityTaskStartedEventAttributes.GetScheduledEventId()]
			out = append(out, time.Duration(event.GetTimestamp()-at))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("a workflow's history has no activities")
	}
	return out, nil
}
