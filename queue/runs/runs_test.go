package runs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/runs"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const namespace = "default"

// fixture is a queue with the runs of a tenant.
type fixture struct {
	*runs.Runs
	broker *queue.Broker
	store  *storage.Store
	tenant string
}

func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		broker, err := queue.New(t.Context(), s, queue.Config{})
		if err != nil {
			t.Fatalf("queue.New: %v", err)
		}
		t.Cleanup(broker.Close)
		test(t, &fixture{Runs: runs.New(s, broker), broker: broker, store: s, tenant: storagetest.Tenant(t)})
	})
}

// add adds a job and leases it.
func (f *fixture) add(t *testing.T) step.Lease {
	t.Helper()
	made, err := f.broker.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: "work", Jobs: []api.NewJob{{}}})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	return f.lease(t, made[0].ID)
}

// lease leases the one pending job.
func (f *fixture) lease(t *testing.T, id string) step.Lease {
	t.Helper()
	got, err := f.broker.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"work"}, WorkerID: "w1", Lease: time.Minute})
	if err != nil || len(got) != 1 || got[0].ID != id {
		t.Fatalf("Fetch = %+v, %v, want job %s", got, err, id)
	}
	return step.Lease{Tenant: f.tenant, Namespace: namespace, ID: id, Epoch: got[0].LeaseEpoch}
}

func (f *fixture) state(t *testing.T, l step.Lease) api.JobState {
	t.Helper()
	j, err := f.broker.Get(t.Context(), l.Tenant, l.ID)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return j.State
}

func ended(name string, seq int, result string) *step.Step {
	return &step.Step{Kind: step.KindStep, Name: name, N: 1, Seq: seq, Status: step.StatusCompleted, Result: json.RawMessage(result)}
}

func code(t *testing.T, call string, err error, want api.Code) {
	t.Helper()
	if got := api.ErrorCode(err); got != want {
		t.Errorf("%s: got error %v, want code %q", call, err, want)
	}
}

func TestAFinalRecordStays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		retrying := ended("a", 0, "")
		retrying.Status, retrying.Attempts, retrying.Result = step.StatusRetrying, 1, nil
		code(t, "an open record", f.Record(t.Context(), l, retrying), "")
		for range 2 {
			code(t, "the end", f.Record(t.Context(), l, ended("a", 1, `"first"`)), "")
		}
		code(t, "another end", f.Record(t.Context(), l, ended("a", 1, `"second"`)), api.CodeStoreConflict)
		code(t, "an open record after the end", f.Record(t.Context(), l, retrying), api.CodeStoreConflict)
		steps, err := f.Load(t.Context(), l)
		if err != nil || len(steps) != 1 || string(steps[0].Result) != `"first"` {
			t.Errorf("Load = %+v, %v, want the first result", steps, err)
		}
	})
}

func TestARecordNeedsTheLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		old := l
		old.Epoch--
		code(t, "an older lease", f.Record(t.Context(), old, ended("a", 1, "1")), api.CodeJobLeaseLost)
		if _, err := f.broker.Ack(t.Context(), f.tenant, []api.JobAck{{ID: l.ID, LeaseEpoch: l.Epoch}}); err != nil {
			t.Fatalf("Ack: %v", err)
		}
		code(t, "an ended job", f.Record(t.Context(), l, ended("a", 1, "1")), api.CodeJobLeaseLost)
		l.ID = "00000000-0000-7000-8000-000000000000"
		code(t, "no job", f.Record(t.Context(), l, ended("a", 1, "1")), api.CodeJobNotFound)
	})
}

func TestARunIsBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		for n := range step.MaxSteps {
			code(t, "a step", f.Record(t.Context(), l, ended(fmt.Sprint(n), n+1, "1")), "")
		}
		code(t, "one more", f.Record(t.Context(), l, ended("more", 1, "1")), api.CodeHostStepLimit)
		large := f.add(t)
		result := `"` + strings.Repeat("x", 250<<10) + `"`
		for n := range 16 {
			code(t, "a large step", f.Record(t.Context(), large, ended(fmt.Sprint(n), n+1, result)), "")
		}
		code(t, "a large one more", f.Record(t.Context(), large, ended("more", 17, result)), api.CodeHostStepLimit)
	})
}

func TestStepsAreDeletedWithTheirJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		code(t, "a step", f.Record(t.Context(), l, ended("a", 1, "1")), "")
		if _, err := f.broker.Ack(t.Context(), f.tenant, []api.JobAck{{ID: l.ID, LeaseEpoch: l.Epoch}}); err != nil {
			t.Fatalf("Ack: %v", err)
		}
		if err := f.broker.Delete(t.Context(), f.tenant, l.ID); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		key := f.store.JobKeys(f.tenant).Steps(l.ID)
		if n, err := f.store.Client().Exists(t.Context(), key).Result(); err != nil || n != 0 {
			t.Errorf("Exists of %s = %d, %v, want 0", key, n, err)
		}
	})
}

// An event that comes between the look of an activation for it and the end of the activation is not
// lost: the run is pending at once.
func TestAnEventBeforeTheParkWakesTheRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		due := f.store.NowMS() + time.Hour.Milliseconds()
		waits := []step.Step{{Kind: step.KindEvent, Name: "paid", N: 1, Status: step.StatusWaiting, DueAtMS: due}}
		if got, err := f.Arrived(t.Context(), l, waits, nil); err != nil || len(got) != 0 {
			t.Fatalf("Arrived = %+v, %v, want none", got, err)
		}
		code(t, "Send", f.Send(t.Context(), f.tenant, l.ID, "paid", json.RawMessage("7")), "")
		park := &step.Park{DueMS: due, Events: []string{"paid"}}
		for range 2 {
			if held, err := f.Park(t.Context(), l, park); err != nil || !held {
				t.Fatalf("Park = %t, %v, want it held", held, err)
			}
		}
		if got := f.state(t, l); got != api.JobPending {
			t.Errorf("got state %s, want pending", got)
		}
		next := f.lease(t, l.ID)
		arrived, err := f.Arrived(t.Context(), next, waits, nil)
		if err != nil || len(arrived) != 1 || string(arrived[0].Value) != "7" {
			t.Fatalf("Arrived = %+v, %v, want the event", arrived, err)
		}
		// An interrupted Record leaves the event, which ends no other wait.
		end := &step.Step{Kind: step.KindEvent, Name: "paid", N: 1, Seq: 1, Status: step.StatusCompleted, Taken: arrived[0].ID}
		code(t, "Record", f.Record(t.Context(), next, end), "")
		if err := f.store.Client().HSet(t.Context(), f.store.JobKeys(f.tenant).Meta(l.ID), arrived[0].ID, "7").Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		waits[0].N = 2
		if got, err := f.Arrived(t.Context(), next, waits, map[string]bool{arrived[0].ID: true}); err != nil || len(got) != 0 {
			t.Errorf("Arrived = %+v, %v, want no event twice", got, err)
		}
		if _, err := f.Load(t.Context(), next); err != nil {
			t.Fatalf("Load: %v", err)
		}
		if got, err := f.Arrived(t.Context(), next, waits, nil); err != nil || len(got) != 0 {
			t.Errorf("Arrived after Load = %+v, %v, want the taken event deleted", got, err)
		}
		lost := l
		lost.Epoch = next.Epoch + 1
		if held, err := f.Park(t.Context(), lost, park); err != nil || held {
			t.Errorf("Park of another lease = %t, %v, want it lost", held, err)
		}
	})
}

func TestEventsOfARunAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		for range step.MaxEvents {
			code(t, "Send", f.Send(t.Context(), f.tenant, l.ID, "e", nil), "")
		}
		code(t, "one more", f.Send(t.Context(), f.tenant, l.ID, "e", nil), api.CodeCapacityLimit)
		code(t, "a large payload", f.Send(t.Context(), f.tenant, l.ID, "e", make(json.RawMessage, step.MaxResultBytes+1)), api.CodeBodyLimit)
		code(t, "no name", f.Send(t.Context(), f.tenant, l.ID, "", nil), api.CodeInvalid)
		code(t, "no run", f.Send(t.Context(), f.tenant, "00000000-0000-7000-8000-000000000000", "e", nil), api.CodeJobNotFound)
	})
}

// A run that sleeps is not woken by an event for which it does not wait.
func TestAnEventWakesOnlyAWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.add(t)
		if held, err := f.Park(t.Context(), l, &step.Park{DueMS: f.store.NowMS() + time.Hour.Milliseconds()}); err != nil || !held {
			t.Fatalf("Park = %t, %v, want it held", held, err)
		}
		code(t, "Send", f.Send(t.Context(), f.tenant, l.ID, "paid", nil), "")
		if got := f.state(t, l); got != api.JobScheduled {
			t.Errorf("got state %s, want scheduled", got)
		}
		run, err := f.Get(t.Context(), f.tenant, l.ID)
		if err != nil || len(run.Events) != 1 || run.Events[0] != "paid" {
			t.Errorf("Get = %+v, %v, want the event paid", run, err)
		}
	})
}
