package platformtest_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/budget"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/api/worker/stream"
	"github.com/codesous/sous/cadenceworker/cadencetest"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/metrics/metricstest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// steady are the metrics that no work moves, and what they must be.
var steady = map[string]func(float64) bool{
	"sous_build_info":                          func(v float64) bool { return v == 1 },
	"sous_sandbox_memory_budget_bytes":         func(v float64) bool { return v >= 256<<20 },
	"sous_sandbox_processes_max":               func(v float64) bool { return v == fewSandboxes },
	"sous_http_working_requests":               func(v float64) bool { return v >= 0 && v < 100 }, // moves for moments only
	"sous_http_working_requests_max":           func(v float64) bool { return v >= 16 },           // falls under overload only
	"sous_http_held_bytes":                     func(v float64) bool { return v >= 0 },
	"sous_http_held_bytes_max":                 func(v float64) bool { return v >= 64<<20 },
	"sous_http_refused_total":                  func(v float64) bool { return v >= 0 }, // needs an attack: TestNeighbours…
	"sous_http_connections_max":                func(v float64) bool { return v == fewConnections },
	"sous_store_connection_wait_seconds_total": func(v float64) bool { return v >= 0 }, // needs more concurrent calls than the pool has connections
	"sous_secret_audit_lost_total":             func(v float64) bool { return v == 0 }, // needs a store that is away when the server ends
	"sous_log_wait_seconds_total":              func(v float64) bool { return v >= 0 }, // needs an attack: TestNeighboursRedaction
	"sous_sandbox_priority_changes_total":      func(v float64) bool { return v >= 0 }, // needs more busy sandboxes than processors
	"sous_store_commit_queued":                 func(v float64) bool { return v >= 0 && v < 1000 },
	"sous_store_clock_skew_seconds":            func(v float64) bool { return v > -1 && v < 1 },  // its store has this machine's clock
	"sous_worker_streams":                      func(v float64) bool { return v >= 0 && v < 10 }, // its stream has ended
	"sous_mirror_state":                        func(v float64) bool { return v == 0 || v == 1 },
	"sous_mirror_lag_seconds":                  func(v float64) bool { return v >= 0 && v < 60 },
	"sous_mirror_rebuild_progress":             func(v float64) bool { return v >= 0 && v <= 1 }, // its rebuild ends before the first scrape
	"sous_mirror_gaps_total":                   func(v float64) bool { return v >= 0 },           // needs a log that is trimmed between two reads
	"sous_store_commit_lag_seconds":            func(v float64) bool { return v >= 0 && v < 10 },
}

const (
	fewConnections = 32
	fewSandboxes   = 2
)

// documentedMetric is a row of docs/metrics.md.
type documentedMetric struct {
	kind   string
	labels []string
}

func documentedMetrics(t *testing.T) map[string]documentedMetric {
	t.Helper()
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	found := map[string]documentedMetric{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(sous_\\w+)` \\| (\\w+) \\| ([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		found[row[1]] = documentedMetric{row[2], labels}
	}
	return found
}

type families map[string]*dto.MetricFamily

// scrape reads what a server exports on the address that its log names.
func scrape(t *testing.T, output string) families {
	t.Helper()
	at := regexp.MustCompile(`answering operators.*"address": ?"([^"]+)"`).FindStringSubmatch(output)
	if at == nil {
		t.Fatal("no log line has the admin address")
	}
	resp, err := http.Get("http://" + at[1] + "/metrics")
	if err != nil {
		t.Fatalf("http.Get: %v", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics = %s, want 200", resp.Status)
	}
	out := families{}
	decoder := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header))
	for {
		var family dto.MetricFamily
		if err := decoder.Decode(&family); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("http.Get: %v", err)
		}
		out[family.GetName()] = &family
	}
}

// values of each series: a counter's or gauge's, a histogram's observations.
func (f families) values(name string) map[string]float64 {
	out := map[string]float64{}
	for _, m := range f[name].GetMetric() {
		out[fmt.Sprint(m.GetLabel())] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return out
}

// Every metric of docs/metrics.md is exported, with its type and labels, and moves
// when what it counts happens: some series of it has another value in one scrape
// than in another. Nothing is exported that is not documented.
func TestMetricsAreDocumentedAndMove(t *testing.T) {
	t.Parallel()
	store := storagetest.Redis(t, "--appendonly", "yes")
	abandon(t, store.URL)
	config := platformtest.Config{
		Store: store.URL, Key: platformtest.Bootstrap(t, store.URL),
		Args: []string{"--admin-listen", "127.0.0.1:0", "--sandbox-max", fmt.Sprint(fewSandboxes), "--max-connections", fmt.Sprint(fewConnections), "--secrets-key-file", secretsKey(t)},
	}
	takes := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // as a collector
	t.Cleanup(takes.Close)
	config.Args = append(config.Args, "--trace-endpoint", takes.URL, "--egress-allow", "127.0.0.1/32", "--roles", "api,invoker,scheduler,cadence,mirror")
	w := &work{t: t, store: store, upstream: takes.URL}
	if !testing.Short() {
		w.cadence = cadencetest.Start(t)
		config.Args = append(config.Args, "--cadence-addr", w.cadence.GRPCAddr)
	}
	server := config.Serve(t)
	w.server = server
	scrapes := []families{scrape(t, server.Output())}
	for _, step := range []func(){w.ordinary, w.secrets, w.webhooks, w.jobs, w.bulk, w.tasks, w.quotas, w.schedules, w.activities, w.crowd, w.deaths, w.outage} {
		step()
		scrapes = append(scrapes, w.during...)
		w.during = nil
		scrapes = append(scrapes, scrape(t, server.Output()))
	}
	last := scrapes[len(scrapes)-1]
	for name, doc := range documentedMetrics(t) {
		if w.cadence == nil && strings.HasPrefix(name, "sous_cadence_") {
			continue
		}
		if last[name] == nil {
			t.Errorf("got no metric %s, want it exported as documented", name)
			continue
		}
		if kind := strings.ToLower(last[name].GetType().String()); kind != doc.kind {
			t.Errorf("metric %s is a %s, want the documented %s", name, kind, doc.kind)
		}
		for _, m := range last[name].GetMetric() {
			labels := []string{}
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			if !slices.Equal(labels, doc.labels) {
				t.Errorf("metric %s has labels %v, want the documented %v", name, labels, doc.labels)
				break
			}
		}
		checkMoves(t, name, scrapes)
	}
	for name := range last {
		if _, ok := documentedMetrics(t)[name]; strings.HasPrefix(name, "sous_") && !ok {
			t.Errorf("got metric %s, want it documented", name)
		}
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total"} {
		if last[name] == nil {
			t.Errorf("metric %s is not exported, want a sample", name)
		}
	}
	w.check(scrapes)
}

func checkMoves(t *testing.T, name string, scrapes []families) {
	t.Helper()
	if sensible, ok := steady[name]; ok {
		for series, v := range scrapes[len(scrapes)-1].values(name) {
			if !sensible(v) {
				t.Errorf("%s%s = %g, want a value that fits its kind", name, series, v)
			}
		}
		return
	}
	first := scrapes[0].values(name)
	for _, s := range scrapes[1:] {
		for series, v := range s.values(name) {
			if v != first[series] {
				return
			}
		}
	}
	t.Errorf("%s stays at %v, want it to change", name, first)
}

// The loops of the embedded store run under sous dev. The ticker's loop runs even if no
// tenant has a schedule.
func TestEmbeddedLoopsAreExported(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t, "--admin-listen", "127.0.0.1:0")
	platformtest.Eventually(t, 20*time.Second, "the loops make rounds", func() error {
		found := scrape(t, server.Output())
		for _, loop := range []string{"store_snapshot", "store_expiry", "ticker"} {
			if metricstest.Sum(found["sous_loop_rounds_total"], "loop="+loop, "outcome=ok") == 0 {
				return errors.New(loop + " does not")
			}
			if lag := metricstest.Sum(found["sous_loop_lag_seconds"], "loop="+loop); lag > 20 {
				return fmt.Errorf("%s is %g s behind", loop, lag)
			}
		}
		return nil
	})
}

// abandon leaves an activation as a replica that died an hour ago did, and a document that
// expired then.
func abandon(t *testing.T, url string) {
	t.Helper()
	s := storagetest.Open(t, storage.Config{URL: url})
	began := time.Now().Add(-time.Hour).UnixMilli()
	_, err := storage.NewFunctions(s).Create(t.Context(), api.Function{
		Tenant: platformtest.Tenant, Namespace: platformtest.Namespace, Name: "abandoned", Runtime: api.RuntimeJS, CreatedAtMS: began,
	})
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	_, _, err = activations.New(s).Start(t.Context(), &activations.Record{Activation: api.Activation{
		ActivationID: uuid.NewString(), Tenant: platformtest.Tenant, Namespace: platformtest.Namespace, Function: "abandoned",
		Status: api.StatusRunning, StartMS: began, DeadlineMS: began + 3000, Attempt: 1,
	}})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	_, err = documents.NewRepository(s).Write(t.Context(),
		storage.DocumentPath{Tenant: platformtest.Tenant, Install: "abandoned", Namespace: "settings"},
		[]documents.Step{{Op: api.DocumentStepPut, Key: "expired", Value: []byte(`1`), ExpiresAtMS: began + 1}},
		documents.Quota{}, "", began)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
}

// work moves the metrics.
type work struct {
	upstream string // the URL of a server that answers
	t        *testing.T
	server   *platformtest.Server
	store    *storagetest.Server
	during   []families // scrapes taken while a step was at work

	cadence *cadencetest.Server // nil under -short
}

func (w *work) call(ctx context.Context, name string, headers ...string) int {
	w.t.Helper()
	h := map[string]string{}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	if _, ok := h["Authorization"]; !ok {
		h["Authorization"] = "Bearer " + w.server.Key()
	}
	answer, err := w.server.Web(ctx, name, h)
	if err != nil && ctx.Err() == nil {
		w.t.Errorf("call %s: %v", name, err)
	}
	return answer.Status
}

// want calls a function and demands the status.
func (w *work) want(status int, name string, headers ...string) {
	w.t.Helper()
	if got := w.call(w.t.Context(), name, headers...); got != status {
		w.t.Errorf("%s answers %d, want %d", name, got, status)
	}
}

// ordinary is a day's work: publishes, calls that end in every way, keys that are
// none, repeats.
func (w *work) ordinary() {
	for name, body := range map[string]string{
		"good": `return "ok"`, "fail": `throw new Error("no")`, "spin": `for (;;);`,
		"wait": `return new Promise((r) => setTimeout(() => r("ok"), 900))`,
	} {
		w.server.Publish(w.t, name, `{"timeout_ms": 1000}`, map[string]string{"function.js": "export default () => { " + body + " };"})
	}
	w.models()
	w.server.Publish(w.t, "public", `{"authz": {"invoke_http_roles": ["*"]}}`, map[string]string{"function.js": `export default () => "hi";`})
	w.server.Publish(w.t, "fetch", `{"capabilities": {"http": {"allowHosts": ["`+strings.TrimPrefix(w.upstream, "http://")+`"]}}}`,
		map[string]string{"function.js": `export default async () => await (await fetch("` + w.upstream + `")).text();`})
	w.want(http.StatusOK, "good")
	w.want(http.StatusOK, "good")
	w.want(http.StatusOK, "fetch")
	for i := range 12 { // more than the audit keeps one by one
		if _, err := w.server.API(w.t).Namespace(platformtest.Namespace).CreateFunction(w.t.Context(), client.NewFunction{Name: "no name"}); err == nil {
			w.t.Errorf("function %d without a valid name: got no error, want a refusal", i)
		}
	}
	w.want(http.StatusBadGateway, "fail")
	w.want(http.StatusGatewayTimeout, "spin")
	w.want(http.StatusNotFound, "none")
	w.want(http.StatusOK, "public", "Authorization", "")
	w.want(http.StatusUnauthorized, "good", "Authorization", "")
	if _, err := w.server.API(w.t).Install("crm").PutDocument(w.t.Context(),
		api.DocumentPut{Namespace: "settings", DocumentItem: api.DocumentItem{Key: "a", Value: []byte(`1`)}}); err != nil {
		w.t.Fatalf("PutDocument: %v", err)
	}
	for range 2 {
		w.want(http.StatusUnauthorized, "good", "Authorization", "Bearer nonsense")
		w.want(http.StatusOK, "good", "Idempotency-Key", "k")
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 600*time.Millisecond)
	defer cancel()
	w.call(ctx, "wait") // the caller goes away
	w.later("fail")
	w.later("wait")
	platformtest.Eventually(w.t, 20*time.Second, "it runs asynchronously", func() error {
		now := scrape(w.t, w.server.Output())
		if metricstest.Sum(now["sous_async_in_hand"]) == 0 {
			return errors.New("it does not")
		}
		w.during = append(w.during, now)
		return nil
	})
	platformtest.Eventually(w.t, 20*time.Second, "the sweeper has found what was left behind", func() error {
		now := scrape(w.t, w.server.Output())
		if metricstest.Sum(now["sous_sweeper_repairs_total"], "kind=lost") == 0 || metricstest.Sum(now["sous_sweeper_documents_expired_total"]) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
}

// quotas uses up a limit of another tenant.
func (w *work) quotas() {
	tenant, ctx := w.server.APIOf(w.t, "t_limited"), w.t.Context()
	if _, err := tenant.SetLimits(ctx, quota.TenantLimits{Batches: 1}); err != nil {
		w.t.Fatalf("SetLimits: %v", err)
	}
	for _, want := range []api.Code{"", api.CodeTenantQuota} {
		if _, err := tenant.Namespace("default").CreateBatch(ctx, nil); api.ErrorCode(err) != want {
			w.t.Errorf("CreateBatch: got error %v, want code %q", err, want)
		}
	}
}

// tasks claims a task with a worker that stops reporting, and waits until the sweeper
// publishes the task again.
func (w *work) tasks() {
	tenant, ctx := w.server.API(w.t), w.t.Context()
	if _, _, err := tenant.CreateTask(ctx, "email-send", "t1", api.NewTask{}); err != nil {
		w.t.Fatalf("CreateTask: %v", err)
	}
	if _, err := tenant.ClaimTask(ctx, "email-send", "t1", api.TaskClaim{Worker: "w1", TimeoutMS: api.MinTaskTimeoutMS}); err != nil {
		w.t.Fatalf("ClaimTask: %v", err)
	}
	platformtest.Eventually(w.t, 2*api.TaskSweepIntervalMS*time.Millisecond, "the task is given back", func() error {
		task, err := tenant.Task(ctx, "email-send", "t1")
		if err == nil && task.Republished == 0 {
			err = fmt.Errorf("it is %s", task.State)
		}
		return err
	})
}

// schedules lets a schedule tick, and pass over the tick after.
func (w *work) schedules() {
	_, err := w.server.API(w.t).Namespace(platformtest.Namespace).CreateSchedule(w.t.Context(), api.NewSchedule{
		Name: "every-second", EverySeconds: 1, Queue: &api.ScheduleQueue{Name: "ticks"},
	})
	if err != nil {
		w.t.Fatalf("CreateSchedule: %v", err)
	}
	platformtest.Eventually(w.t, 20*time.Second, "it ticks", func() error {
		ticks := scrape(w.t, w.server.Output())["sous_schedule_ticks_total"]
		if metricstest.Sum(ticks, "outcome=fired") != 1 || metricstest.Sum(ticks, "outcome=skipped") == 0 {
			return fmt.Errorf("%v", ticks)
		}
		return nil
	})
}

// jobs takes jobs through a queue: one is completed, one fails, one's worker dies
// and then acknowledges too late, one waits.
func (w *work) jobs() {
	ns := w.server.API(w.t).Namespace(platformtest.Namespace)
	ctx := w.t.Context()
	must := func(err error) {
		if err != nil {
			w.t.Helper()
			w.t.Fatalf("prepare the platform: %v", err)
		}
	}
	_, err := ns.Queue("mails").Enqueue(ctx, "", make([]api.NewJob, 4)...)
	must(err)
	source, err := stream.New(stream.Config{
		URL: w.server.URL, Key: w.server.Key(), Tenant: platformtest.Tenant, Namespace: platformtest.Namespace, Fallback: ns, OnError: func(err error) { w.t.Errorf("OnError: got error %v, want no call", err) },
	})
	must(err)
	got, err := source.FetchJobs(ctx, api.FetchRequest{Queues: []string{"mails"}, WorkerID: "w1", Count: 3, LeaseMS: api.MinLeaseMS})
	must(err)
	source.Close()
	if len(got) != 3 {
		w.t.Fatalf("fetch from queue mails: got %d jobs, want 3", len(got))
	}
	cost := agent.Dollar / 100
	_, err = w.server.API(w.t).PutBudget(ctx, "mails", budget.Settings{Scope: budget.ScopeQueue, Target: platformtest.Namespace + "/mails", DailyUSD: &cost, OnExceed: budget.OnExceedReject}, 0)
	must(err)
	_, err = ns.AckJobs(ctx, []api.JobAck{{ID: got[0].ID, LeaseEpoch: got[0].LeaseEpoch, Usage: []agent.Usage{
		{Seq: 1, Model: "m", InputTokens: 100, OutputTokens: 10, CacheCreationTokens: 5, CacheReadTokens: 50, CostUSD: &cost},
	}}})
	must(err)
	if _, err := ns.Queue("mails").Enqueue(ctx, "", api.NewJob{}); api.ErrorCode(err) != api.CodeBudgetExceeded {
		w.t.Fatalf("Enqueue beyond the budget: got error %v, want CodeBudgetExceeded", err)
	}
	must(w.server.API(w.t).DeleteBudget(ctx, "mails", 0))
	_, err = ns.FailJobs(ctx, []api.JobFail{{ID: got[1].ID, LeaseEpoch: got[1].LeaseEpoch, Error: "no"}})
	must(err)
	platformtest.Eventually(w.t, 20*time.Second, "the lease runs out", func() error {
		j, err := w.server.API(w.t).Job(ctx, got[2].ID)
		if err == nil && j.State != api.JobPending {
			err = fmt.Errorf("the job is %s", j.State)
		}
		return err
	})
	if out, err := ns.AckJobs(ctx, []api.JobAck{{ID: got[2].ID, LeaseEpoch: got[2].LeaseEpoch}}); err != nil || out[0].OK {
		w.t.Fatalf("AckJobs of a reclaimed lease = %+v, %v, want a refusal", out, err)
	}
}

// later calls a function asynchronously.
func (w *work) later(name string) {
	w.t.Helper()
	fn := w.server.API(w.t).Namespace(platformtest.Namespace).Function(name)
	if _, err := fn.Enqueue(w.t.Context(), client.InvokeOptions{Ref: api.Ref{Alias: "prod"}}); err != nil {
		w.t.Errorf("Enqueue: %v", err)
	}
}

// models calls a model.
func (w *work) models() {
	w.t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"model": "m", "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}`))
	}))
	w.t.Cleanup(model.Close)
	settings := ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: model.URL, Models: []string{"m"}}
	if _, err := w.server.API(w.t).PutProvider(w.t.Context(), "main", settings, 0); err != nil {
		w.t.Fatalf("PutProvider: %v", err)
	}
	w.server.Publish(w.t, "ask", `{"capabilities": {"ai": {"providers": ["main"]}}}`,
		map[string]string{"function.js": `export default async () => (await cs.ai.chat({ messages: [{ role: "user", content: "x" }] })).text;`})
	w.want(http.StatusOK, "ask")
}

// crowd sends more concurrent calls than the limits allow.
func (w *work) crowd() {
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { w.call(w.t.Context(), "wait") })
	}
	platformtest.Eventually(w.t, 10*time.Second, "some wait for a sandbox", func() error {
		now := scrape(w.t, w.server.Output())
		if metricstest.Sum(now["sous_sandbox_waiters"]) == 0 || metricstest.Sum(now["sous_sandbox_processes"], "state=busy") == 0 {
			return errors.New("none does")
		}
		w.during = append(w.during, now)
		return nil
	})
	calls.Wait()
	http.DefaultClient.CloseIdleConnections()
	for range fewConnections + 8 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.server.URL, "http://"))
		if err != nil {
			w.t.Fatalf("net.Dial: %v", err)
		}
		defer conn.Close()
	}
	platformtest.Eventually(w.t, 10*time.Second, "connections are closed for others", func() error {
		if metricstest.Sum(scrape(w.t, w.server.Output())["sous_http_connections_hung_up_total"]) == 0 {
			return errors.New("none is")
		}
		return nil
	})
}

// deaths are those of the nursery and of the store's connections.
func (w *work) deaths() {
	for _, pid := range w.server.Sandboxes(w.t) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "nursery") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				w.t.Fatalf("Kill: %v", err)
			}
		}
	}
	w.redis("CLIENT KILL TYPE normal")
	w.redis("CLIENT KILL TYPE pubsub")
	platformtest.Eventually(w.t, 20*time.Second, "calls succeed", func() error {
		if status := w.call(w.t.Context(), "fail"); status != http.StatusBadGateway {
			return fmt.Errorf("it answers %d", status)
		}
		return nil
	})
	w.want(http.StatusOK, "good") // in a new sandbox or one that replaces another
	w.want(http.StatusOK, "public", "Authorization", "")
}

// outage stops the store while an activation runs, until the replica abandons the write
// of its record, and starts the store again.
func (w *work) outage() {
	var calls sync.WaitGroup
	calls.Go(func() {
		if status := w.call(w.t.Context(), "wait"); status != http.StatusServiceUnavailable {
			w.t.Errorf("call without a store = %d, want 503", status)
		}
	})
	platformtest.Eventually(w.t, 10*time.Second, "it runs", func() error {
		if metricstest.Sum(scrape(w.t, w.server.Output())["sous_sandbox_processes"], "state=busy") == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	w.store.Stop(w.t)
	calls.Wait()
	platformtest.Eventually(w.t, 10*time.Second, "its record is late", func() error {
		now := scrape(w.t, w.server.Output())
		if metricstest.Sum(now["sous_records_late"]) == 0 || metricstest.Sum(now["sous_records_lag_seconds"]) == 0 {
			return errors.New("it is not")
		}
		w.during = append(w.during, now)
		return nil
	})
	platformtest.Eventually(w.t, 30*time.Second, "it is given up", func() error {
		if metricstest.Sum(scrape(w.t, w.server.Output())["sous_records_lost_total"]) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	w.store.Start(w.t)
	platformtest.Eventually(w.t, 20*time.Second, "service resumes", func() error {
		if status := w.call(w.t.Context(), "good"); status != http.StatusOK {
			return fmt.Errorf("it answers %d", status)
		}
		return nil
	})
}

// redis sends a command to the store.
func (w *work) redis(command string) {
	w.t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", w.store.Port))
	if err != nil {
		w.t.Fatalf("net.Dial: %v", err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s SKIPME yes\r\n", command); err != nil {
		w.t.Fatalf("Fprintf: %v", err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(answer, ":") {
		w.t.Fatalf("command %s: got answer %q and error %v, want an answer that starts with a colon (an integer)", command, answer, err)
	}
}

// expected is a series that the work was for, and the least that it must be.
type expected struct {
	metric string
	labels []string
	least  float64
}

// check demands the series that the work was for.
func (w *work) check(scrapes []families) {
	w.t.Helper()
	for _, want := range append(w.activitySeries(), []expected{
		{"sous_invocations_total", []string{"function=good", "status=success", "trigger=http", "version=1", "tenant=" + platformtest.Tenant}, 4},
		{"sous_invocations_total", []string{"function=fail", "status=error"}, 1},
		{"sous_invocations_total", []string{"function=spin", "status=timeout"}, 1},
		{"sous_invocations_total", []string{"function=wait", "status=cancelled"}, 1},
		{"sous_invocations_replayed_total", nil, 1},
		{"sous_invocations_refused_total", []string{"function=wait", "code=" + string(api.CodeCapacityLimit)}, 1},
		{"sous_authentications_total", []string{"result=ok"}, 1},
		{"sous_authentications_total", []string{"result=missing"}, 1},
		{"sous_authentications_total", []string{"result=invalid"}, 2},
		{"sous_authentications_total", []string{"result=public"}, 1},
		{"sous_sandbox_ends_total", []string{"reason=cancelled"}, 1},
		{"sous_sandbox_ends_total", []string{"reason=timeout"}, 1},
		{"sous_sandbox_ends_total", []string{"reason=evicted"}, 1},
		{"sous_sandbox_ends_total", []string{"reason=checked"}, 5},
		{"sous_sandbox_nursery_starts_total", nil, 2},
		{"sous_store_calls_total", []string{"command=publish.lua", "outcome=ok"}, 5},
		{"sous_store_calls_total", []string{"command=pipeline", "outcome=unavailable"}, 1},
		{"sous_store_changes_received_total", []string{"kind=resubscribed"}, 1},
		{"sous_http_requests_total", []string{"route=/v1/web", "method=GET", "code=401"}, 3},
		{"sous_async_attempts_total", []string{"outcome=retried"}, 1},
		{"sous_async_attempts_total", []string{"outcome=ended"}, 1},
		{"sous_secret_resolves_total", []string{"outcome=ok"}, 1},
		{"sous_secret_openings_total", []string{"outcome=ok"}, 1},
		{"sous_loop_rounds_total", []string{"loop=dispatcher", "outcome=ok"}, 1},
		{"sous_loop_rounds_total", []string{"loop=sweeper", "outcome=error"}, 1},
		{"sous_loop_rounds_total", []string{"loop=sandbox_keeper", "outcome=ok"}, 1},
		{"sous_loop_rounds_total", []string{"loop=tasks", "outcome=ok"}, 1},
		{"sous_loop_rounds_total", []string{"loop=store_clock", "outcome=ok"}, 1},
		{"sous_sweeper_task_repairs_total", []string{"kind=republished"}, 1},
	}...) {
		last := scrapes[len(scrapes)-1]
		if got := metricstest.Sum(last[want.metric], want.labels...); got < want.least {
			w.t.Errorf("%s%v is %g, want at least %g; there is\n%v", want.metric, want.labels, got, want.least,
				cmp.Or(fmt.Sprint(last.values(want.metric)), "nothing"))
		}
	}
}
