package search

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/mirror"
)

const (
	benchRows  = 1_000_000
	benchStart = 1_760_000_000_000
)

// benchJob returns the n-th job of the benchmark, 100 of which are created a second.
func benchJob(n int, random *rand.Rand) api.Job {
	created := int64(benchStart + n*10)
	job := api.Job{
		ID: jobID(n), Namespace: []string{"shop", "shop", "shop", "mail"}[n%4], Queue: "q" + strconv.Itoa(n%20), State: api.JobCompleted, Attempt: 1,
		CreatedAtMS: created, StartedAtMS: created + random.Int64N(5_000), WorkerID: "w" + strconv.Itoa(random.IntN(50)), StateSinceMS: created,
		Payload: json.RawMessage(fmt.Sprintf(`{"order":"o%d","city":"city%d","text":"please deliver the parcel word%d"}`, n, random.IntN(100), random.IntN(10_000))),
	}
	job.Tags = map[string]string{"customer": "c" + strconv.Itoa(random.IntN(50_000)), "region": "r" + strconv.Itoa(random.IntN(5))}
	job.EndedAtMS = job.StartedAtMS + random.Int64N(20_000)
	switch k := random.IntN(1000); {
	case k < 20:
		job.State, job.DeadReason = api.JobDead, api.DeadAttempts
		job.Errors = []api.JobError{{Attempt: 1, Error: fmt.Sprintf("connection refused by host%d", random.IntN(100)), AtMS: created}}
	case k < 25:
		job.State, job.EndedAtMS, job.DueAtMS = api.JobScheduled, 0, created+1_000_000
	}
	return job
}

// benchView returns a view with benchRows jobs. SOUS_SEARCH_DIR names a folder that keeps them for the
// next benchmark.
func benchView(b *testing.B) View {
	b.Helper()
	dir := os.Getenv("SOUS_SEARCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	m, err := mirror.New(mirror.Config{Dir: dir})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	fresh, _, err := m.Open(b.Context())
	if err != nil {
		b.Fatalf("Open: %v", err)
	}
	b.Cleanup(func() { _ = m.Close() })
	v := &testView{Of(m), m}
	if !fresh {
		return v
	}
	random, begin := rand.New(rand.NewPCG(1, 2)), time.Now()
	for i := 0; i < benchRows; i += 1000 {
		batch := make([]api.Job, 1000)
		for j := range batch {
			batch[j] = benchJob(i+j, random)
		}
		v.addJobs(b, testTenant, batch)
	}
	b.Logf("%d rows in %v", benchRows, time.Since(begin))
	return v
}

// BenchmarkSearch reads pages of 50 jobs out of 1,000,000: the first one, and some that follow.
func BenchmarkSearch(b *testing.B) {
	s := New(benchView(b), time.Minute)
	middle := search.Range{FromMS: benchStart + 4_000_000, ToMS: benchStart + 6_000_000}
	short := search.Range{FromMS: benchStart + 5_000_000, ToMS: benchStart + 5_010_000}
	by := func(key string) search.Order { return search.Order{Sort: key} }
	for _, tt := range []struct {
		name string
		q    search.Jobs
	}{
		{"filter/all", search.Jobs{}},
		{"filter/state", search.Jobs{States: []api.JobState{api.JobDead}}},
		{"filter/queues,states", search.Jobs{Queues: []string{"q1", "q2"}, States: []api.JobState{api.JobDead, api.JobScheduled}}},
		{"filter/namespace,ascending", search.Jobs{Namespace: "mail", Order: search.Order{Ascending: true}}},
		{"filter/rare_tag", search.Jobs{Tags: []search.Tag{{Key: "customer", Value: "c77"}}}},
		{"filter/rare_tag,by_duration", search.Jobs{Tags: []search.Tag{{Key: "customer", Value: "c77"}}, Order: by(search.SortDuration)}},
		{"filter/frequent_tag,dead", search.Jobs{Tags: []search.Tag{{Key: "region", Value: "r1"}}, States: []api.JobState{api.JobDead}}},
		{"filter/created,by_ended", search.Jobs{Created: middle, Order: by(search.SortEnded)}},
		{"filter/ended", search.Jobs{Ended: short}},
		{"filter/dead,by_ended", search.Jobs{States: []api.JobState{api.JobDead}, Order: by(search.SortEnded)}},
		{"filter/error", search.Jobs{Error: "by host77"}},
		{"filter/no_such_host", search.Jobs{Host: "none"}},
		{"filter/worker,by_duration", search.Jobs{Worker: "w7", Order: by(search.SortDuration)}},
		{"filter/all,by_duration", search.Jobs{Order: by(search.SortDuration)}},
		{"words/rare", search.Jobs{Words: "o77777"}},
		{"words/100", search.Jobs{Words: "word77"}},
		{"words/100,by_ended", search.Jobs{Words: "word77", Order: by(search.SortEnded)}},
		{"words/10000", search.Jobs{Words: "city7"}},
		{"words/10000,by_ended", search.Jobs{Words: "city7", Order: by(search.SortEnded)}},
		{"words/all", search.Jobs{Words: "parcel"}},
		{"words/all,by_ended", search.Jobs{Words: "parcel", Order: by(search.SortEnded)}},
		{"words/all,by_rank", search.Jobs{Words: "parcel", Order: by(search.SortRank)}},
		{"words/all_and_rare", search.Jobs{Words: "parcel o77777"}},
		{"words/all,dead", search.Jobs{Words: "parcel", States: []api.JobState{api.JobDead}}},
		{"words/all,rare_tag", search.Jobs{Words: "parcel", Tags: []search.Tag{{Key: "customer", Value: "c77"}}}},
		{"words/phrase", search.Jobs{Words: `"deliver the parcel" city7`}},
		{"words/prefix", search.Jobs{Words: `city*`}},
		{"words/long_prefix", search.Jobs{Words: `word77*`}},
		{"words/or_not", search.Jobs{Words: `(city1 OR city2) NOT word7`}},
		{"words/column", search.Jobs{Words: `error:refused`}},
		{"words/all,host", search.Jobs{Words: "parcel", Host: "none"}},
	} {
		b.Run(tt.name, func(b *testing.B) { benchPages(b, s, tt.q) })
	}
}

// benchPages reads pages of a query, each of which follows the one before.
func benchPages(b *testing.B, s *Searcher, q search.Jobs) {
	b.Helper()
	var took []time.Duration
	cursor, items := "", 0
	for b.Loop() {
		begin := time.Now()
		page, err := s.Jobs(context.Background(), testTenant, &q, cursor, 50)
		took = append(took, time.Since(begin))
		if err != nil {
			b.Fatalf("append: %v", err)
		}
		items += len(page.Items)
		cursor = page.Next
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(items)/float64(len(took)), "items/page")
}
