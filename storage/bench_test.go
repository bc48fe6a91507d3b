package storage_test

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func BenchmarkActivation(b *testing.B) {
	for _, backend := range storagetest.Backends() {
		b.Run(backend.Name, func(b *testing.B) {
			s := openFast(b, backend)
			activations, tenant := storage.NewActivations(s), storagetest.Tenant(b)
			ctx := context.Background()
			b.SetParallelism(32)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				f := &fixture{Store: s, fn: api.Function{Tenant: tenant, Namespace: "bench", Name: "hello"}}
				for pb.Next() {
					a := f.running()
					if _, _, err := activations.Start(ctx, a); err != nil {
						b.Error(err)
						return
					}
					if won, _, err := activations.Finish(ctx, succeeded(a, s.NowMS(), `{"statusCode":200,"body":"hello"}`), 1); err != nil || !won {
						b.Error(won, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "activations/s")
		})
	}
}

// openFast opens a store without the prelude that tests run under.
func openFast(b *testing.B, backend storagetest.Backend) *storage.Store {
	b.Helper()
	s, err := storage.Open(b.Context(), backend.Config(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}
