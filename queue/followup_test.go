package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// The ends of 64 jobs of a batch are counted by one script, and their markers removed at once.
func TestFollowUpsOfABatchAreOneCount(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	batch, err := f.CreateBatch(t.Context(), f.tenant, namespace, nil)
	if err != nil {
		t.Fatalf("CreateBatch: %v", err)
	}
	jobs := make([]api.NewJob, 64)
	for i := range jobs {
		jobs[i] = job(`1`, func(j *api.NewJob) { j.BatchID = batch.ID })
	}
	f.add(t, jobs...)
	acks := make([]api.JobAck, len(jobs))
	for i, j := range f.fetch(t, len(jobs)) {
		acks[i] = api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch}
	}
	scripts, removals := storagetest.CountCommands(f.store.Client(), "evalsha"), storagetest.CountCommands(f.store.Client(), "zrem")
	if _, err := f.Ack(t.Context(), f.tenant, acks); err != nil {
		t.Fatalf("Ack: %v", err)
	}
	// The scripts are those of the short ack, which leaves all of them, of the ack and of the count.
	if scripts() != 3 || removals() != 1 {
		t.Errorf("64 acks of a batch: got %d scripts and %d removals, want 3 and 1", scripts(), removals())
	}
	after, err := f.GetBatch(t.Context(), f.tenant, namespace, batch.ID)
	if err != nil || after.Succeeded != 64 {
		t.Errorf("GetBatch after the acks: got %+v and error %v, want 64 succeeded", after, err)
	}
}

// A job whose record cannot be decoded keeps its marker, and stops the consequences of no other.
func TestFollowUpsPassOverDamagedRecords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	chained := func(j *api.NewJob) {
		j.Chain = &api.Chain{Steps: []api.ChainStep{{Queue: "next", NewJob: job(`2`)}}}
	}
	added := f.add(t, job(`1`, chained), job(`1`, chained), job(`1`, chained))
	acks := make([]api.JobAck, len(added))
	for i, j := range f.fetch(t, len(added)) {
		acks[i] = api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch}
	}
	keys := f.store.JobKeys(f.tenant)
	damaged := added[1].ID
	if err := f.store.Client().Set(t.Context(), keys.Spec(damaged), "{", 0).Err(); err != nil {
		t.Fatalf("Set: %v", err)
	}
	if _, err := f.Ack(t.Context(), f.tenant, acks); err != nil {
		t.Fatalf("Ack: %v", err)
	}
	for i, job := range added {
		step := api.DerivedJobID("chain", f.tenant, job.ID, "step")
		_, err := f.Get(t.Context(), f.tenant, step)
		if want := job.ID == damaged; (api.ErrorCode(err) == api.CodeJobNotFound) != want || !want && err != nil {
			t.Errorf("Get of the step after job %d: got error %v, want CodeJobNotFound: %t", i, err, want)
		}
	}
	left, err := f.store.Client().ZRange(t.Context(), keys.Queue(namespace, emails).After(), 0, -1).Result()
	if diff := cmp.Diff([]string{damaged}, left); err != nil || diff != "" {
		t.Errorf("markers after the acks: error %v (-want +got):\n%s", err, diff)
	}
}

// A queue that is cleared keeps a cancelled job whose consequences could not be handled: its record
// holds the chain.
func TestClearKeepsJobsThatWereNotFollowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	chained := func(j *api.NewJob) {
		j.Chain = &api.Chain{OnExit: &api.ChainStep{Queue: "next", NewJob: job(`2`)}}
	}
	added := f.add(t, job(`1`, chained), job(`1`, chained))
	dependents := f.store.JobKeys(f.tenant).Dependents(added[0].ID)
	if err := f.store.Client().Set(t.Context(), dependents, "no set", 0).Err(); err != nil {
		t.Fatalf("Set: %v", err)
	}
	if n, err := f.Clear(t.Context(), f.tenant, namespace, emails); err != nil || n != 1 {
		t.Errorf("Clear: got %d and error %v, want the one job that was followed", n, err)
	}
	if got := f.get(t, added[0].ID); got.State != api.JobCancelled {
		t.Errorf("Get after Clear: got %s, want cancelled", got.State)
	}
	if err := f.store.Client().Del(t.Context(), dependents).Err(); err != nil {
		t.Fatalf("Del: %v", err)
	}
	f.tend(t)
	step := api.DerivedJobID("chain", f.tenant, added[0].ID, "exit")
	if got := f.get(t, step); got.Queue != "next" {
		t.Errorf("Get of the step after maintenance: got queue %q, want next", got.Queue)
	}
}

// One end may end many more in turn: each of 50 jobs waits for the one before.
func TestFollowUpsOfDependentsInARow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	ids := []string{f.add(t, job(`1`))[0].ID}
	for len(ids) < 50 {
		before := ids[len(ids)-1]
		ids = append(ids, f.add(t, job(`1`, func(j *api.NewJob) { j.DependsOn = []string{before} }))[0].ID)
	}
	if _, err := f.Cancel(t.Context(), f.tenant, ids[0]); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	for i, id := range ids[1:] {
		if got := f.get(t, id); got.State != api.JobDead || got.DeadReason != api.DeadDependency {
			t.Fatalf("Get of dependent %d after Cancel: got %s (%q), want dead (%q)", i+1, got.State, got.DeadReason, api.DeadDependency)
		}
	}
}

// A job that was retried while the consequences of its end were handled has ended again: the newer
// marker stays, so that maintenance handles that end.
func TestFollowUpsLeaveNewerMarkers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	added := f.add(t, job(`1`, func(j *api.NewJob) { j.Chain = &api.Chain{OnExit: &api.ChainStep{Queue: "next", NewJob: job(`2`)}} }))
	markers := f.store.JobKeys(f.tenant).Queue(namespace, emails).After()
	newer := redis.Z{Score: float64(f.clock.ms.Load() + 1), Member: added[0].ID}
	reads := 0
	f.store.Client().AddHook(storagetest.Before(func(cmds []redis.Cmder) {
		if cmds[0].Name() != "zscore" || cmds[0].Args()[1] != markers {
			return
		}
		reads++
		if reads != 2 { // the second comes when the consequences were handled
			return
		}
		if err := f.store.Client().ZAdd(t.Context(), markers, newer).Err(); err != nil {
			t.Errorf("ZAdd: %v", err)
		}
	}))
	if _, err := f.Cancel(t.Context(), f.tenant, added[0].ID); err != nil {
		t.Fatalf("Cancel: %v", err)
	}
	left, err := f.store.Client().ZRangeWithScores(t.Context(), markers, 0, -1).Result()
	if diff := cmp.Diff([]redis.Z{newer}, left); err != nil || diff != "" {
		t.Errorf("markers after Cancel: error %v (-want +got):\n%s", err, diff)
	}
}

// Follow-ups that run at the same time make the same jobs, which one flush may have twice.
func TestJobsOfThePlatformAreAddedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	f.recordEvents(t, event.RecordAll)
	ids := []string{api.DerivedJobID("chain", "a"), api.DerivedJobID("chain", "a"), api.DerivedJobID("chain", "b")}
	for i, err := range f.FlushInternals(t.Context(), f.tenant, namespace, emails, ids) {
		if err != nil {
			t.Errorf("job %d: got error %v, want none", i, err)
		}
	}
	got := []string{}
	for _, e := range f.recorded(t) {
		got = append(got, e.Subject)
	}
	if diff := cmp.Diff([]string{"jobs/" + ids[0], "jobs/" + ids[2]}, got); diff != "" {
		t.Errorf("subjects of the events (-want +got):\n%s", diff)
	}
	if got := f.fetch(t, 3); len(got) != 2 {
		t.Errorf("fetch: got %d jobs, want 2", len(got))
	}
}
