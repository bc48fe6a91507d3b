package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
)

// BenchmarkApply measures how many jobs that have ended are written a second, in full batches.
//
//	go test ./storage/mirror -run '^$' -bench Apply -benchtime 100000x
func BenchmarkApply(b *testing.B) {
	m, err := mirror.New(mirror.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(b.Context()); err != nil {
		b.Fatalf("Open: %v", err)
	}
	defer func() { _ = m.Close() }()
	now := time.Now().UnixMilli()
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same in each run
	var batches []*mirror.Batch
	for n := 0; n < b.N; n += mirror.MaxBatch {
		batch := &mirror.Batch{}
		for i := n; i < min(b.N, n+mirror.MaxBatch); i++ {
			j := &api.Job{
				ID: api.NewJobID(), Namespace: "shop", Queue: fmt.Sprint("mail", i%10), State: api.JobCompleted, Attempt: 1, WorkerID: fmt.Sprint("w", i%8),
				CreatedAtMS: now + int64(i/15), StartedAtMS: now + int64(i/15) + 3, EndedAtMS: now + int64(i/15) + 3 + random.Int64N(30_000),
				Payload: fmt.Appendf(nil, `{"order":"o%d","city":"city%d","text":"please deliver the parcel word%d"}`, random.IntN(1_000_000_000), random.IntN(100), random.IntN(10_000)),
				Result:  []byte(`{"sent":true}`),
			}
			j.Tags = map[string]string{"customer": fmt.Sprint("c", random.IntN(50_000)), "region": fmt.Sprint("r", random.IntN(5))}
			j.JobOptions = j.WithDefaults()
			doc, err := api.EncodeJSON(j)
			if err != nil {
				b.Fatalf("EncodeJSON: %v", err)
			}
			batch.Jobs = append(batch.Jobs, mirror.Job{Tenant: "t_acme01", ID: j.ID, Run: "completed 1 1 17000000000 1a w1@170000000", View: j, Doc: doc})
		}
		batches = append(batches, batch)
	}
	b.ResetTimer()
	for _, batch := range batches {
		if _, err := m.Apply(b.Context(), batch); err != nil {
			b.Fatalf("Apply: %v", err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
