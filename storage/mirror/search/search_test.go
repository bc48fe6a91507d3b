package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/mirror"
)

var (
	someQueues  = []string{"mail", "reports", "fn.hello"}
	someWords   = []string{"alpha", "beta", "gamma", "delta"}
	someErrors  = []string{"", "connection refused", "100% wrong_name", "Not Found"}
	someTenants = []string{testTenant, testTenant, testTenant, "t_other2"}
)

// drawJob draws the n-th job of a test. Few values make filters that match several jobs.
func drawJob(t *rapid.T, n int) (tenant string, job api.Job) {
	pick := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	ms := func(label string) int64 { return rapid.Int64Range(0, 20).Draw(t, label) }
	job = api.Job{
		ID: jobID(n), Namespace: pick("namespace", "shop", "crm"), Queue: pick("queue", someQueues...),
		State: rapid.SampledFrom(api.JobStates()).Draw(t, "state"), Attempt: rapid.IntRange(0, 3).Draw(t, "attempt"),
		WorkerID: pick("worker", "", "w1", "w2"), Host: pick("host", "", "h1"), CreatedAtMS: 1 + ms("created"), StartedAtMS: ms("started"), DueAtMS: ms("due"), EndedAtMS: ms("ended"),
		ChainID: pick("chain", "", "c1"), ParentID: pick("parent", "", "p1"), DeadReason: pick("reason", "", api.DeadFatal), StateSinceMS: 1,
		Payload: json.RawMessage(fmt.Sprintf(`{"text":"%s %s"}`, pick("word", someWords...), pick("word", someWords...))),
	}
	job.Priority = rapid.SampledFrom(api.Priorities()).Draw(t, "priority")
	job.BatchID, job.UniqueKey = pick("batch", "", "b1"), pick("unique", "", "u1")
	if v := pick("tag", "", "x", "y"); v != "" {
		job.Tags = map[string]string{"kind": v}
	}
	if text := pick("error", someErrors...); text != "" {
		job.Errors = []api.JobError{{Attempt: 1, Error: text}}
	}
	return pick("tenant", someTenants...), job
}

// drawQuery draws a query with few filters.
func drawQuery(t *rapid.T) search.Jobs {
	var q search.Jobs
	ms := func(label string) search.Range {
		return search.Range{FromMS: rapid.Int64Range(0, 20).Draw(t, label), ToMS: rapid.Int64Range(0, 21).Draw(t, label)}
	}
	for range rapid.IntRange(0, 3).Draw(t, "filters") {
		switch rapid.IntRange(0, 17).Draw(t, "filter") {
		case 0:
			q.Namespace = "shop"
		case 1:
			q.States = rapid.SliceOfN(rapid.SampledFrom(api.JobStates()), 1, 3).Draw(t, "states")
		case 2:
			q.Queues = rapid.SliceOfN(rapid.SampledFrom(someQueues), 1, 3).Draw(t, "queues")
		case 3:
			q.Tags = []search.Tag{{Key: "kind", Value: "x"}}
		case 4:
			q.Created = ms("created")
		case 5:
			q.Started = ms("started")
		case 6:
			q.Ended = ms("ended")
		case 7:
			q.Due = ms("due")
		case 8:
			q.Error = rapid.SampledFrom([]string{"refused", "100%", "g_n", "not f", "%"}).Draw(t, "text")
		case 9:
			q.Worker = "w1"
		case 10:
			q.Host = "h1"
		case 11:
			q.Batch = "b1"
		case 12:
			q.Chain, q.Parent = "c1", "p1"
		case 13:
			q.Function = "hello"
		case 14:
			q.UniqueKey = "u1"
		case 15:
			q.DeadReason, q.Attempts = api.DeadFatal, 2
		case 16:
			q.Priorities = rapid.SliceOfN(rapid.SampledFrom(api.Priorities()), 1, 2).Draw(t, "priorities")
		case 17:
			q.Words = rapid.SampledFrom([]string{"alpha", "alpha beta", `"alpha beta"`, "alp*", "alpha OR gamma", "alpha NOT beta", "error:refused", "acme01"}).Draw(t, "words")
		}
	}
	q.Sort = rapid.SampledFrom([]string{"", search.SortCreated, search.SortStarted, search.SortEnded, search.SortDue, search.SortDuration}).Draw(t, "sort")
	q.Ascending = rapid.Bool().Draw(t, "ascending")
	q.Count = true
	return q
}

// wordsMatch is the meaning of the full-text queries of drawQuery.
func wordsMatch(words string, job *api.Job) bool {
	text := string(job.Payload)
	has := func(word string) bool { return strings.Contains(text, word) }
	switch words {
	case "", "alpha", "alp*":
		return words == "" || has("alpha")
	case "alpha beta":
		return has("alpha") && has("beta")
	case `"alpha beta"`:
		return has("alpha beta")
	case "alpha OR gamma":
		return has("alpha") || has("gamma")
	case "alpha NOT beta":
		return has("alpha") && !has("beta")
	case "error:refused":
		return strings.Contains(lastError(job), "refused")
	}
	return false // the word of the tenant is no word of a job
}

// matches is the meaning of a query.
func matches(q *search.Jobs, job *api.Job) bool {
	within := func(ms int64, r search.Range) bool {
		return r.Empty() || ms > 0 && ms >= r.FromMS && (r.ToMS == 0 || ms < r.ToMS)
	}
	same := func(filter, value string) bool { return filter == "" || filter == value }
	function, _ := strings.CutPrefix(job.Queue, "fn.")
	return same(q.Namespace, job.Namespace) && same(q.Worker, job.WorkerID) && same(q.Host, job.Host) && same(q.Batch, job.BatchID) &&
		same(q.Chain, job.ChainID) && same(q.Parent, job.ParentID) && (q.Function == "" || job.Queue == "fn."+q.Function && function == q.Function) &&
		same(q.UniqueKey, job.UniqueKey) && same(q.DeadReason, job.DeadReason) && job.Attempt >= q.Attempts &&
		(len(q.States) == 0 || slices.Contains(q.States, job.State)) && (len(q.Queues) == 0 || slices.Contains(q.Queues, job.Queue)) &&
		(len(q.Priorities) == 0 || slices.Contains(q.Priorities, job.Priority)) && (len(q.Tags) == 0 || job.Tags["kind"] == "x") &&
		within(job.CreatedAtMS, q.Created) && within(job.StartedAtMS, q.Started) && within(job.EndedAtMS, q.Ended) && within(job.DueAtMS, q.Due) &&
		strings.Contains(strings.ToLower(lastError(job)), strings.ToLower(q.Error)) && wordsMatch(q.Words, job)
}

// keyOf returns the sort key of a job, and whether it has one.
func keyOf(sort string, job *api.Job) (int64, bool) {
	switch sort {
	case search.SortStarted:
		return job.StartedAtMS, job.StartedAtMS > 0
	case search.SortEnded:
		return job.EndedAtMS, job.EndedAtMS > 0
	case search.SortDue:
		return job.DueAtMS, job.DueAtMS > 0
	case search.SortDuration:
		return job.EndedAtMS - job.StartedAtMS, job.EndedAtMS > 0 && job.StartedAtMS > 0
	}
	return job.CreatedAtMS, true
}

// readAll reads all pages of a query.
func readAll(t require, s *Searcher, q *search.Jobs, limit int) (ids []string, jobs []api.Job) {
	t.Helper()
	cursor := ""
	for range 10_000 {
		page, err := s.Jobs(context.Background(), testTenant, q, cursor, limit)
		if err != nil {
			t.Fatalf("%+v: got error %v, want a page", q, err)
		}
		for _, job := range page.Items {
			ids = append(ids, job.ID)
			jobs = append(jobs, job)
		}
		if page.Next == "" {
			return ids, jobs
		}
		cursor = page.Next
	}
	t.Fatalf("%+v: got 10,000 pages, want an end", q)
	return nil, nil
}

type require interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Searches of any filters, order and size of page return the jobs that a plain comparison of all
// jobs selects, in order, whichever plan they take: the bounds are drawn too.
func TestSearchSelectsWhatFiltersMean(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		v := openView(t)
		var ours []api.Job
		for n := range rapid.IntRange(0, 60).Draw(rt, "jobs") {
			tenant, job := drawJob(rt, n)
			v.addJobs(t, tenant, []api.Job{job})
			if tenant == testTenant {
				ours = append(ours, job)
			}
		}
		s := New(v, time.Minute)
		small := func(label string) int { return rapid.SampledFrom([]int{2, 7, 1000}).Draw(rt, label) }
		s.bounds.few, s.bounds.fewProbed, s.bounds.examined, s.bounds.probed = small("few"), small("few"), small("examined"), small("probed")
		for range 5 {
			q := drawQuery(rt)
			got, sorted := readAll(rt, s, &q, rapid.IntRange(1, 5).Draw(rt, "limit"))
			for i := 1; i < len(sorted); i++ {
				a, _ := keyOf(q.Sort, &sorted[i-1])
				b, _ := keyOf(q.Sort, &sorted[i])
				if a != b && (a < b) != q.Ascending {
					rt.Fatalf("%+v: got key %d before %d, want another order", q, a, b)
				}
			}
			var want []string
			for i := range ours {
				if _, has := keyOf(q.Sort, &ours[i]); has && matches(&q, &ours[i]) {
					want = append(want, ours[i].ID)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("%+v (-want +got):\n%s", q, diff)
			}
			page, err := s.Jobs(context.Background(), testTenant, &q, "", 1)
			if err != nil || page.Count.Exact && page.Count.Value != int64(len(want)) || page.Count.Value > int64(len(want)) {
				rt.Fatalf("%+v: got count %+v (%v), want %d", q, page, err, len(want))
			}
		}
	})
}

// Jobs of another tenant are in no list, also where their words or tags are the same.
func TestSearchStaysInTheTenant(t *testing.T) {
	t.Parallel()
	v := openView(t)
	job := api.Job{ID: jobID(1), Namespace: "shop", Queue: "mail", State: api.JobDead, CreatedAtMS: 5, EndedAtMS: 7, WorkerID: "w1",
		JobOptions: api.JobOptions{Tags: map[string]string{"kind": "x"}}, Payload: json.RawMessage(`"alpha t_acme01 acme01"`), Errors: []api.JobError{{Error: "refused"}}}
	v.addJobs(t, "t_other2", []api.Job{job})
	s := New(v, time.Minute)
	for _, q := range []search.Jobs{
		{}, {Words: "alpha"}, {Words: "alpha OR acme01"}, {Words: "tacme01"}, {Words: "alpha", Order: search.Order{Sort: search.SortRank}}, {Order: search.Order{Sort: search.SortEnded}},
		{Tags: []search.Tag{{Key: "kind", Value: "x"}}}, {Worker: "w1"}, {States: []api.JobState{api.JobDead}}, {Error: "refused"},
	} {
		if ids, _ := readAll(t, s, &q, 10); len(ids) != 0 {
			t.Errorf("%+v: got jobs %v of another tenant, want none", q, ids)
		}
	}
}

// A page holds at most a number of bytes of records, and the next one continues.
func TestPagesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	v := openView(t)
	var added []api.Job
	for n := range 10 {
		added = append(added, api.Job{ID: jobID(n), State: api.JobDead, CreatedAtMS: 1 + int64(n), Payload: json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)})
	}
	v.addJobs(t, testTenant, added)
	s := New(v, time.Minute)
	s.bounds.pageBytes = 2500
	page, err := s.Jobs(t.Context(), testTenant, &search.Jobs{}, "", 100)
	if err != nil || len(page.Items) != 3 || page.Next == "" {
		t.Fatalf("got page %+v (%v), want 3 jobs and a next page", page, err)
	}
	if ids, _ := readAll(t, s, &search.Jobs{}, 100); len(ids) != 10 {
		t.Errorf("got %v, want 10 jobs", ids)
	}
}

// A search that reaches its deadline is refused with a code, and the view is not blamed.
func TestSearchEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	v := openView(t)
	s := New(v, time.Nanosecond)
	_, err := s.Jobs(t.Context(), testTenant, &search.Jobs{}, "", 1)
	if code := api.ErrorCode(err); code != api.CodeSearchDeadline {
		t.Errorf("got %v, want CodeSearchDeadline", err)
	}
	s = New(v, 100*time.Millisecond)
	release := make(chan struct{})
	defer close(release)
	err = s.run(t.Context(), testTenant, func(context.Context, *sql.Tx) error {
		<-release // as work that SQLite does not interrupt
		return nil
	})
	if code := api.ErrorCode(err); code != api.CodeSearchDeadline {
		t.Errorf("work that does not end: got %v, want CodeSearchDeadline", err)
	}
	err = s.run(t.Context(), testTenant, func(ctx context.Context, tx *sql.Tx) error {
		var n int
		return tx.QueryRowContext(ctx, "WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n) SELECT count(*) FROM n").Scan(&n)
	})
	if code := api.ErrorCode(err); code != api.CodeSearchDeadline {
		t.Errorf("an endless statement: got %v, want CodeSearchDeadline", err)
	}
}

// A replica without a mirror, and one whose file is not open, answer with a code.
func TestSearchWithoutAView(t *testing.T) {
	t.Parallel()
	closed, err := mirror.New(mirror.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	for name, s := range map[string]*Searcher{"no searcher": nil, "no view": New(nil, 0), "no file": New(Of(closed), 0)} {
		_, err := s.Jobs(t.Context(), testTenant, &search.Jobs{}, "", 1)
		if code := api.ErrorCode(err); code != api.CodeMirrorUnavailable {
			t.Errorf("%s: got %v, want CodeMirrorUnavailable", name, err)
		}
		if _, err := s.State(); api.ErrorCode(err) != api.CodeMirrorUnavailable {
			t.Errorf("%s: got state error %v, want CodeMirrorUnavailable", name, err)
		}
	}
}

// Jobs that are added and removed between two pages shift no others.
func TestPagesContinueWhileJobsAreAdded(t *testing.T) {
	t.Parallel()
	for _, order := range []search.Order{{}, {Ascending: true}, {Sort: search.SortEnded}, {Sort: search.SortDuration, Ascending: true}} {
		v := openView(t)
		next := 0
		add := func(n int) {
			var added []api.Job
			for range n {
				next++
				added = append(added, api.Job{ID: jobID(next), State: api.JobCompleted, CreatedAtMS: 1000 + int64(next%7), StartedAtMS: 1010, EndedAtMS: 1020 + int64(next%5)})
			}
			v.addJobs(t, testTenant, added)
		}
		add(100)
		s := New(v, time.Minute)
		s.bounds.few, s.bounds.examined = 10, 20
		q, cursor, seen := search.Jobs{Order: order}, "", map[string]int{}
		for done := false; !done; {
			page, err := s.Jobs(t.Context(), testTenant, &q, cursor, 7)
			if err != nil {
				t.Fatalf("Jobs: %v", err)
			}
			for _, job := range page.Items {
				seen[job.ID]++
			}
			cursor, done = page.Next, page.Next == ""
			if next < 300 {
				add(5)
			}
		}
		for n := 1; n <= 100; n++ {
			if seen[jobID(n)] != 1 {
				t.Errorf("order %+v: got job %d %d times, want once", order, n, seen[jobID(n)])
			}
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("order %+v: got job %s %d times, want once", order, id, times)
			}
		}
	}
}
