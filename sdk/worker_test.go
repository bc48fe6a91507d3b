package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage/storagetest"
)

// TestWorkers lets a worker of each language handle jobs of every kind over each transport, lose leases
// and its server, stop in the middle, and lose its key.
func TestWorkers(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		for _, transport := range []string{"stream", "http"} {
			t.Run(l.name+"/"+transport, func(t *testing.T) {
				t.Parallel()
				l.dir(t)
				s := newSite(t, l, transport)
				w := s.start()
				if transport == "stream" {
					w.await(t, "the stream is open", 1, named("connected"))
				}
				s.handles()
				s.cancels(w)
				s.losesLeases(w)
				s.losesServer(w)
				s.stops(w)
				s.losesKey()
			})
		}
	}
}

// site is a server with API keys, and a queue of orders.
type site struct {
	t         *testing.T
	language  *language
	transport string
	config    platformtest.Config
	server    *platformtest.Server
	key       api.NewKey // of the worker
}

func newSite(t *testing.T, l *language, transport string) *site {
	t.Helper()
	store := storagetest.Redis(t, "--appendonly", "yes")
	s := &site{t: t, language: l, transport: transport, config: platformtest.Config{Store: store.URL, Key: platformtest.Bootstrap(t, store.URL)}}
	s.server = s.config.Serve(t)
	made, err := s.tenant().CreateKey(t.Context(), client.NewKey{Name: "orders", Roles: []string{"worker"}, Namespace: platformtest.Namespace})
	if err != nil {
		t.Fatalf("CreateKey: %v", err)
	}
	s.key = made
	return s
}

// start starts a worker of the site.
func (s *site) start() *process {
	s.t.Helper()
	return s.language.start(s.t, s.server.URL, s.key.Secret, s.transport)
}

func (s *site) tenant() *client.Tenant { return s.server.API(s.t) }

func (s *site) namespace() *client.Namespace { return s.tenant().Namespace(platformtest.Namespace) }

// enqueue adds jobs to the queue of orders and returns their ids.
func (s *site) enqueue(jobs ...api.NewJob) []string {
	s.t.Helper()
	made, err := s.namespace().Queue("orders").Enqueue(s.t.Context(), "", jobs...)
	if err != nil {
		s.t.Fatalf("Enqueue: %v", err)
	}
	ids := make([]string, len(made))
	for i := range made {
		ids[i] = made[i].ID
	}
	return ids
}

// orders returns n jobs of a kind that takes ms milliseconds.
func orders(n int, kind string, ms int) []api.NewJob {
	jobs := make([]api.NewJob, n)
	for i := range jobs {
		jobs[i].Payload = fmt.Appendf(nil, `{"kind": %q, "ms": %d, "n": %d}`, kind, ms, i)
	}
	return jobs
}

func (s *site) job(id string) api.Job {
	s.t.Helper()
	job, err := s.tenant().Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatalf("Job: %v", err)
	}
	return job
}

// await waits until the job is in the state, and returns it.
func (s *site) await(id string, state api.JobState) (job api.Job) {
	s.t.Helper()
	platformtest.Eventually(s.t, patience, "the job ends", func() error {
		job = s.job(id)
		if job.State != state {
			return fmt.Errorf("job %s with payload %s: got state %s at attempt %d with errors %v, want %s", id, job.Payload, job.State, job.Attempt, job.Errors, state)
		}
		return nil
	})
	return job
}

// route makes a route to two providers of models, and returns its name.
func (s *site) route() string {
	s.t.Helper()
	route := ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback}
	for _, name := range []string{"main", "spare"} {
		route.Targets = append(route.Targets, ai.RouteTarget{Provider: name})
		provider := ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: "https://models.example/v1", Models: []string{"of-" + name}}
		if _, err := s.tenant().PutProvider(s.t.Context(), name, provider, 0); err != nil {
			s.t.Fatalf("PutProvider: %v", err)
		}
	}
	if _, err := s.tenant().PutProvider(s.t.Context(), "best", route, 0); err != nil {
		s.t.Fatalf("PutProvider: %v", err)
	}
	return "best"
}

// handles checks 200 jobs: most of them succeed at once, and the others in every way in which a handler
// can settle a job.
func (s *site) handles() {
	t := s.t
	zero := int64(0)
	dying := orders(1, "throws", 0)[0]
	dying.MaxAttempts, dying.BaseDelayMS = 2, &zero
	special := map[string]api.NewJob{"throws": dying}
	for _, kind := range []string{"slow", "flaky", "fatal", "checkpoint", "snooze", "continue", "hold", "enqueue"} {
		special[kind] = orders(1, kind, int(2*lease.Milliseconds()))[0]
	}
	provided := orders(1, "provider", 0)[0]
	provided.Routing = s.route()
	special["provider"] = provided
	ids := map[string]string{}
	for kind, job := range special {
		ids[kind] = s.enqueue(job)[0]
	}
	plain := s.enqueue(orders(200-len(special), "echo", 1)...)
	s.await(ids["hold"], api.JobHeld)
	if _, err := s.tenant().ApproveJob(t.Context(), ids["hold"]); err != nil {
		t.Fatalf("ApproveJob: %v", err)
	}
	for i, id := range plain {
		job := s.await(id, api.JobCompleted)
		if n := number(job.Result, "n"); n != i || job.Attempt != 1 {
			t.Errorf("job %d: got result %s at attempt %d, want its payload at attempt 1", i, job.Result, job.Attempt)
		}
	}
	for _, want := range []struct {
		kind, result string
		attempt      int
	}{
		{"slow", `{"slept":6000}`, 1}, // heartbeats kept its lease, which is shorter
		{"flaky", `{"attempt":2}`, 2},
		{"checkpoint", `{"page":7}`, 2},
		{"snooze", `{"attempt":1}`, 1},
		{"continue", `{"parts":2}`, 1},
		{"hold", `{"approved":true}`, 1},
		{"provider", `{"provider":"spare","model":"of-spare","attempt":1}`, 1},
	} {
		job := s.await(ids[want.kind], api.JobCompleted)
		if got := compact(job.Result); got != want.result || job.Attempt != want.attempt {
			t.Errorf("job %s: got result %s at attempt %d, want %s at attempt %d", want.kind, got, job.Attempt, want.result, want.attempt)
		}
	}
	if got, want := compact(s.job(ids["slow"]).Progress), `{"current":1,"total":2,"message":"half-way 😀"}`; got != want {
		t.Errorf("progress of the slow job: got %s, want %s", got, want)
	}
	dead := s.await(ids["throws"], api.JobDead)
	if dead.DeadReason != api.DeadAttempts || len(dead.Errors) != 2 || !strings.Contains(dead.Errors[1].Error, "always fails") || !strings.Contains(dead.Errors[1].Stack, "program.") {
		t.Errorf("job that throws: got dead reason %q, errors %+v; want %q and two errors with stacks", dead.DeadReason, dead.Errors, api.DeadAttempts)
	}
	fatal := s.await(ids["fatal"], api.JobDead)
	if fatal.DeadReason != api.DeadFatal || len(fatal.Errors) != 1 || fatal.Errors[0].Error != "no such address" {
		t.Errorf("fatal job: got dead reason %q, errors %+v; want %q and one error", fatal.DeadReason, fatal.Errors, api.DeadFatal)
	}
	s.enqueues(ids["enqueue"])
}

// enqueues checks the job that a handler has added with the client.
func (s *site) enqueues(id string) {
	var added struct{ ID string }
	job := s.await(id, api.JobCompleted)
	if err := json.Unmarshal(job.Result, &added); err != nil {
		s.t.Fatalf("Unmarshal: %v", err)
	}
	made := s.await(added.ID, api.JobCompleted)
	if made.UniqueKey != id || !cmp.Equal(made.Tags, map[string]string{"by": id}) {
		s.t.Errorf("job of the handler: got unique key %q, tags %v; want those of job %s", made.UniqueKey, made.Tags, id)
	}
}

// number returns a number of a JSON object, -1 for none.
func number(object json.RawMessage, name string) int {
	fields := map[string]any{}
	if json.Unmarshal(object, &fields) != nil {
		return -1
	}
	n, is := fields[name].(float64)
	if !is {
		return -1
	}
	return int(n)
}

// compact returns JSON without spaces.
func compact(raw json.RawMessage) string {
	return strings.ReplaceAll(strings.ReplaceAll(string(raw), ", ", ","), ": ", ":")
}

// cancels checks that the handler of a job that is cancelled is aborted.
func (s *site) cancels(w *process) {
	id := s.enqueue(orders(1, "slow", 600_000)...)[0]
	w.await(s.t, "the handler begins", 1, func(e event) bool { return e.Event == "started" && e.ID == id })
	if _, err := s.tenant().CancelJob(s.t.Context(), id); err != nil {
		s.t.Fatalf("CancelJob: %v", err)
	}
	w.await(s.t, "the handler is aborted", 1, func(e event) bool { return e.Event == "dropped" && e.ID == id && e.Reason == "cancelled" })
}

// losesLeases checks the concurrency of the worker, and that a worker that was frozen past its leases
// aborts its handlers, whose results do not count. The worker has as many jobs as it takes, so it does not
// get them again by a fetch that waits.
func (s *site) losesLeases(w *process) {
	t := s.t
	ids := s.enqueue(orders(2*workers, "slow", 600_000)...)
	mine := map[string]bool{}
	for _, id := range ids {
		mine[id] = true
		s.await(id, api.JobActive)
	}
	begun := func(e event) bool { return e.Event == "started" && mine[e.ID] }
	w.await(t, "handlers run", workers, begun)
	if got := w.count(begun); got != workers {
		t.Errorf("handlers that run: got %d, want %d", got, workers)
	}
	w.signal(t, syscall.SIGSTOP)
	var acks []api.JobAck
	platformtest.Eventually(t, patience, "another worker gets the jobs", func() error {
		jobs, err := s.namespace().FetchJobs(t.Context(), api.FetchRequest{
			Queues: []string{"orders"}, WorkerID: "other", Count: 2 * workers, WaitMS: 1000, LeaseMS: 600_000,
		})
		for i := range jobs {
			acks = append(acks, api.JobAck{ID: jobs[i].ID, LeaseEpoch: jobs[i].LeaseEpoch, Result: json.RawMessage(`"other"`)})
		}
		if err == nil && len(acks) < len(ids) {
			err = fmt.Errorf("got %d jobs, want %d", len(acks), len(ids))
		}
		return err
	})
	w.signal(t, syscall.SIGCONT)
	w.await(t, "the handlers are aborted", workers, func(e event) bool {
		return e.Event == "dropped" && mine[e.ID] && e.Reason == "lease lost"
	})
	outcomes, err := s.namespace().AckJobs(t.Context(), acks)
	if err != nil {
		t.Fatalf("AckJobs: %v", err)
	}
	for _, o := range outcomes {
		if got := s.job(o.ID); !o.OK || string(got.Result) != `"other"` {
			t.Errorf("job %s: got outcome %+v and result %s, want the result of the other worker", o.ID, o, got.Result)
		}
	}
	if got := w.count(begun); got != workers {
		t.Errorf("handlers that ran in the end: got %d, want %d, since leases of jobs in advance are lost, too", got, workers)
	}
}

// losesServer checks that the worker connects again to a server that was killed, and that all jobs end.
func (s *site) losesServer(w *process) {
	t := s.t
	ids := s.enqueue(orders(40, "echo", 200)...)
	s.await(ids[workers], api.JobCompleted)
	warnings, streams := w.count(named("warning")), w.count(named("connected"))
	if err := s.server.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	w.await(t, "the worker misses the server", warnings+1, named("warning"))
	again := s.config
	again.Listen = strings.TrimPrefix(s.server.URL, "http://")
	s.server = again.Serve(t)
	for _, id := range append(ids, s.enqueue(orders(1, "echo", 0)...)...) {
		s.await(id, api.JobCompleted)
	}
	if s.transport == "stream" {
		w.await(t, "there is a stream again", streams+1, named("connected"))
	}
}

// stops checks that a worker that is stopped finishes the jobs in progress and returns all others, and
// that the next worker handles them.
func (s *site) stops(w *process) {
	t := s.t
	ids := s.enqueue(orders(5*workers/2, "slow", 1500)...) // for three rounds of the handlers
	mine := map[string]bool{}
	for _, id := range ids {
		mine[id] = true
	}
	w.await(t, "handlers run", workers, func(e event) bool { return e.Event == "started" && mine[e.ID] })
	for _, id := range ids[:2*workers] {
		platformtest.Eventually(t, patience, "the worker has jobs in advance", func() error {
			if job := s.job(id); job.Attempt == 0 {
				return fmt.Errorf("job %s: got state %s at attempt 0, want attempt 1", id, job.State)
			}
			return nil
		})
	}
	w.signal(t, syscall.SIGTERM)
	if code := w.wait(t); code != 0 {
		t.Fatalf("exit code of the worker: got %d, want 0", code)
	}
	w.await(t, "the worker stops", 1, named("stopped"))
	states := map[string]int{}
	for _, id := range ids {
		job := s.job(id)
		switch {
		case job.State == api.JobCompleted && job.Attempt == 1:
			states["done"]++
		case (job.State == api.JobPending || job.State == api.JobRetrying) && job.Attempt == 0:
			states["left"]++
		default:
			t.Errorf("job %s after the stop: got state %s at attempt %d, want it completed, or not attempted", id, job.State, job.Attempt)
		}
	}
	if states["done"] < workers || states["left"] == 0 {
		t.Errorf("after the stop: got %v, want at least %d done and some left", states, workers)
	}
	if got := w.count(named("returned")); got == 0 {
		t.Errorf("jobs in advance that the worker returned: got %d, want some", got)
	}
	second := s.start()
	for _, id := range ids {
		s.await(id, api.JobCompleted)
	}
	second.signal(t, syscall.SIGTERM)
	if code := second.wait(t); code != 0 {
		t.Errorf("exit code of the second worker: got %d, want 0", code)
	}
}

// losesKey checks that a worker whose key is revoked aborts its handlers and ends with the reason.
func (s *site) losesKey() {
	t := s.t
	w := s.start()
	id := s.enqueue(orders(1, "slow", 600_000)...)[0]
	w.await(t, "the handler begins", 1, named("started"))
	if err := s.tenant().RevokeKey(t.Context(), s.key.ID); err != nil {
		t.Fatalf("RevokeKey: %v", err)
	}
	if code := w.wait(t); code != 1 {
		t.Errorf("exit code of the worker: got %d, want 1", code)
	}
	w.await(t, "the worker fails", 1, func(e event) bool {
		return e.Event == "failed" && e.ID == "" && strings.Contains(e.Text, string(api.CodeAuthnInvalid))
	})
	if job := s.job(id); job.State.Terminal() {
		t.Errorf("job %s: got state %s, want one that has not ended", id, job.State)
	}
}
