package routing_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/routing"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const namespace = "default"

// bench has routers over one store, as of two replicas, whose clock it moves.
type bench struct {
	t       *testing.T
	store   *storage.Store
	broker  *queue.Broker
	routers [2]*routing.Router
	tenant  string
	ms      atomic.Int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, tenant: storagetest.Tenant(t)}
	b.ms.Store(time.Now().UnixMilli())
	b.store = storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Clock: func() time.Time { return time.UnixMilli(b.ms.Load()) }})
	var err error
	b.broker, err = queue.New(t.Context(), b.store, queue.Config{})
	if err != nil {
		t.Fatalf("queue.New: %v", err)
	}
	t.Cleanup(b.broker.Close)
	for i := range b.routers {
		b.routers[i], err = routing.New(b.broker, b.store, zap.NewNop())
		if err != nil {
			t.Fatalf("routing.New: %v", err)
		}
		if err := b.store.Subscribe(t.Context(), b.routers[i].OnChange); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
	}
	for _, name := range []string{"main", "spare"} {
		b.provider(name, ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: "https://models.example/v1", Models: []string{name + "-1"}})
	}
	b.route("best", ai.StrategyFallback, "main", "spare")
	return b
}

func (b *bench) provider(name string, s ai.ProviderSettings) {
	b.t.Helper()
	s.Normalize()
	if _, _, err := providers.New(b.store).Put(b.t.Context(), b.tenant, name, s, providers.Condition{}, b.store.NowMS()); err != nil {
		b.t.Fatalf("Put: %v", err)
	}
}

func (b *bench) route(name, strategy string, targets ...string) {
	b.t.Helper()
	s := ai.ProviderSettings{Kind: ai.KindRoute, Strategy: strategy}
	for _, t := range targets {
		s.Targets = append(s.Targets, ai.RouteTarget{Provider: t})
	}
	b.provider(name, s)
}

// enqueue adds n jobs with a routing.
func (b *bench) enqueue(n int, name string) {
	b.t.Helper()
	jobs := make([]api.NewJob, n)
	for i := range jobs {
		jobs[i].Routing = name
	}
	if _, err := b.broker.Enqueue(b.t.Context(), queue.Enqueue{Tenant: b.tenant, Namespace: namespace, Queue: "agents", Jobs: jobs}); err != nil {
		b.t.Fatalf("Enqueue: %v", err)
	}
}

// due makes the jobs pending whose time has come after so long.
func (b *bench) due(after time.Duration) {
	b.t.Helper()
	b.ms.Add(after.Milliseconds())
	ticker, err := scheduler.NewTicker(b.store, b.broker, nil, zap.NewNop())
	if err != nil {
		b.t.Fatalf("NewTicker: %v", err)
	}
	if _, err := scheduler.NewLoop(b.store, b.broker, ticker, zap.NewNop()).RunOnce(b.t.Context(), b.ms.Load()); err != nil {
		b.t.Fatalf("RunOnce: %v", err)
	}
}

// fetch has a replica hand out jobs to a worker.
func (b *bench) fetch(replica, count int) []api.FetchedJob {
	b.t.Helper()
	jobs, err := b.routers[replica].Fetch(b.t.Context(), queue.Fetch{Tenant: b.tenant, Namespace: namespace, Queues: []string{"agents"}, WorkerID: "w", Count: count})
	if err != nil {
		b.t.Fatalf("Fetch: %v", err)
	}
	return jobs
}

// given returns the providers and models of jobs.
func given(jobs []api.FetchedJob) string {
	var out []string
	for i := range jobs {
		out = append(out, jobs[i].Provider+"/"+jobs[i].Model)
	}
	return strings.Join(out, " ")
}

func (b *bench) fail(replica int, j *api.FetchedJob, e agent.ProviderError) api.JobOutcome {
	b.t.Helper()
	out, err := b.routers[replica].Fail(b.t.Context(), b.tenant, []api.JobFail{{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: "refused", ProviderError: &e}})
	if err != nil || len(out) != 1 {
		b.t.Fatalf("Fail: got %+v and error %v, want an outcome", out, err)
	}
	return out[0]
}

// TestProviderErrors: an overload of a provider opens its circuit for the workers of all replicas. Its
// job goes on at the next target, without a counted attempt, and jobs return to the provider when its
// circuit is over.
func TestProviderErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(3, "best")
	first := b.fetch(0, 1)
	if got, want := given(first), "main/main-1"; got != want {
		t.Fatalf("got the provider %q, want %q", got, want)
	}
	if out := b.fail(0, &first[0], agent.ProviderError{Provider: "main", Kind: agent.FailureOverloaded, RetryAfterMS: 20_000}); !out.OK || out.State != api.JobRetrying {
		t.Fatalf("Fail: got %+v, want the state %s", out, api.JobRetrying)
	}
	b.due(time.Second)
	again := b.fetch(1, 3)
	if got, want := given(again), "spare/spare-1 spare/spare-1 spare/spare-1"; got != want {
		t.Errorf("got the providers %q after an overload, want %q", got, want)
	}
	for i := range again {
		if again[i].ID == first[0].ID && again[i].Attempt != 1 {
			t.Errorf("got attempt %d after an error of the provider, want 1", again[i].Attempt)
		}
	}
	b.due(20 * time.Second)
	b.enqueue(1, "best")
	if got, want := given(b.fetch(1, 1)), "main/main-1"; got != want {
		t.Errorf("got the provider %q after the circuit, want %q", got, want)
	}
}

// circuit returns the stored circuit of main.
func (b *bench) circuit() providers.Circuit {
	b.t.Helper()
	all, err := providers.New(b.store).Circuits(b.t.Context(), b.tenant)
	if err != nil {
		b.t.Fatalf("Circuits: %v", err)
	}
	return all["main"]
}

// TestUsageClosesACircuit: jobs that were under way do not open a circuit for longer, and the usage of a
// later one closes it.
func TestUsageClosesACircuit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(4, "main")
	under := b.fetch(0, 3)
	b.ms.Add(100)
	overload := agent.ProviderError{Provider: "main", Kind: agent.FailureOverloaded}
	b.fail(0, &under[0], overload)
	opened := b.circuit()
	for i := range under[1:] {
		b.ms.Add(10)
		b.fail(1, &under[1+i], overload)
	}
	if got := b.circuit(); opened.UntilMS == 0 || got != opened {
		t.Errorf("got the circuit %+v after failures of jobs that were under way, want %+v", got, opened)
	}
	b.due(2 * time.Second)
	j := b.fetch(1, 1)
	if len(j) != 1 {
		t.Fatalf("got %d jobs after the circuit, want 1", len(j))
	}
	beat := api.JobHeartbeat{ID: j[0].ID, LeaseEpoch: j[0].LeaseEpoch, Usage: []agent.Usage{{Seq: 1, Provider: "main", Model: "main-1", InputTokens: 1}}}
	if out, err := b.routers[1].Heartbeat(t.Context(), b.tenant, []api.JobHeartbeat{beat}); err != nil || !out[0].OK {
		t.Fatalf("Heartbeat: got %+v and error %v, want success", out, err)
	}
	if got := b.circuit(); got != (providers.Circuit{}) {
		t.Errorf("got the circuit %+v after a call that was served, want none", got)
	}
}

// TestReportsThatAreRefused: a report that is refused for its form counts in no limit, that of a lost
// lease does.
func TestReportsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provider("main", ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: "https://models.example/v1", Models: []string{"main-1"}, InputTokensPerMinute: 60_000})
	b.enqueue(3, "main")
	j := b.fetch(0, 1)
	usage := []agent.Usage{{Provider: "main", Model: "main-1", InputTokens: 60_000, OutputTokens: -1}}
	report := func(want api.Code) {
		t.Helper()
		out, err := b.routers[0].Ack(t.Context(), b.tenant, []api.JobAck{{ID: j[0].ID, LeaseEpoch: j[0].LeaseEpoch + 1, Usage: usage}})
		if err != nil || out[0].Code != want {
			t.Fatalf("Ack: got %+v and error %v, want code %s", out, err, want)
		}
	}
	wait := func() time.Duration { // of a replica that has leased nothing
		t.Helper()
		p, err := providers.New(b.store).Get(t.Context(), b.tenant, "main")
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		d, err := providers.NewLimiter(b.store).Take(t.Context(), b.tenant, p, providers.Amounts{Input: 1}, 0)
		if err != nil {
			t.Fatalf("Take: %v", err)
		}
		return d
	}
	report(api.CodeInvalid)
	if got := wait(); got != 0 {
		t.Errorf("got a wait of %s after a report that was refused, want none", got)
	}
	usage[0].OutputTokens = 0
	report(api.CodeJobLeaseLost)
	if got := wait(); got < 30*time.Second {
		t.Errorf("got a wait of %s after the tokens of a minute were used, want at least 30s", got)
	}
}

// TestErrorMovesTheJob: an error that opens no circuit moves its job to the next target, and no other.
func TestErrorMovesTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(1, "best")
	j := b.fetch(0, 1)
	b.fail(0, &j[0], agent.ProviderError{Provider: "main", Kind: agent.FailureError})
	b.enqueue(1, "best")
	if got, want := given(b.fetch(0, 1)), "main/main-1"; got != want {
		t.Errorf("got the provider %q of another job, want %q", got, want)
	}
	b.due(time.Second)
	if got, want := given(b.fetch(0, 1)), "spare/spare-1"; got != want {
		t.Errorf("got the provider %q of the job that failed, want %q", got, want)
	}
}

// TestJobsWaitForProviders: while no target can serve, jobs are put back without a counted attempt.
func TestJobsWaitForProviders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(1, "main")
	j := b.fetch(0, 1)
	b.fail(0, &j[0], agent.ProviderError{Provider: "main", Kind: agent.FailureRateLimit, RetryAfterMS: 10_000})
	b.due(time.Second)
	if got := b.fetch(1, 1); len(got) != 0 {
		t.Fatalf("got %+v while the circuit is open, want no job", got)
	}
	if got, err := b.broker.Get(t.Context(), b.tenant, j[0].ID); err != nil || got.State != api.JobRetrying || got.DueAtMS < b.ms.Load()+9_000 {
		t.Errorf("got state %s, due in %d ms, and error %v; want it due when the circuit is over", got.State, got.DueAtMS-b.ms.Load(), err)
	}
	b.due(15 * time.Second)
	got := b.fetch(1, 1)
	if given(got) != "main/main-1" || got[0].Attempt != 1 {
		t.Errorf("got %+v after the circuit, want the first attempt at main", got)
	}
}

// TestADeepQueueIsNotPutBack: while no target can serve, a fetch puts a few jobs back, not all of its
// queue, whether it waits or not.
func TestADeepQueueIsNotPutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(201, "main")
	j := b.fetch(0, 1)
	b.fail(0, &j[0], agent.ProviderError{Provider: "main", Kind: agent.FailureRateLimit, RetryAfterMS: 60_000})
	for _, wait := range []time.Duration{0, 150 * time.Millisecond} {
		got, err := b.routers[0].Fetch(t.Context(), queue.Fetch{Tenant: b.tenant, Namespace: namespace, Queues: []string{"agents"}, WorkerID: "w", Count: 1, Wait: wait})
		if err != nil || len(got) != 0 {
			t.Errorf("Fetch with a wait of %s: got %d jobs and error %v, want none", wait, len(got), err)
		}
	}
	q, err := b.broker.GetQueue(t.Context(), b.tenant, namespace, "agents")
	if err != nil || q.Depths[api.JobRetrying] > 20 {
		t.Errorf("GetQueue: got %d jobs put back and error %v, want at most 20", q.Depths[api.JobRetrying], err)
	}
}

// TestProviderOfAQueue: jobs without a routing have the provider of their queue, others their own.
func TestProviderOfAQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	name := "spare"
	if _, err := b.broker.Configure(t.Context(), b.tenant, namespace, "agents", queue.Change{Provider: &name}); err != nil {
		t.Fatalf("Configure: %v", err)
	}
	b.enqueue(1, "")
	b.enqueue(1, "main")
	if got, want := given(b.fetch(0, 2)), "spare/spare-1 main/main-1"; got != want {
		t.Errorf("got the providers %q, want %q", got, want)
	}
}

// TestRequestsOfReplicas: the requests a minute of a provider hold for the workers of all replicas, and
// reported usage counts as well.
func TestRequestsOfReplicas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.provider("main", ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: "https://models.example/v1", Models: []string{"main-1"}, RequestsPerMinute: 600, InputTokensPerMinute: 60_000})
	b.enqueue(100, "main")
	n := len(b.fetch(0, 50)) + len(b.fetch(1, 50))
	if least, most := 6, 20; n < least || n > most { // 2 % of a minute are saved up, and each replica may lease 0.5 %
		t.Fatalf("got %d jobs at once, want %d to %d", n, least, most)
	}
	b.due(3 * time.Second)
	j := b.fetch(0, 1)
	if len(j) != 1 {
		t.Fatalf("got %d jobs after 3 s, want 1", len(j))
	}
	out, err := b.routers[0].Ack(t.Context(), b.tenant, []api.JobAck{{ID: j[0].ID, LeaseEpoch: j[0].LeaseEpoch, Usage: []agent.Usage{{Provider: "main", Model: "main-1", InputTokens: 60_000}}}})
	if err != nil || !out[0].OK {
		t.Fatalf("Ack: got %+v and error %v, want success", out, err)
	}
	b.due(3 * time.Second)
	if got := b.fetch(1, 1); len(got) != 0 {
		t.Errorf("got %d jobs after the tokens of a minute were used, want 0", len(got))
	}
}

// TestStrategies: the targets of a route take turns, and each has its own weight and price.
func TestStrategies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.route("turns", ai.StrategyRoundRobin, "main", "spare")
	b.route("cheap", ai.StrategyLeastCost, "main", "spare")
	for name, price := range map[string]agent.USD{"main": 2 * agent.Dollar, "spare": agent.Dollar} {
		if err := b.broker.Prices().Put(t.Context(), b.tenant, agent.Price{Provider: name, Model: name + "-1", InputUSD: price, OutputUSD: price}); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
	for name, want := range map[string]string{"turns": "main/main-1 spare/spare-1 main/main-1 spare/spare-1", "cheap": "spare/spare-1 spare/spare-1 spare/spare-1 spare/spare-1"} {
		b.enqueue(4, name)
		if got := given(b.fetch(0, 4)); got != want {
			t.Errorf("%s: got the providers %q, want %q", name, got, want)
		}
	}
}

// TestUnknownProviders: a provider that does not exist is refused, and one that was deleted fails the
// attempt with its name.
func TestUnknownProviders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.routers[0].Check(t.Context(), b.tenant, "none"); api.ErrorCode(err) != api.CodeProviderNotFound {
		t.Errorf("Check: got error %v, want code %s", err, api.CodeProviderNotFound)
	}
	if err := b.routers[0].Check(t.Context(), b.tenant, "best"); err != nil {
		t.Errorf("Check: got error %v, want none", err)
	}
	b.enqueue(1, "none")
	if got := b.fetch(0, 1); len(got) != 0 {
		t.Fatalf("got %+v, want no job", got)
	}
	list, _, err := b.broker.List(t.Context(), queue.List{Tenant: b.tenant, Namespace: namespace, Queue: "agents", State: api.JobRetrying})
	if err != nil || len(list) != 1 {
		t.Fatalf("List: got %+v and error %v, want a job", list, err)
	}
	j, err := b.broker.Get(t.Context(), b.tenant, list[0].ID)
	if err != nil || len(j.Errors) != 1 || !strings.Contains(j.Errors[0].Error, `"none" does not exist`) {
		t.Errorf("Get: got errors %+v and error %v, want that the provider does not exist", j.Errors, err)
	}
}

// TestBadProviderErrors: a fail with a provider error that makes no sense is refused, and changes nothing.
func TestBadProviderErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(1, "main")
	j := b.fetch(0, 1)
	for name, e := range map[string]agent.ProviderError{
		"no provider": {Kind: agent.FailureError},
		"no kind":     {Provider: "main"},
		"negative":    {Provider: "main", Kind: agent.FailureError, RetryAfterMS: -1},
		"long":        {Provider: "main", Kind: agent.FailureError, RetryAfterMS: agent.MaxRetryAfterMS + 1},
	} {
		if out := b.fail(0, &j[0], e); out.OK || out.Code != api.CodeInvalid {
			t.Errorf("%s: got %+v, want code %s", name, out, api.CodeInvalid)
		}
	}
	if out := b.fail(0, &j[0], agent.ProviderError{Provider: "unknown", Kind: agent.FailureOverloaded}); !out.OK {
		t.Errorf("an unknown provider: got %+v, want success", out)
	}
	if got := fmt.Sprint(len(b.fetch(0, 1))); got != "0" {
		t.Errorf("got %s jobs before the backoff, want 0", got)
	}
}
