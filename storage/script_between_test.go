package storage_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestScriptBetweenTellsWhatFailed: where a plain command before the script fails, the
// call does, whether the server knows the script or not.
func TestScriptBetweenTellsWhatFailed(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}) // it forgets its scripts
	jobs := s.JobKeys(storagetest.Tenant(t))
	q := jobs.Queue("default", "emails")
	keys := append([]string{q.Config(), q.Cursor(), jobs.Queues()}, q.Sets("pending")...)
	args := []any{"default/emails", 0, 0, 0, 0, 0, 0, 0, 0}
	text := jobs.Run("text")
	fine := func(pipe redis.Pipeliner) { pipe.Set(t.Context(), text, "no number", 0) }
	fails := func(pipe redis.Pipeliner) { pipe.Incr(t.Context(), text) }
	nothing := func(redis.Pipeliner) {}
	run := func(before, then func(redis.Pipeliner)) error {
		_, err := s.ScriptBetween(t.Context(), storage.ScriptJobAdd, keys, args, before, then)
		return err
	}
	for _, known := range []bool{true, false} {
		for name, call := range map[string]struct {
			before, then func(redis.Pipeliner)
			ok           bool
		}{"nothing fails": {fine, nothing, true}, "before": {fails, nothing, false}, "then": {nothing, fails, false}} {
			if err := s.Client().Set(t.Context(), text, "no number", 0).Err(); err != nil {
				t.Fatalf("Set: %v", err)
			}
			if !known {
				if err := s.Client().ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatalf("ScriptFlush: %v", err)
				}
			}
			if err := run(call.before, call.then); (err == nil) != call.ok {
				t.Errorf("script known %v, %s: got error %v, want success %v", known, name, err, call.ok)
			}
		}
	}
}
