package platformtest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/cmd/sous/platformtest"
)

// stepsSource is a function of ten steps, a sleep and a wait. Each execution of a step has an id,
// which the step adds to a list of its own before it returns it.
const stepsSource = `export default async () => {
  const out = [];
  for (let i = 0; i < 10; i++) {
    if (i === 4) await cs.sleep("1.2s");
    if (i === 7) await cs.waitForEvent("go", { timeout: "1m" });
    out.push(await cs.step("s" + i, async () => {
      const id = crypto.randomUUID(), key = "run:" + cs.job.id + ":" + i;
      await cs.kv.set(key, [...((await cs.kv.get(key)) ?? []), id]);
      await new Promise((r) => setTimeout(r, 150));
      return id;
    }, { retry: { maxAttempts: 1 } }));
  }
  return out;
};`

// Whatever is killed: no step with a recorded result runs again, and every run ends.
func TestKilledReplicasRepeatNoRecordedStep(t *testing.T) {
	t.Parallel()
	l := startAsync(t, `{"timeout_ms": 20000, "memory_mb": 16, "max_concurrency": 8, "retry": {"max_attempts": 20, "backoff": "none"},
		"capabilities": {"kv": {"prefixes": ["run:"], "ops": ["get", "set"]}}}`, stepsSource)
	tenant := l.replicas[0].API(t)
	var ids []string
	for range 4 {
		batch := l.enqueue(t, l.replicas[0], 16)
		ids = append(ids, batch...)
		platformtest.Eventually(t, 60*time.Second, "the runs have recorded steps", func() error {
			for _, id := range batch {
				run, err := tenant.Run(t.Context(), id)
				if err == nil && len(run.Steps) == 0 {
					err = errors.New("run " + id + " has recorded no step")
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err := l.replicas[1].Kill(); err != nil {
			t.Fatalf("Kill: %v", err)
		}
		l.replicas[1] = platformtest.Serve(t, l.store, "--sandbox-memory-budget", "8192")
	}
	for _, id := range ids {
		if err := tenant.SendRunEvent(t.Context(), id, "go", nil); err != nil {
			t.Errorf("SendRunEvent: %v", err)
		}
	}
	platformtest.Eventually(t, 120*time.Second, "all have succeeded", func() error {
		return countStatus(t.Context(), tenant, ids, api.StatusSuccess)
	})
	again := 0
	for _, id := range ids {
		run, err := tenant.Run(t.Context(), id)
		if err != nil {
			t.Fatalf("Run: %v", err)
		}
		again += checkExecutions(t, l.replicas[0], &run)
	}
	if again == 0 {
		t.Error("no step ran again, want some that were killed before their record")
	}
	t.Logf("%d executions of steps were repeated before their record", again)
}

// checkExecutions checks that the recorded result of each step is that of its last execution, and
// returns the number of executions before it.
func checkExecutions(t *testing.T, s *platformtest.Server, run *step.Run) (again int) {
	t.Helper()
	if len(run.Steps) != 12 {
		t.Errorf("run %s: got %d steps, want 12", run.ID, len(run.Steps))
	}
	for _, r := range run.Steps {
		if r.Kind != step.KindStep {
			continue
		}
		var ids []string
		var recorded string
		value, err := s.API(t).Namespace(platformtest.Namespace).KVValue(t.Context(), fmt.Sprintf("run:%s:%s", run.ID, r.Name[1:]))
		if err := errors.Join(err, json.Unmarshal(value.Value, &ids), json.Unmarshal(r.Result, &recorded)); err != nil {
			t.Fatalf("read the executions of %s: %v", r.Name, err)
		}
		if at := slices.Index(ids, recorded); at != len(ids)-1 {
			t.Errorf("run %s, step %s: got execution %d of %d recorded, want the last", run.ID, r.Name, at+1, len(ids))
		}
		again += len(ids) - 1
	}
	return again
}
