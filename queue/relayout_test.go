package queue_test

import (
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// toOlderLayout stores a job in the layout of releases without keys for specs and runs.
func (f *fixture) toOlderLayout(t *testing.T, id, follows string) {
	t.Helper()
	k, c := f.store.JobKeys(f.tenant), f.store.Client()
	texts, err := c.MGet(t.Context(), k.Run(id), k.Spec(id)).Result()
	if err != nil {
		t.Fatalf("Result: %v", err)
	}
	run, _ := texts[0].(string)
	if follows != "" {
		run = run[:len(run)-len(follows)-1]
	}
	fields := []any{"run", run, "spec", texts[1]}
	if follows != "" {
		fields = append(fields, "after", follows)
	}
	if err := c.HSet(t.Context(), k.Meta(id), fields...).Err(); err != nil {
		t.Fatalf("HSet: %v", err)
	}
	if err := c.Del(t.Context(), k.Run(id), k.Spec(id)).Err(); err != nil {
		t.Fatalf("Del: %v", err)
	}
}

// pass runs one pass of a repairer over all jobs.
func (f *fixture) pass(t *testing.T) {
	t.Helper()
	r := f.NewRepairer()
	for end := false; !end; {
		findings, err := r.Jobs(t.Context(), f.clock.ms.Load(), 1000)
		if err != nil {
			t.Fatalf("Jobs: %v", err)
		}
		end = findings.End
	}
}

// TestJobsOfTheOlderLayoutAreMoved: earlier releases kept a job's spec and run in its hash. No fetch
// finds such a job until a repairer has converted it.
func TestJobsOfTheOlderLayoutAreMoved(t *testing.T) {
	t.Parallel()
	eachAlone(t, func(t *testing.T, f *fixture) {
		first, held := f.add(t, job(`1`))[0].ID, f.add(t, job(`2`, func(j *api.NewJob) { j.Hold = true }))[0].ID
		second := f.add(t, job(`3`, func(j *api.NewJob) { j.DependsOn = []string{first} }))[0].ID
		f.toOlderLayout(t, first, "1")
		f.toOlderLayout(t, held, "")
		if got := f.fetch(t, 3); len(got) != 0 {
			t.Errorf("Fetch before the repair = %+v, want no job", got)
		}
		f.clock.advance(2 * time.Minute)
		f.pass(t)
		got := f.fetch(t, 3)
		if len(got) != 1 || got[0].ID != first {
			t.Fatalf("Fetch after the repair = %+v, want job %s", got, first)
		}
		if out := f.ack(t, got[0], ""); !out.OK {
			t.Fatalf("ack: got %+v, want success", out)
		}
		if got := f.fetch(t, 3); len(got) != 1 || got[0].ID != second {
			t.Errorf("Fetch of the dependent job = %+v, want job %s", got, second)
		}
		for _, id := range []string{first, held} {
			if n, err := f.store.Client().Exists(t.Context(), f.store.JobKeys(f.tenant).Meta(id)).Result(); err != nil || n != 0 {
				t.Errorf("job %s still has a hash: %v", id, err)
			}
		}
		f.sound(t, first, held, second)
	})
}

// TestAMoveToTheNewLayoutMayBeCut: an interrupted conversion is completed, and a job that has changed
// in the new layout is not reset.
func TestAMoveToTheNewLayoutMayBeCut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		k := f.store.JobKeys(f.tenant)
		old, err := f.store.Client().MGet(t.Context(), k.Run(id), k.Spec(id)).Result()
		if err != nil {
			t.Fatalf("Result: %v", err)
		}
		f.fetch(t, 1)
		if err := f.store.Client().HSet(t.Context(), k.Meta(id), "run", old[0], "spec", old[1]).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		reply, err := f.store.Script(t.Context(), storage.ScriptJobRelayout, []string{k.Meta(id), k.Run(id), k.Spec(id)}, 1)
		if err != nil || reply != int64(0) {
			t.Errorf("the relayout script replied %v, %v, want 0", reply, err)
		}
		if j := f.get(t, id); j.State != api.JobActive {
			t.Errorf("got state %s, want active", j.State)
		}
		f.sound(t, id)
	})
}
