package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// checker is the part of testing.TB that the checks need, which rapid.T has, too.
type checker interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// stored is a job as it is stored.
type stored struct {
	api.JobSpec
	run     string
	state   api.JobState
	attempt int
	epoch   int64
	at      int64
}

func readStored(t checker, spec, run string) *stored {
	t.Helper()
	s := &stored{run: run}
	header, _, _ := strings.Cut(spec, "\n")
	if err := json.Unmarshal([]byte(header), &s.JobSpec); err != nil {
		t.Fatalf("spec %q: %v", spec, err)
	}
	if n, err := fmt.Sscanf(run, "%s %d %d %d", &s.state, &s.attempt, &s.epoch, &s.at); n != 4 {
		t.Fatalf("run %q: got %d fields and error %v, want 4", run, n, err)
	}
	return s
}

// scan returns the store's keys that match a pattern.
func (f *fixture) scan(t checker, pattern string) (keys []string) {
	t.Helper()
	return storagetest.Keys(t, f.store.Client(), pattern)
}

// jobs reads all jobs of the tenant.
func (f *fixture) jobs(t checker) map[string]*stored {
	t.Helper()
	keys := f.store.JobKeys(f.tenant)
	prefix, _, _ := strings.Cut(keys.Run("*"), "*")
	var ids []string
	for _, key := range f.scan(t, prefix+"*") { // any key of a job means that the job must exist
		id, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ":")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	pipe := f.store.Client().Pipeline()
	replies := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		replies[i] = pipe.MGet(t.Context(), keys.Spec(id), keys.Run(id))
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("Exec: %v", err)
	}
	out := map[string]*stored{}
	for i, reply := range replies {
		id := ids[i]
		spec, ok1 := reply.Val()[0].(string)
		run, ok2 := reply.Val()[1].(string)
		if !ok1 || !ok2 {
			t.Errorf("job %s has spec and run %v, want both", id, reply.Val())
			continue
		}
		out[id] = readStored(t, spec, run)
	}
	return out
}

// queues returns the paths of the tenant's queues.
func (f *fixture) queues(t checker) []string {
	t.Helper()
	names, err := f.store.Client().SMembers(t.Context(), f.store.JobKeys(f.tenant).Queues()).Result()
	if err != nil {
		t.Fatalf("Result: %v", err)
	}
	slices.Sort(names)
	return names
}

// settle maintains all queues of the tenant until no work is due.
func (f *fixture) settle(t checker) {
	t.Helper()
	for range 50 {
		busy := false
		for _, name := range f.queues(t) {
			ns, q, _ := strings.Cut(name, "/")
			c, err := f.Tend(t.Context(), f.tenant, ns, q, f.clock.ms.Load())
			if err != nil {
				t.Fatalf("Tend: %v", err)
			}
			c.Queues = 0
			busy = busy || c != (queue.Counts{})
		}
		if !busy {
			return
		}
	}
	t.Fatal("maintenance still finds work after the last round")
}

// sound settles the tenant's queues and checks the invariants of the store. The accepted jobs must
// exist and be indexed. Others may be in no index, since their enqueue may have been interrupted.
func (f *fixture) sound(t checker, accepted ...string) map[string]*stored {
	t.Helper()
	jobs := f.soundIndexes(t, func(id string) bool { return !slices.Contains(accepted, id) })
	for _, id := range accepted {
		if jobs[id] == nil {
			t.Errorf("accepted job %s: got no record, want one", id)
		}
	}
	if !f.crashed && !f.repaired {
		f.soundBatches(t, jobs)
	}
	return jobs
}

// soundIndexes is sound without the counts of batches, which retries and deletes do not change. A job
// for which unborn returns true may be in no index.
func (f *fixture) soundIndexes(t checker, unborn func(id string) bool) map[string]*stored {
	t.Helper()
	f.settle(t)
	jobs := f.jobs(t)
	indexes := map[string][]string{}
	for _, name := range f.queues(t) {
		ns, q, _ := strings.Cut(name, "/")
		f.soundQueue(t, jobs, indexes, name, f.store.JobKeys(f.tenant).Queue(ns, q))
	}
	for id, j := range jobs {
		want := []string{j.Namespace + "/" + j.Queue + ":" + string(j.state)}
		indexed := slices.Equal(indexes[id], want) || f.crashed && slices.Contains(indexes[id], want[0])
		if !indexed && (len(indexes[id]) > 0 || !unborn(id)) {
			t.Errorf("job %s (%s) is indexed in %v, want %v", id, j.run, indexes[id], want)
		}
	}
	if !f.crashed && !f.repaired {
		f.soundUniques(t, jobs)
	}
	return jobs
}

func (f *fixture) members(t checker, key string) []redis.Z {
	t.Helper()
	zs, err := f.store.Client().ZRangeWithScores(t.Context(), key, 0, -1).Result()
	if err != nil {
		t.Fatalf("Result: %v", err)
	}
	return zs
}

func (f *fixture) soundQueue(t checker, jobs map[string]*stored, indexes map[string][]string, name string, k storage.QueueKeys) {
	t.Helper()
	cursors, err := f.store.Client().HGetAll(t.Context(), k.Cursor()).Result()
	if err != nil {
		t.Fatalf("Result: %v", err)
	}
	for _, state := range api.JobStates() {
		var members []redis.Z
		for _, set := range k.Sets(state) {
			members = append(members, f.members(t, set)...)
		}
		for _, z := range members {
			id, _ := z.Member.(string)
			j := jobs[id]
			if f.repaired && state.Terminal() && (j == nil || j.state != state) {
				continue // the entry is removed when the set is purged
			}
			indexes[id] = append(indexes[id], name+":"+string(state))
			if f.crashed && (j == nil || j.state != state || state == api.JobActive) {
				continue
			}
			if j == nil {
				t.Errorf("%s of %s: got entry %s without a job, want a job", state, name, id)
				continue
			}
			switch state {
			case api.JobPending:
				rank := j.Priority.Rank()
				cursor, _ := strconv.ParseFloat(cursors[strconv.Itoa(rank)], 64)
				if z.Score < cursor || int(z.Score)>>51 != rank {
					t.Errorf("pending job %s of priority %q: got score %.0f, want one of its rank %d, at least the cursor %.0f", id, j.Priority, z.Score, rank, cursor)
				}
			case api.JobActive, api.JobScheduled, api.JobRetrying, api.JobCompleted, api.JobDead, api.JobCancelled:
				if int64(z.Score) != j.at {
					t.Errorf("%s job %s with run %s: got score %.0f, want %d", state, id, j.run, z.Score, j.at)
				}
			}
		}
	}
	for _, z := range f.members(t, k.After()) {
		t.Errorf("queue %s: got the unhandled end of job %v, want none", name, z.Member)
	}
	for _, z := range f.members(t, k.Expiry()) {
		id, _ := z.Member.(string)
		if j := jobs[id]; j != nil && !j.state.Terminal() && j.ExpireAtMS == 0 && int64(z.Score) <= f.clock.ms.Load() {
			t.Errorf("expiry: got job %s (%s) without an expiry in the set, want none", id, j.run)
		} else if f.repaired && (j == nil || j.state.Terminal()) {
			t.Errorf("expiry: got job %s with record %+v in the set, want none that ended", id, j)
		}
	}
	if f.repaired {
		f.soundDue(t, name, k)
	}
}

// soundDue checks that the queue is marked as due in time.
func (f *fixture) soundDue(t checker, name string, k storage.QueueKeys) {
	t.Helper()
	first := 0.0
	for _, set := range []string{
		k.Set(string(api.JobScheduled)), k.Set(string(api.JobRetrying)), k.Set(string(api.JobActive)), k.Expiry(),
	} {
		if zs := f.members(t, set); len(zs) > 0 && (first == 0 || zs[0].Score < first) {
			first = zs[0].Score
		}
	}
	member := storage.DueQueuePrefix + f.tenant + "/" + name
	due, err := f.store.Client().ZScore(t.Context(), storage.KeyDue(storage.DueShard(member)), member).Result()
	if first > 0 && (err != nil || due > first+60_000) {
		t.Errorf("queue %s: got it due at %.0f and error %v, want at most a minute after its first work at %.0f", name, due, err, first)
	}
}

// soundUniques checks that every holder of a unique key lives.
func (f *fixture) soundUniques(t checker, jobs map[string]*stored) {
	t.Helper()
	for _, key := range f.scan(t, f.store.JobKeys(f.tenant).Unique("*", "*", "*")) {
		id, err := f.store.Client().Get(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("Result: %v", err)
		}
		if j := jobs[id]; j == nil || j.state.Terminal() {
			t.Errorf("unique key %s: got holder %s, which is %+v, want one that has not ended", key, id, j)
		}
	}
}

// soundBatches checks that the counts of batches are correct, and that a callback exists if and only if
// the batch is complete.
func (f *fixture) soundBatches(t checker, jobs map[string]*stored) {
	t.Helper()
	of := map[string][]*stored{}
	for _, j := range jobs {
		if j.BatchID != "" {
			of[j.BatchID] = append(of[j.BatchID], j)
		}
	}
	for id, members := range of {
		b, err := f.GetBatch(t.Context(), f.tenant, members[0].Namespace, id)
		if err != nil {
			t.Fatalf("GetBatch: %v", err)
		}
		var completed, failed int64
		for _, j := range members {
			switch j.state {
			case api.JobCompleted:
				completed++
			case api.JobDead, api.JobCancelled:
				failed++
			}
		}
		if b.Total != int64(len(members)) || b.Succeeded != completed || b.Failed != failed || b.Pending != b.Total-completed-failed {
			t.Errorf("got batch %+v, want the recounted %d jobs, %d completed, %d failed", b, len(members), completed, failed)
		}
		done := b.Sealed && b.Pending == 0 && b.CallbackID != ""
		if made := jobs[b.CallbackID] != nil; made != done {
			t.Errorf("batch %+v: the callback exists is %v, want %v", b, made, !made)
		}
	}
}
