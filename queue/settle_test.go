package queue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestRepeatsAreAnsweredWithSuccess: repeating a call of one epoch changes nothing, even if another
// worker has the job by then.
func TestRepeatsAreAnsweredWithSuccess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`))
		one := f.fetch(t, 1)[0]
		for range 3 {
			if out := f.fail(t, one, func(j *api.JobFail) { j.RetryAfterMS = new(int64) }); !out.OK || out.State != api.JobRetrying {
				t.Fatalf("fail: got %+v, want success and state retrying", out)
			}
			out, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: one.ID, LeaseEpoch: 1}})
			if err != nil || out[0].Code != api.CodeJobLeaseLost {
				t.Fatalf("Heartbeat after the fail: got %v, error %v, want CodeJobLeaseLost", out, err)
			}
		}
		f.tend(t)
		two := f.fetch(t, 1)[0]
		if out := f.fail(t, one); !out.OK || out.State != api.JobActive {
			t.Errorf("repeated Fail under another worker's lease = %+v, want success", out)
		}
		for range 3 {
			out, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: two.ID, LeaseEpoch: 2}})
			if err != nil || !out[0].OK || out[0].LeaseExpiresMS == 0 {
				t.Fatalf("Heartbeat: got %v, error %v, want success and the end of the lease", out, err)
			}
		}
		for range 3 {
			if out := f.ack(t, two, `2`); !out.OK {
				t.Fatalf("ack: got %+v, want success", out)
			}
		}
		if j := f.get(t, two.ID); len(j.Errors) != 1 || string(j.Result) != "2" {
			t.Errorf(`got job %+v, want 1 error and result 2`, j)
		}
	})
}

// TestALateWorkerChangesNothing: after a reclaim the calls of the former worker fail, and the outcome
// is that of the new one.
func TestALateWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`))
		late := f.fetch(t, 1)[0]
		f.clock.advance(31 * time.Second)
		f.tend(t)
		other := f.fetch(t, 1)[0]
		settles := map[string]func() api.JobOutcome{
			"ack":  func() api.JobOutcome { return f.ack(t, late, `"late"`) },
			"fail": func() api.JobOutcome { return f.fail(t, late) },
			"continue": func() api.JobOutcome {
				out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: late.ID, LeaseEpoch: 1, Continue: true, Checkpoint: json.RawMessage(`9`)}})
				if err != nil {
					t.Fatalf("Ack: %v", err)
				}
				return out[0]
			},
		}
		for name, settle := range settles {
			if out := settle(); out.Code != api.CodeJobLeaseLost || out.State != api.JobActive {
				t.Errorf("%s by the late worker: got %+v, want CodeJobLeaseLost and state active", name, out)
			}
		}
		f.ack(t, other, `"mine"`)
		for name, settle := range settles {
			if out := settle(); out.Code != api.CodeJobLeaseLost || out.State != api.JobCompleted {
				t.Errorf("%s after the end = %+v, want CodeJobLeaseLost and completed", name, out)
			}
		}
		if j := f.get(t, other.ID); string(j.Result) != `"mine"` || len(j.Errors) != 1 || j.Checkpoint != nil {
			t.Errorf("got job %+v, want result \"mine\", 1 error and no checkpoint", j)
		}
	})
}

// TestSummariesDoNotOutliveAMove: a job that another replica moved to another queue and handed to a
// worker is completed in the new queue.
func TestSummariesDoNotOutliveAMove(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.AllBackends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			f := replicas(t, backend)[0]
			other := f.beside(t, backend.Config(t), 0)
			if backend.Name == "embedded" { // each Config is another store
				other.Broker, other.store = brokerOn(t, f.store), f.store
			}
			id := f.add(t, job(`1`))[0].ID
			if _, err := other.Move(t.Context(), f.tenant, id, "others"); err != nil {
				t.Fatalf("Move: %v", err)
			}
			got, err := other.Fetch(t.Context(), queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"others"}, WorkerID: "w1"})
			if err != nil || len(got) != 1 {
				t.Fatalf("Fetch: got %v, error %v, want one job", got, err)
			}
			if _, err := f.Heartbeat(t.Context(), f.tenant, []api.JobHeartbeat{{ID: id, LeaseEpoch: got[0].LeaseEpoch}}); err != nil {
				t.Fatalf("Heartbeat: %v", err)
			}
			if out := f.ack(t, got[0], ""); !out.OK {
				t.Fatalf("ack: got %+v, want success", out)
			}
			f.sound(t, id)
		})
	}
}

// TestAMovedJobIsNotServedInItsOldQueue: an entry that a crash left in the old queue is dropped, and
// the job keeps its position in the new one.
func TestAMovedJobIsNotServedInItsOldQueue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		old := f.store.JobKeys(f.tenant).Queue(namespace, emails).Set("pending")
		entry := f.members(t, old)[0]
		if _, err := f.Move(t.Context(), f.tenant, id, "others"); err != nil {
			t.Fatalf("Move: %v", err)
		}
		if err := f.store.Client().ZAdd(t.Context(), old, entry).Err(); err != nil {
			t.Fatalf("ZAdd: %v", err)
		}
		if got := f.fetch(t, 1); len(got) != 0 {
			t.Errorf("fetch: got %+v, want no job", got)
		}
		f.sound(t, id)
	})
}

// TestMaintenanceDropsNoJobThatCameBack: an entry is dropped only if the job's run is still the one
// that made it a stray.
func TestMaintenanceDropsNoJobThatCameBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		k := f.store.JobKeys(f.tenant)
		active := k.Queue(namespace, emails).Set("active")
		read := "pending 0 0 1 - -" // what maintenance read before the job was fetched
		f.fetch(t, 1)
		for _, run := range []string{read, ""} {
			dropped, err := f.store.Script(t.Context(), "job_drop.lua", []string{active, k.Run(id)}, 1, id, run)
			if list, ok := dropped.([]any); err != nil || !ok || len(list) != 0 {
				t.Errorf("Drop of an entry whose job has changed = %v, %v, want none", dropped, err)
			}
		}
		for _, want := range []int{1, 0} { // an entry that is already dropped does not count
			dropped, err := f.store.Script(t.Context(), "job_drop.lua", []string{active, k.Run(api.NewJobID())}, 1, id, "")
			if list, ok := dropped.([]any); err != nil || !ok || len(list) != want {
				t.Errorf("Drop of a stray = %v, %v, want %d", dropped, err, want)
			}
		}
	})
}

func TestResultsKeepToTheirSchema(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`, func(j *api.NewJob) {
			j.ResultSchema = json.RawMessage(`{"type":"object","required":["sent"]}`)
		}))
		j := f.fetch(t, 1)[0]
		if out := f.ack(t, j, `{"other":1}`); out.Code != api.CodeJobResult {
			t.Errorf("ack with a result that violates the schema: got %+v, want CodeJobResult", out)
		}
		if out := f.ack(t, j, `{"sent":1}`); !out.OK {
			t.Errorf("ack: got %+v, want success", out)
		}
	})
}

// TestHostileResultSchemasEndSoon: neither compiling a schema nor validating a result takes long,
// whatever the schema contains.
func TestHostileResultSchemasEndSoon(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	for name, schema := range map[string]string{
		"without an end": `{"$ref":"#"}`,
		"large pattern":  `{"pattern":"((a{30}){30}){30}b"}`,
		"large number":   `{"minimum":1e999999}`,
		"from elsewhere": `{"$ref":"file:///etc/passwd"}`,
	} {
		_, err := f.Enqueue(t.Context(), queue.Enqueue{
			Tenant: f.tenant, Namespace: namespace, Queue: emails,
			Jobs: []api.NewJob{job(`1`, func(j *api.NewJob) { j.ResultSchema = json.RawMessage(schema) })},
		})
		if api.ErrorCode(err) != api.CodeInvalid || !strings.Contains(err.Error(), "result_schema") {
			t.Errorf(`Enqueue with %s: got error %v, want CodeInvalid for result_schema`, name, err)
		}
	}
	// Each level is validated in two ways, so that the innermost is validated in 2^60 ways.
	f.add(t, job(`1`, func(j *api.NewJob) {
		j.ResultSchema = json.RawMessage(`{"items":{"$ref":"#"},"contains":{"$ref":"#"}}`)
	}))
	result := strings.Repeat("[", 60) + "1" + strings.Repeat("]", 60)
	if out := f.ack(t, f.fetch(t, 1)[0], result); out.Code != api.CodeJobResult {
		t.Errorf("ack with a result that violates the schema: got %+v, want CodeJobResult", out)
	}
}

// TestSchemasOfACallAreBounded: their number, and the cost of compiling them and of checking
// results against them, whatever each of them may cost alone.
func TestSchemasOfACallAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Redis(t).URL})
	enqueue := func(n int, schema func(i int) string) error {
		jobs := make([]api.NewJob, n)
		for i := range jobs {
			jobs[i] = job(`1`, func(j *api.NewJob) { j.ResultSchema = json.RawMessage(schema(i)) })
		}
		_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: jobs})
		return err
	}
	small := func(i int) string { return fmt.Sprintf(`{"maximum":%d}`, i) }
	if err := enqueue(api.MaxEnqueueSchemas+1, small); api.ErrorCode(err) != api.CodeInvalid || !strings.Contains(err.Error(), "result_schema") {
		t.Errorf("Enqueue with %d schemas: got error %v, want CodeInvalid for result_schema", api.MaxEnqueueSchemas+1, err)
	}
	if err := enqueue(api.MaxEnqueueSchemas, small); err != nil {
		t.Errorf("Enqueue with %d schemas: got error %v, want none", api.MaxEnqueueSchemas, err)
	}
	if err := enqueue(api.MaxEnqueueJobs, func(int) string { return small(1) }); err != nil {
		t.Errorf("Enqueue of %d jobs with one schema: got error %v, want none", api.MaxEnqueueJobs, err)
	}
	names := strings.Repeat(`"name":{"minLength":1},`, 300)
	large := func(i int) string { return fmt.Sprintf(`{"properties":{%s"n":{"maximum":%d}}}`, names, i) }
	if err := enqueue(api.MaxEnqueueSchemas, large); api.ErrorCode(err) != api.CodeBodyLimit {
		t.Errorf("Enqueue with %d schemas of %d bytes: got error %v, want CodeBodyLimit", api.MaxEnqueueSchemas, len(large(1)), err)
	}
}

// TestErrorsAreTruncated: the error of a worker is kept up to its maximum size, in whole characters.
func TestErrorsAreTruncated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, job(`1`))
		f.fail(t, f.fetch(t, 1)[0], func(j *api.JobFail) {
			j.Error, j.Stack, j.Fatal = strings.Repeat("é", api.MaxJobErrorBytes), "a\xff", true
		})
		for _, j := range f.jobs(t) {
			if j.state != api.JobDead {
				t.Errorf("got job %+v, want state dead", j)
			}
		}
		items, _, err := f.List(t.Context(), queue.List{Tenant: f.tenant, Namespace: namespace, Queue: emails, State: api.JobDead})
		if err != nil || len(items) != 1 {
			t.Fatalf("List of dead jobs: got %v, error %v, want one", items, err)
		}
		e := f.get(t, items[0].ID).Errors[0]
		if len(e.Error) != api.MaxJobErrorBytes || strings.Contains(e.Error, "\uFFFD") || e.Stack != "a\uFFFD" {
			t.Errorf("got stored error of %d bytes and stack %q, want %d whole bytes and %q", len(e.Error), e.Stack, api.MaxJobErrorBytes, "a\uFFFD")
		}
	})
}

// TestALeaseThatLastsIsNotReclaimed: a job whose index entry is due is not reclaimed before its lease
// expires. A heartbeat may come between the reads of the index and of the job.
func TestALeaseThatLastsIsNotReclaimed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := f.add(t, job(`1`))[0].ID
		f.fetch(t, 1)
		active := f.store.JobKeys(f.tenant).Queue(namespace, emails).Set("active")
		if err := f.store.Client().ZAdd(t.Context(), active, redis.Z{Score: 1, Member: id}).Err(); err != nil {
			t.Fatalf("ZAdd: %v", err)
		}
		if c := f.tend(t); c.Reclaimed != 0 || c.Repaired != 1 {
			t.Errorf("tend: got %+v, want none reclaimed and 1 repaired", c)
		}
		f.sound(t, id)
	})
}

// between is a hook that runs step before the nth script whose first key begins with prefix.
func between(prefix string, nth int64, step func()) storagetest.Before {
	seen := &atomic.Int64{}
	return func(cmds []redis.Cmder) {
		args := cmds[0].Args()
		if cmds[0].Name() == "evalsha" && strings.HasPrefix(fmt.Sprint(args[min(3, len(args)-1)]), prefix) && seen.Add(1) == nth {
			step()
		}
	}
}

// TestALeaseThatIsLostWhileItIsSettled: the job is handed to another worker between the read and the
// write of a call that settles it.
func TestALeaseThatIsLostWhileItIsSettled(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	f := newFixture(t, cfg)
	other := f.beside(t, cfg, 0)
	id := f.add(t, job(`1`))[0].ID
	late := f.fetch(t, 1)[0]
	f.store.Client().AddHook(between("cs:queue:", 1, func() {
		f.clock.advance(time.Minute)
		other.tend(t)
		if got := other.fetch(t, 1); len(got) != 1 {
			t.Errorf("fetch: got %+v, want one job", got)
		}
	}))
	out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: late.LeaseEpoch, Continue: true, Checkpoint: json.RawMessage(`9`)}})
	if err != nil || out[0].Code != api.CodeJobLeaseLost {
		t.Errorf("Ack: got %+v, error %v, want CodeJobLeaseLost", out, err)
	}
	if j := other.get(t, id); j.State != api.JobActive || j.Lease.Epoch != 2 || j.Checkpoint != nil {
		t.Errorf("got job %+v, want state active with epoch 2 and no checkpoint", j)
	}
}
