package storage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// BenchmarkActivation is the hot path: what one invoke of a hello writes. At 64
// callers the group commit works, alone it must not cost.
func BenchmarkActivation(b *testing.B) {
	for _, backend := range storagetest.Backends() {
		for name, callers := range map[string]int{"callers=1": 1, "callers=64": 64} {
			b.Run(backend.Name+"/"+name, func(b *testing.B) {
				s := openFast(b, backend)
				tenant := storagetest.Tenant(b)
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				for _, err := range storagetest.Concurrently(callers, func(int) error {
					f := &fixture{
						Store: s, activations: activations.New(s),
						fn: api.Function{Tenant: tenant, Namespace: "bench", Name: "hello"},
					}
					for left.Add(-1) >= 0 {
						if err := f.hello(b.Context()); err != nil {
							return err
						}
					}
					return nil
				}) {
					if err != nil {
						b.Errorf("unexpected error: %v", err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "activations/s")
			})
		}
	}
}

// hello starts and finishes one activation.
func (f *fixture) hello(ctx context.Context) error {
	a := f.running()
	if _, _, err := f.activations.Start(ctx, a); err != nil {
		return err
	}
	won, _, err := f.activations.Finish(ctx, succeeded(a, f.NowMS(), `{"statusCode":200,"body":"hello"}`))
	if err == nil && !won {
		err = errors.New("somebody else ended it")
	}
	return err
}

// openFast opens a store without the prelude that tests run under.
func openFast(b *testing.B, backend storagetest.Backend) *storage.Store {
	b.Helper()
	s, err := storage.Open(b.Context(), backend.Config(b))
	if err != nil {
		b.Fatalf("storage.Open: %v", err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
	})
	return s
}
