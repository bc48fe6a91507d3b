package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/mirror"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
)

// openMirror returns an empty mirror, and the change of a configuration that uses it.
func openMirror(t *testing.T) (*mirror.Mirror, func(*controlplane.Config)) {
	t.Helper()
	m, err := mirror.New(mirror.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	m.SetServing()
	return m, func(c *controlplane.Config) { c.Mirror = mirrorsearch.Of(m) }
}

// mirrorJobs writes jobs to a mirror.
func mirrorJobs(t *testing.T, m *mirror.Mirror, tenant string, jobs ...api.Job) {
	t.Helper()
	var batch mirror.Batch
	for i := range jobs {
		doc, err := api.EncodeJSON(&jobs[i])
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		batch.Jobs = append(batch.Jobs, mirror.Job{Tenant: tenant, ID: jobs[i].ID, Run: "1", View: &jobs[i], Doc: doc})
	}
	if _, err := m.Apply(t.Context(), &batch); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

// searchedJob is the n-th job of the tests of searches.
func searchedJob(n int, namespace string, state api.JobState) api.Job {
	job := api.Job{
		ID: fmt.Sprintf("0f9a1c52-6f5e-4b6b-9c7e-%012d", n), Namespace: namespace, Queue: "mail", State: state, CreatedAtMS: int64(1000 + n), StartedAtMS: int64(2000 + n),
		EndedAtMS: int64(3000 + n), Payload: []byte(`{"text":"hello world"}`), WorkerID: "w1",
		Errors: []api.JobError{{Attempt: 1, Error: "first"}, {Attempt: 2, Error: "connection refused", Stack: "at x"}}, Attempts: []api.JobAttempt{{Attempt: 1}},
	}
	job.Tags = map[string]string{"customer": fmt.Sprintf("c%d", n%2)}
	return job
}

// A search pages through the jobs of all queues, counts them, and refuses the cursor of another one.
func TestSearchJobs(t *testing.T) {
	t.Parallel()
	m, mirrored := openMirror(t)
	h := start(t, mirrored)
	for n := range 10 {
		mirrorJobs(t, m, h.tenant, searchedJob(n, "payments", api.JobDead))
	}
	mirrorJobs(t, m, h.tenant, searchedJob(10, "others", api.JobCompleted))
	path := h.at("T/jobs?state=dead,cancelled&tag.customer=c1&q=hello+world&worker=w1&error=REFUSED&limit=2&count=true")
	first := ok[search.Results[api.Job]](t, h.call(t, "GET", path, ""), 200)
	if len(first.Items) != 2 || first.NextCursor == nil || first.Mirror == nil || first.Count == nil || *first.Count != (search.MatchCount{Value: 5, Exact: true}) {
		t.Fatalf("got page %+v, want 2 of 5 jobs, a cursor and the state of the mirror", first)
	}
	var ids []string
	for page := first; ; {
		for _, job := range page.Items {
			ids = append(ids, job.ID[len(job.ID)-1:])
		}
		if page.NextCursor == nil {
			break
		}
		page = ok[search.Results[api.Job]](t, h.call(t, "GET", path+"&cursor="+*page.NextCursor, ""), 200)
	}
	if diff := cmp.Diff([]string{"9", "7", "5", "3", "1"}, ids); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	if job := first.Items[0]; len(job.Attempts) != 0 || len(job.Errors) != 1 || job.Errors[0].Error != "connection refused" || job.Errors[0].Stack != "" {
		t.Errorf("got job %+v, want it without attempts, and with its last error without a stack", job)
	}
	h.call(t, "GET", h.at("T/jobs?state=dead&cursor="+*first.NextCursor), "").refused(t, 400, api.CodeValidationCursor)
	sorted := ok[search.Results[api.Job]](t, h.call(t, "GET", h.at("T/jobs?sort=duration&order=asc&limit=1"), ""), 200)
	if len(sorted.Items) != 1 {
		t.Errorf("by duration: got %+v, want one job", sorted)
	}
}

func TestSearchRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	_, mirrored := openMirror(t)
	h := start(t, mirrored)
	for query, want := range map[string]struct {
		status int
		code   api.Code
	}{
		"state=done":                         {422, api.CodeInvalid},
		"stat=dead":                          {422, api.CodeInvalid},
		"sort=rank":                          {422, api.CodeInvalid},
		"limit=501":                          {422, api.CodeInvalid},
		"attempts=x":                         {422, api.CodeInvalid},
		"namespace=A%20B":                    {400, api.CodeValidationName},
		"cursor=x":                           {400, api.CodeValidationCursor},
		"q=%22open":                          {400, api.CodeSearchSyntax},
		"q=a+OR":                             {400, api.CodeSearchSyntax},
		"q=%27%3B--+OR+(":                    {400, api.CodeSearchSyntax},
		"q=tenant:x+NOT":                     {400, api.CodeSearchSyntax},
		"tag.=x":                             {422, api.CodeInvalid},
		"tag.a=x&tag.a=y":                    {422, api.CodeInvalid},
		"worker=" + strings.Repeat("w", 513): {422, api.CodeInvalid},
	} {
		h.call(t, "GET", h.at("T/jobs")+"?"+query, "").refused(t, want.status, want.code)
	}
	p := h.call(t, "GET", h.at("T/jobs?q=mail+(world"), "").refused(t, 400, api.CodeSearchSyntax)
	if len(p.Errors) != 1 || p.Errors[0].Path != "q" || p.Errors[0].Column != 6 || p.Errors[0].Excerpt != "mail (world\n     ^" {
		t.Errorf("got errors %+v, want the column of the parenthesis", p.Errors)
	}
	h.call(t, "GET", h.at("T/activations?q=(a"), "").refused(t, 400, api.CodeSearchSyntax)
}

// A key of one namespace finds only records of that, and a replica without a mirror has a code.
func TestSearchStaysInTheNamespace(t *testing.T) {
	t.Parallel()
	m, mirrored := openMirror(t)
	k := startKeyed(t, embedded(t), mirrored)
	ours, _ := k.key(t, api.RoleViewer, inNamespace("payments"))
	mirrorJobs(t, m, k.tenant, searchedJob(1, "payments", api.JobDead), searchedJob(2, "others", api.JobDead))
	for _, query := range []string{"", "?q=hello", "?state=dead", "?tag.customer=c0", "?sort=ended", "?q=hello&sort=rank", "?queue=mail"} {
		page := ok[search.Results[api.Job]](t, k.as(t, ours, "GET", k.at("T/jobs")+query, ""), 200)
		for _, job := range page.Items {
			if job.Namespace != "payments" {
				t.Errorf("%s: got job %+v of another namespace, want none", query, job)
			}
		}
	}
	k.as(t, ours, "GET", k.at("T/jobs?namespace=others"), "").refused(t, 403, api.CodeAuthzDenied)
	start(t).refusesSearch(t)
}

// refusesSearch checks that a server without a mirror refuses searches, and lists what the store can.
func (h *harness) refusesSearch(t *testing.T) {
	t.Helper()
	for _, path := range []string{"T/jobs", "T/activations?q=x", "T/activations?function=hello", "T/activations?sort=duration"} {
		h.call(t, "GET", h.at(path), "").refused(t, 503, api.CodeMirrorUnavailable)
	}
	ok[api.Page[api.Activation]](t, h.call(t, "GET", h.at("T/activations?status=error"), ""), 200)
}

// Lists of activations whose filters the store has no index for come from the mirror.
func TestSearchActivations(t *testing.T) {
	t.Parallel()
	m, mirrored := openMirror(t)
	h := start(t, mirrored)
	var batch mirror.Batch
	for n := range 6 {
		a := &api.Activation{
			ActivationID: fmt.Sprintf("0f9a1c52-6f5e-4b6b-9c7e-%012d", n), Tenant: h.tenant, Namespace: []string{"payments", "others"}[n%2], Function: "hello", Ref: api.Ref{Version: int64(1 + n/3)},
			Trigger: api.Trigger{Type: api.TriggerAPI}, Status: api.StatusError, StartMS: int64(1000 + n), EndMS: int64(2000 - n), DurationMS: int64(n), Result: []byte(`{"a":1}`),
			Error: &api.ActivationError{Type: api.ErrException, Message: "cannot read stock"},
		}
		doc, err := api.EncodeJSON(a)
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		batch.Activations = append(batch.Activations, mirror.Activation{Tenant: h.tenant, ID: a.ActivationID, View: a, Doc: doc})
	}
	if _, err := m.Apply(t.Context(), &batch); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	for query, want := range map[string]string{
		"function=hello": "543210",
		"function=hello&namespace=others&q=stock":    "531",
		"q=stock&status=error&sort=ended":            "012345",
		"version=2":                                  "543",
		"error=READ%20stock&error_type=Exception":    "543210",
		"q=error:stock&sort=duration&order=asc":      "012345",
		"ended_from_ms=1997&from_ms=1001&count=true": "321",
		"min_duration_ms=4":                          "54",
		"q=nothing":                                  "",
		"q=stock&sort=rank&trigger=http":             "",
		"q=stock&id=000000000003":                    "3",
		"q=stock&status=error&namespace=payments":    "420",
		"job=0f9a1c52-6f5e-4b6b-9c7e-000000000003":   "",
		"request_id=req_01K5XJ8Z6T9Q4W1M3N7R2V0YBD":  "",
		"function=other&sort=created":                "",
	} {
		page := ok[search.Results[api.Activation]](t, h.call(t, "GET", h.at("T/activations")+"?"+query, ""), 200)
		got := ""
		for _, a := range page.Items {
			got += a.ActivationID[len(a.ActivationID)-1:]
			if a.Result != nil {
				t.Errorf("%s: got result %s in a list, want none", query, a.Result)
			}
		}
		if got != want || page.Mirror == nil {
			t.Errorf("%s: got %q and mirror %+v, want %q and the state of the mirror", query, got, page.Mirror, want)
		}
	}
}
