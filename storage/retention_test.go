package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// An ended record lives as long as its version, its tenant or the store says; a record that has
// not ended lives for a week at least.
func TestActivationRetention(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			cfg := backend.Config(t)
			cfg.Activations = storage.Retention{Default: 30 * 24 * time.Hour, Tenants: map[string]time.Duration{}}
			f := newFixture(t, storagetest.Open(t, cfg))
			cfg.Activations.Tenants[f.fn.Tenant] = 5 * time.Hour
			ctx, keys := t.Context(), f.Keys()
			expect := func(key string, want time.Duration) {
				t.Helper()
				got, err := f.Client().PTTL(ctx, key).Result()
				if err != nil || got > want || got < want-time.Minute {
					t.Errorf("%s lives %v (%v), want %v", key, got, err, want)
				}
			}
			for own, want := range map[time.Duration]time.Duration{0: 5 * time.Hour, 2 * time.Hour: 2 * time.Hour, 90 * 24 * time.Hour: 90 * 24 * time.Hour} {
				a := f.running()
				a.RetentionMS = own.Milliseconds()
				f.start(t, a)
				expect(keys.ActivationMeta(a.Tenant, a.ActivationID), max(want, api.ActivationTTLMS*time.Millisecond))
				result := `"` + strings.Repeat("r", api.MaxInlineResultBytes) + `"`
				if _, _, err := f.activations.Finish(ctx, succeeded(a, f.NowMS(), result)); err != nil {
					t.Fatalf("activations.Finish: %v", err)
				}
				if err := activations.NewLogs(f.Store).Append(ctx, a, 0, []byte("{}\n")); err != nil {
					t.Fatalf("Logs.Append: %v", err)
				}
				for _, key := range []string{
					keys.ActivationMeta(a.Tenant, a.ActivationID), keys.ActivationResult(a.Tenant, a.ActivationID),
					keys.LogChunk(a.Tenant, a.ActivationID, 0), keys.LogChunks(a.Tenant, a.ActivationID),
				} {
					expect(key, want)
				}
				short := f.running()
				short.RetentionMS = own.Milliseconds()
				if won, _, err := f.activations.RecordEnded(ctx, succeeded(short, f.NowMS(), `1`), []byte("{}\n")); err != nil || !won {
					t.Fatalf("RecordEnded = %v, %v, want it stored", won, err)
				}
				expect(keys.ActivationMeta(short.Tenant, short.ActivationID), want)
				expect(keys.LogChunk(short.Tenant, short.ActivationID, 0), want)
			}

			// The log of an asynchronous activation outlives the waits between its attempts, and
			// then lives as long as the record.
			logs, job := activations.NewLogs(f.Store), f.running()
			job.JobID = "job"
			for chunk := range 2 {
				if err := logs.Append(ctx, job, chunk, []byte("{}\n")); err != nil {
					t.Fatalf("Logs.Append: %v", err)
				}
			}
			living := func(want time.Duration) {
				t.Helper()
				for _, key := range []string{keys.LogChunk(job.Tenant, job.ActivationID, 0), keys.LogChunk(job.Tenant, job.ActivationID, 1), keys.LogChunks(job.Tenant, job.ActivationID)} {
					expect(key, want)
				}
			}
			living(api.ActivationTTLMS * time.Millisecond)
			for _, a := range []*activations.Record{succeeded(job, f.NowMS(), `1`), job} {
				a.Attempt, a.LeaseEpoch = 2, 2
				if err := logs.Keep(ctx, a); err != nil {
					t.Fatalf("Logs.Keep: %v", err)
				}
				if a.Status.Terminal() {
					living(5 * time.Hour)
				} else {
					living(api.ActivationTTLMS * time.Millisecond)
				}
			}
		})
	}
}
