package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

const (
	// cutWrites is more than the writes of any script of the queue.
	cutWrites    = 12
	cutRetention = 5 * time.Minute
	// farAhead is a Unix time in milliseconds after the end of each of these tests.
	farAhead = 1_790_000_000_000
)

// TestScriptsMayBeCutAfterAnyWrite interrupts every script after each of its writes, as a kill of
// KVRocks does. Maintenance makes the rest consistent, whether the call is repeated or not, and
// a repeat succeeds.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	whole.Broker = brokerOn(t, whole.store, cutRetention)
	cfg.Clock = whole.clock.now
	for k := range cutWrites {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		broken := brokerOn(t, storagetest.Open(t, cfg), cutRetention)
		for name, op := range cutOperations {
			for _, repeat := range []bool{true, false} {
				f := *whole
				f.tenant, f.crashed = storagetest.Tenant(t), true
				t.Run(fmt.Sprintf("%s/%d/%v", strings.ReplaceAll(name, " ", "_"), k, repeat), func(t *testing.T) {
					cutOnce(t, op, &f, broken, repeat, k == cutWrites-1)
					f.empty(t)
				})
			}
		}
	}
}

// empty deletes all keys of the test's store, since the checks search for keys.
func (f *fixture) empty(t checker) {
	t.Helper()
	if err := f.store.Client().FlushDB(t.Context()).Err(); err != nil {
		t.Fatalf("FlushDB: %v", err)
	}
}

// cutOperation prepares a test and returns the call to be interrupted, and a check of the state
// after the call has succeeded. The call returns the jobs that it confirmed.
type cutOperation func(t *testing.T, f *fixture) (call func(f *fixture) (accepted []string, err error), done func(t *testing.T, f *fixture, jobs map[string]*stored))

func cutOnce(t *testing.T, op cutOperation, f *fixture, broken *queue.Broker, repeat, uncut bool) {
	t.Helper()
	call, done := op(t, f)
	before := f.jobs(t)
	f.clock.advance(time.Millisecond)
	half := *f
	half.Broker = broken
	accepted, err := call(&half)
	switch {
	case err != nil && !strings.Contains(fmt.Sprint(err), "CUT") && !strings.Contains(fmt.Sprint(errorsOf(err)), "CUT"):
		t.Fatalf("call = %v, want the error of the interruption", err)
	case err != nil && uncut:
		t.Fatalf("got an interruption after %d writes, want the call to end before: increase cutWrites", cutWrites)
	}
	f.endsAreRecorded(t)
	if err != nil && repeat {
		accepted, err = call(f)
		if err != nil {
			t.Fatalf("repeat after the interruption: %v", err)
		}
	}
	for id := range before {
		accepted = append(accepted, id)
	}
	if done == nil { // the call deletes the jobs
		f.soundIndexes(t, func(string) bool { return true })
	} else if jobs := f.sound(t, accepted...); err == nil {
		done(t, f, jobs)
	}
	f.leavesNothing(t)
}

// endsAreRecorded checks that no job has ended, and no batch has changed, without its event.
func (f *fixture) endsAreRecorded(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range f.recorded(t) {
		seen[e.Subject+" "+e.Type] = true
	}
	for id, j := range f.jobs(t) {
		if want := "jobs/" + id + " job." + string(j.state); j.state.Terminal() && !seen[want] {
			t.Errorf("events after the interruption: got none of job %s, want job.%s", id, j.state)
		}
	}
	batches, _, err := f.ListBatches(t.Context(), f.tenant, namespace, "", 100)
	if err != nil {
		t.Fatalf("ListBatches: %v", err)
	}
	for _, b := range batches {
		ended := f.store.Client().HGet(t.Context(), f.store.JobKeys(f.tenant).Batch(b.ID)+":meta", "finished").Val() == "1"
		for kind, changed := range map[string]bool{event.BatchCreated: true, event.BatchSealed: b.Sealed, event.BatchEnded: ended} {
			if changed && !seen["batches/"+b.ID+" "+kind] {
				t.Errorf("events after the interruption: got none of batch %s, want %s", b.ID, kind)
			}
		}
	}
}

// leavesNothing takes all jobs to their end, and checks that nothing that the interruption left
// outlives them.
func (f *fixture) leavesNothing(t *testing.T) {
	t.Helper()
	f.clock.advance(time.Hour) // after all leases and backoffs
	for range 5 {
		f.settle(t)
		for _, name := range f.queues(t) {
			q := strings.TrimPrefix(name, namespace+"/")
			jobs, err := f.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{q}, WorkerID: "w1", Count: 100})
			if err != nil {
				t.Fatalf("Fetch: %v", err)
			}
			for _, j := range jobs {
				if out := f.ack(t, j, ""); !out.OK {
					t.Errorf("ack: got %+v, want success", out)
				}
			}
		}
	}
	for _, key := range []string{"k", "mine"} {
		added := f.add(t, job(`1`, func(j *api.NewJob) { j.UniqueKey = key }))[0]
		f.settle(t)
		if got := f.fetch(t, 10); len(got) != 1 && (added.State != api.JobHeld && added.State != api.JobScheduled) || len(got) == 1 && (got[0].ID != added.ID || !f.ack(t, got[0], "").OK) {
			t.Errorf("a job with unique key %q: added %+v, fetched %+v, want the same job", key, added, got)
		}
	}
	for range 2 { // the cancellation of a job may make others
		for _, name := range f.queues(t) {
			if _, err := f.Clear(t.Context(), f.tenant, namespace, strings.TrimPrefix(name, namespace+"/")); err != nil {
				t.Fatalf("Clear: %v", err)
			}
		}
	}
	f.clock.advance(2 * cutRetention)
	f.settle(t)
	for _, name := range f.queues(t) {
		k := f.store.JobKeys(f.tenant).Queue(namespace, strings.TrimPrefix(name, namespace+"/"))
		for _, set := range append([]string{k.Expiry(), k.After()}, setsOf(k)...) {
			if left := f.members(t, set); len(left) > 0 && int64(left[0].Score) != farAhead {
				t.Errorf("set %s = %v, want no members", set, left)
			}
		}
	}
}

func setsOf(k storage.QueueKeys) (sets []string) {
	for _, state := range api.JobStates() {
		sets = append(sets, k.Sets(state)...)
	}
	return sets
}

// errorsOf returns the messages of err and its causes: the outer ones do not contain them.
func errorsOf(err error) (all []string) {
	for err != nil {
		all = append(all, err.Error())
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = u.Unwrap()
	}
	return all
}

var cutOperations = map[string]cutOperation{
	"enqueue": cutEnqueue(func(*api.NewJob) {}), "enqueue held": cutEnqueue(func(j *api.NewJob) { j.Hold = true }),
	"enqueue unique": cutEnqueue(func(j *api.NewJob) { j.UniqueKey = "k" }),
	"enqueue expiry": cutEnqueue(func(j *api.NewJob) { j.ExpireAtMS = farAhead }),
	"enqueue later":  cutEnqueue(func(j *api.NewJob) { j.RunAtMS = farAhead }),
	"enqueue unique waiting": func(t *testing.T, f *fixture) (func(*fixture) ([]string, error), func(*testing.T, *fixture, map[string]*stored)) {
		first := f.add(t, job(`0`))[0].ID
		return cutEnqueue(func(j *api.NewJob) { j.UniqueKey, j.DependsOn = "k", []string{first} })(t, f)
	},
	"enqueue in a batch": cutEnqueueInBatch, "enqueue again": cutEnqueueAgain, "claim": cutClaim,
	"claim again": cutClaimAgain, "ack plain": cutAckPlain, "ack": cutAck, "continue": cutPutBack(func(a *api.JobAck) { a.Continue = true }),
	"hold with a checkpoint": cutPutBack(func(a *api.JobAck) { a.Hold, a.Checkpoint = "why", json.RawMessage(`3`) }),
	"fail":                   cutFail(4, api.JobRetrying), "fail for good": cutFail(1, api.JobDead),
	"heartbeat": cutHeartbeat, "cancel": cutSteer(api.JobCancelled, func(f *fixture, id string) error {
		_, err := f.Cancel(context.Background(), f.tenant, id)
		return err
	}),
	"hold": cutSteer(api.JobHeld, func(f *fixture, id string) error {
		_, err := f.Hold(context.Background(), f.tenant, id, "why")
		return err
	}),
	"move": cutSteer(api.JobPending, func(f *fixture, id string) error {
		_, err := f.Move(context.Background(), f.tenant, id, "others")
		return err
	}),
	"retry": cutRetry, "delete": cutDelete, "reclaim": cutMaintain(true), "promote": cutMaintain(false),
	"seal": cutSeal, "delete a batch": cutDeleteBatch, "chain": cutChain, "dependents": cutDependents, "clear": cutClear,
}
