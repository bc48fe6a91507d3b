package storage_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// running is the record of an activation that begins now.
func (f *fixture) running() *storage.StoredActivation {
	now := f.NowMS()
	return &storage.StoredActivation{Activation: api.Activation{
		ActivationID: uuid.NewString(), Tenant: f.fn.Tenant, Namespace: f.fn.Namespace, Function: f.fn.Name,
		Ref: api.Ref{Alias: "prod", Version: 1}, Trigger: api.Trigger{Type: api.TriggerHTTP},
		Status: api.StatusRunning, StartMS: now, DeadlineMS: now + 3000, Attempt: 1, RequestID: api.NewRequestID(now),
	}}
}

func succeeded(a *storage.StoredActivation, nowMS int64, result string) *storage.StoredActivation {
	b := *a
	b.Status, b.EndMS, b.DurationMS, b.Result = api.StatusSuccess, nowMS, nowMS-a.StartMS, json.RawMessage(result)
	return &b
}

func TestActivationLifecycle(t *testing.T) {
	t.Parallel()
	storagetest.All(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		a := f.running()
		for range 2 {
			if created, _, err := f.activations.Start(ctx, a); err != nil || !created {
				t.Fatalf("start: %v %v", created, err)
			}
		}
		done := succeeded(a, s.NowMS(), `{"ok":true}`)
		for range 2 {
			won, _, err := f.activations.Finish(ctx, done, 1)
			if err != nil || !won {
				t.Fatalf("finish: %v %v", won, err)
			}
		}
		got, err := f.activations.Get(ctx, a.Tenant, a.ActivationID)
		if err != nil || string(got.Result) != `{"ok":true}` || got.Status != api.StatusSuccess {
			t.Fatalf("get: %+v %v", got, err)
		}
		if _, err := f.activations.Cancel(ctx, a.Tenant, a.ActivationID, s.NowMS()); api.ErrorCode(err) != api.CodeActivationTerminal {
			t.Errorf("cancel: %v", err)
		}
	})
}

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
