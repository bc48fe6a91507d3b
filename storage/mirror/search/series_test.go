package search

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/mirror"
)

// seriesJob returns a job that was created at 1000, started at the time and ended at the other.
func seriesJob(n int, state api.JobState, started, ended int64, failure string) api.Job {
	job := api.Job{ID: jobID(n), Namespace: "shop", Queue: "mail", State: state, CreatedAtMS: 1000, StartedAtMS: started, EndedAtMS: ended}
	if failure != "" {
		job.Errors = []api.JobError{{Attempt: 1, Error: failure}}
	}
	return job
}

func TestJobSeries(t *testing.T) {
	t.Parallel()
	v := openView(t)
	v.addJobs(t, testTenant, []api.Job{
		seriesJob(1, api.JobCompleted, 1100, 2000, ""),
		seriesJob(2, api.JobCompleted, 1200, 2099, ""),
		seriesJob(3, api.JobDead, 1300, 2100, "boom"),
		seriesJob(4, api.JobDead, 1300, 2150, "boom"),
		seriesJob(5, api.JobDead, 0, 2300, "late"),
		seriesJob(6, api.JobCompleted, 1100, 1999, ""), // before
		seriesJob(7, api.JobCompleted, 1100, 2400, ""), // behind
		seriesJob(8, api.JobPending, 0, 0, ""),
	})
	v.addJobs(t, "t_other2", []api.Job{seriesJob(9, api.JobDead, 1100, 2050, "theirs")})
	s := New(v, time.Minute)
	want := &search.Series{
		FromMS: 2000, ToMS: 2400, BucketMS: 100, Records: 5,
		Buckets: []search.SeriesBucket{
			{StartMS: 2000, Counts: map[string]int64{"completed": 2}, Wait: &search.Percentiles{P50: 100, P95: 200, P99: 200}, Run: &search.Percentiles{P50: 899, P95: 900, P99: 900}},
			{StartMS: 2100, Counts: map[string]int64{"dead": 2}, Wait: &search.Percentiles{P50: 300, P95: 300, P99: 300}, Run: &search.Percentiles{P50: 800, P95: 850, P99: 850}},
			{StartMS: 2300, Counts: map[string]int64{"dead": 1}},
		},
		Failures: []search.SeriesFailure{{Error: "boom", Count: 2}, {Error: "late", Count: 1}},
	}
	r := search.SeriesRange{FromMS: 2000, ToMS: 2400, BucketMS: 100}
	for _, few := range []int{2, 1000} { // along the index of the end, and from a source with few rows
		s.bounds.few = few
		got, err := s.JobSeries(t.Context(), testTenant, search.Jobs{Queues: []string{"mail"}}, r)
		if err != nil {
			t.Fatalf("JobSeries: %v", err)
		}
		got.Mirror = search.MirrorState{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("few %d (-want +got):\n%s", few, diff)
		}
		words, err := s.JobSeries(t.Context(), testTenant, search.Jobs{Words: "boom"}, r)
		if err != nil || words.Records != 2 || words.Cut {
			t.Errorf("few %d: got %+v (%v), want the 2 records with the word", few, words, err)
		}
	}
	s.bounds.few, s.bounds.seriesRows = 2, 3
	got, err := s.JobSeries(t.Context(), testTenant, search.Jobs{}, r)
	if err != nil || !got.Cut || got.Records != 3 || got.Buckets[0].StartMS != 2100 {
		t.Errorf("a bound of 3 records: got %+v (%v), want the newest 3 and cut", got, err)
	}
	for _, bad := range []search.SeriesRange{{}, {FromMS: 5, ToMS: 5}, {FromMS: 1, ToMS: 502, BucketMS: 1}, {FromMS: 1, ToMS: 1 << 62}} {
		if got, err := s.JobSeries(t.Context(), testTenant, search.Jobs{}, bad); api.ErrorCode(err) != api.CodeInvalid {
			t.Errorf("%+v: got %+v (%v), want CodeInvalid", bad, got, err)
		}
	}
	if got, err := s.JobSeries(t.Context(), testTenant, search.Jobs{}, search.SeriesRange{FromMS: 1, ToMS: 501, BucketMS: 1}); err != nil || len(got.Buckets) != 0 {
		t.Errorf("500 buckets: got %+v (%v), want a series", got, err)
	}
}

func TestActivationSeries(t *testing.T) {
	t.Parallel()
	v := openView(t)
	var batch mirror.Batch
	for n, a := range []api.Activation{
		{Status: api.StatusSuccess, StartMS: 1000, EndMS: 2000, DurationMS: 10, CPUMS: 1.5, MemoryPeakBytes: 100, EgressBytes: 3},
		{Status: api.StatusTimeout, StartMS: 1000, EndMS: 2050, DurationMS: 30, CPUMS: 2, MemoryPeakBytes: 50, EgressBytes: 4, Error: &api.ActivationError{Type: api.ErrTimeout, Message: "x"}},
		{Status: api.StatusRunning, StartMS: 1000},
	} {
		a.ActivationID, a.Tenant, a.Namespace, a.Function, a.Trigger.Type = jobID(n), testTenant, "shop", "hello", api.TriggerAPI
		doc, err := api.EncodeJSON(&a)
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		batch.Activations = append(batch.Activations, mirror.Activation{Tenant: testTenant, ID: a.ActivationID, View: &a, Doc: doc})
	}
	if _, err := v.mirror.Apply(t.Context(), &batch); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	got, err := New(v, time.Minute).ActivationSeries(t.Context(), testTenant, search.Activations{Functions: []string{"hello"}}, search.SeriesRange{FromMS: 2000, ToMS: 2100, BucketMS: 100})
	if err != nil {
		t.Fatalf("ActivationSeries: %v", err)
	}
	want := []search.SeriesBucket{{
		StartMS: 2000, Counts: map[string]int64{"success": 1, "timeout": 1}, Run: &search.Percentiles{P50: 10, P95: 30, P99: 30}, CPUMS: 3.5, Memory: 100, Egress: 7,
	}}
	if diff := cmp.Diff(want, got.Buckets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]search.SeriesFailure{{Error: "Timeout", Count: 1}}, got.Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
