package queue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/storagetest"
)

// TestRateLimitSlides: no window of any start sees more claims than the limit, and claims of one
// moment leave the window together, so that a worker that is fast enough loses no time.
func TestRateLimitSlides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		limit, window := int64(10), int64(1000)
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{RateLimit: &limit, RateWindowMS: &window}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		jobs := make([]api.NewJob, 200)
		for i := range jobs {
			jobs[i] = job(`1`)
		}
		f.add(t, jobs...)
		var began []int64
		for step := 0; len(began) < 100 && step < 10_000; step++ {
			for range f.fetch(t, 1+step%4) {
				began = append(began, f.clock.ms.Load())
			}
			f.clock.advance(time.Duration(7+step%13) * time.Millisecond)
		}
		for i := 10; i < len(began); i++ {
			if began[i]-began[i-10] < window {
				t.Fatalf("11 jobs were claimed within %d ms, want at least %d ms", began[i]-began[i-10], window)
			}
		}
		if spent := began[99] - began[0]; spent > 9*(window+window/10) {
			t.Errorf("100 jobs took %d ms, want at most %d", spent, 9*(window+window/10))
		}
	})
}

// TestARateWindowThatIsNoMultipleOfTen: its tenths are rounded, and the limit holds nevertheless.
// Claims that a release without times counted stay counted until their tenth has left.
func TestARateWindowThatIsNoMultipleOfTen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		limit, window := int64(2), int64(109)
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{RateLimit: &limit, RateWindowMS: &window}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		f.add(t, job(`1`), job(`2`), job(`3`), job(`4`), job(`5`))
		expect := func(what string, after time.Duration, want int) {
			t.Helper()
			f.clock.advance(after)
			if got := f.fetch(t, 5); len(got) != want {
				t.Errorf("%s: Fetch(5) returned %d jobs, want %d", what, len(got), want)
			}
		}
		expect("at first", 0, 2)
		expect("before the window has passed", 108*time.Millisecond, 0)
		expect("once it has passed", time.Millisecond, 2)
		tenth := f.clock.ms.Load() / 10
		rate := f.store.JobKeys(f.tenant).Queue(namespace, emails).Rate()
		if err := f.store.Client().HSet(t.Context(), rate, "tenths", fmt.Sprintf("%d:2", tenth)).Err(); err != nil {
			t.Fatalf("HSet: %v", err)
		}
		expect("with the count of an older release", 108*time.Millisecond, 0)
		expect("once its tenth has left", 10*time.Millisecond, 1)
	})
}

// TestAWaitingFetch: a fetch is woken by an enqueue of another replica and by a resume, and
// returns when its wait is over.
func TestAWaitingFetch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		wait := func(d time.Duration) <-chan []api.FetchedJob {
			got := make(chan []api.FetchedJob, 1)
			go func() {
				jobs, err := f.Fetch(t.Context(), queue.Fetch{
					Tenant: f.tenant, Namespace: namespace, Queues: []string{emails, "others"}, WorkerID: "w1", Wait: d,
				})
				if err != nil {
					t.Errorf("Fetch: %v", err)
				}
				got <- jobs
			}()
			return got
		}
		if got := <-wait(50 * time.Millisecond); len(got) != 0 {
			t.Errorf("fetch that waits for 50 ms: got %+v, want no job", got)
		}
		waits := wait(30 * time.Second)
		f.add(t, job(`1`))
		if got := <-waits; len(got) != 1 {
			t.Errorf("fetch that waits while a job is enqueued: got %+v, want one job", got)
		}
		paused := true
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{Paused: &paused}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		f.add(t, job(`2`))
		waits = wait(30 * time.Second)
		paused = false
		if _, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{Paused: &paused}); err != nil {
			t.Fatalf("Configure: %v", err)
		}
		if got := <-waits; len(got) != 1 || string(got[0].Payload) != "2" {
			t.Errorf(`fetch: got %+v, want one job with payload 2`, got)
		}
	})
}

// TestExpiry: a job that has not started at its expiry is dead, an active one may finish, and one
// that an operator retried does not expire again.
func TestExpiry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		soon := func(j *api.NewJob) { j.ExpireAtMS = f.clock.ms.Load() + 1000 }
		runs := f.add(t, job(`1`, soon))[0].ID
		running := f.fetch(t, 1)[0]
		waits := f.add(t, job(`2`, soon), job(`3`, soon, func(j *api.NewJob) { j.Hold = true }))
		f.clock.advance(time.Second)
		if got := f.fetch(t, 10); len(got) != 0 {
			t.Errorf("Fetch = %+v, want no expired job", got)
		}
		f.settle(t)
		for _, w := range waits {
			if j := f.get(t, w.ID); j.State != api.JobDead || j.DeadReason != api.DeadExpired || j.Attempt != 0 {
				t.Errorf("got job %+v, want state dead for reason %s without an attempt", j, api.DeadExpired)
			}
		}
		if out := f.ack(t, running, ""); !out.OK {
			t.Errorf("ack: got %+v, want success", out)
		}
		if _, err := f.Retry(t.Context(), f.tenant, waits[0].ID); err != nil {
			t.Fatalf("Retry: %v", err)
		}
		f.clock.advance(time.Hour)
		f.settle(t)
		if got := f.fetch(t, 10); len(got) != 1 || got[0].ID != waits[0].ID {
			t.Errorf("fetch: got %+v, want job %s alone", got, waits[0].ID)
		}
		f.sound(t, runs)
	})
}

// TestBadEnqueues: one invalid job makes the whole call fail, with its index in the field's path.
func TestBadEnqueues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		big := json.RawMessage(`"` + strings.Repeat("a", api.MaxJobPayloadBytes) + `"`)
		change := func(c func(*api.NewJob)) api.NewJob { return job(`1`, c) }
		tests := map[string]struct {
			job  api.NewJob
			code api.Code
			path string
		}{
			"payload":    {api.NewJob{Payload: big}, api.CodeBodyLimit, "payload"},
			"no JSON":    {job(`{`), api.CodeInvalid, "payload"},
			"priority":   {change(func(j *api.NewJob) { j.Priority = "urgent" }), api.CodeInvalid, "priority"},
			"attempts":   {change(func(j *api.NewJob) { j.MaxAttempts = 1001 }), api.CodeInvalid, "max_attempts"},
			"expired":    {change(func(j *api.NewJob) { j.ExpireAtMS = 1 }), api.CodeInvalid, "expire_at_ms"},
			"backoff":    {change(func(j *api.NewJob) { j.Backoff = "random" }), api.CodeInvalid, "backoff"},
			"depends":    {change(func(j *api.NewJob) { j.DependsOn = []string{"x"} }), api.CodeInvalid, "depends_on"},
			"no job":     {change(func(j *api.NewJob) { j.DependsOn = []string{api.NewJobID()} }), api.CodeJobNotFound, "depends_on"},
			"schema":     {change(func(j *api.NewJob) { j.ResultSchema = json.RawMessage(`{"minLength":"x"}`) }), api.CodeInvalid, "result_schema.minLength"},
			"target":     {change(func(j *api.NewJob) { j.Target = &api.JobTarget{Function: "mail", Alias: "prod"} }), api.CodeQueueReserved, ""},
			"fn step":    {change(func(j *api.NewJob) { j.Chain = &api.Chain{Steps: []api.ChainStep{{Queue: "fn.mail"}}} }), api.CodeQueueReserved, ""},
			"unique key": {change(func(j *api.NewJob) { j.UniqueKey = "{a}" }), api.CodeInvalid, "unique_key"},
		}
		for name, tt := range tests {
			_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`), job(`2`), tt.job}})
			var coded *api.Error
			if !asError(err, &coded) || coded.Code != tt.code {
				t.Errorf("%s: got error %v, want code %s", name, err, tt.code)
				continue
			}
			if want := strings.TrimSuffix("jobs[2]."+tt.path, "."); len(coded.Fields) != 1 || coded.Fields[0].Path != want {
				t.Errorf("%s: got fields %+v, want one with path %q", name, coded.Fields, want)
			}
		}
		if left := f.jobs(t); len(left) != 0 {
			t.Errorf("got jobs %v, want none", left)
		}
	})
}

// TestBounds checks the limits of calls, and the operations reserved for the platform.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			cfg := backend.Config(t)
			cfg.ScriptPrelude = "--\n" // the strict prelude doubles the memory that the embedded store's Lua needs
			boundsOf(t, newFixture(t, cfg))
		})
	}
}

func boundsOf(t *testing.T, f *fixture) {
	t.Helper()
	enqueue := func(q string, n int, payload string) error {
		jobs := make([]api.NewJob, n)
		for i := range jobs {
			jobs[i] = job(payload)
		}
		_, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: q, Jobs: jobs})
		return err
	}
	fetch := func(change func(*queue.Fetch)) error {
		call := queue.Fetch{Tenant: f.tenant, Namespace: namespace, Queues: []string{"nobodys"}, WorkerID: "w1"}
		change(&call)
		_, err := f.Fetch(t.Context(), call)
		return err
	}
	tests := map[string]struct {
		err  error
		code api.Code
	}{
		"no jobs":         {enqueue(emails, 0, `1`), api.CodeInvalid},
		"1001 jobs":       {enqueue(emails, 1001, `1`), api.CodeInvalid},
		"over 8 MiB":      {enqueue(emails, 9, `"`+strings.Repeat("a", 1<<20-2)+`"`), api.CodeBodyLimit},
		"1000 jobs":       {enqueue(emails, 1000, `1`), ""},
		"fn queue":        {enqueue("fn.mail", 1, `1`), api.CodeQueueReserved},
		"unknown queue":   {fetch(func(*queue.Fetch) {}), ""},
		"fetch fn":        {fetch(func(c *queue.Fetch) { c.Queues = []string{"fn.mail"} }), api.CodeQueueReserved},
		"no queues":       {fetch(func(c *queue.Fetch) { c.Queues = nil }), api.CodeInvalid},
		"1001 at once":    {fetch(func(c *queue.Fetch) { c.Count = 1001 }), api.CodeInvalid},
		"short lease":     {fetch(func(c *queue.Fetch) { c.Lease = time.Millisecond }), api.CodeInvalid},
		"long wait":       {fetch(func(c *queue.Fetch) { c.Wait = time.Hour }), api.CodeInvalid},
		"worker's name":   {fetch(func(c *queue.Fetch) { c.WorkerID = "a b" }), api.CodeValidationName},
		"1001 acks":       {second(f.Ack(t.Context(), f.tenant, make([]api.JobAck, 1001))), api.CodeInvalid},
		"1001 fails":      {second(f.Fail(t.Context(), f.tenant, make([]api.JobFail, 1001))), api.CodeInvalid},
		"1001 beats":      {second(f.Heartbeat(t.Context(), f.tenant, make([]api.JobHeartbeat, 1001))), api.CodeInvalid},
		"no such job":     {second(f.Get(t.Context(), f.tenant, api.NewJobID())), api.CodeJobNotFound},
		"no job's id":     {second(f.Cancel(t.Context(), f.tenant, "x")), api.CodeValidationName},
		"moved, no id":    {second(f.Move(t.Context(), f.tenant, "x", emails)), api.CodeValidationName},
		"no such queue":   {second(f.GetQueue(t.Context(), f.tenant, namespace, "nobodys")), api.CodeQueueNotFound},
		"callback's jobs": {second(f.CreateBatch(t.Context(), f.tenant, namespace, &api.BatchCallback{Queue: emails, NewJob: job(`1`, func(j *api.NewJob) { j.DependsOn = []string{api.NewJobID()} })})), api.CodeInvalid},
	}
	for name, tt := range tests {
		if api.ErrorCode(tt.err) != tt.code {
			t.Errorf("%s: %v, want %q", name, tt.err, tt.code)
		}
	}
	got := f.fetch(t, 1000)
	acks := make([]api.JobAck, len(got))
	for i, j := range got {
		acks[i] = api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch}
	}
	out, err := f.Ack(t.Context(), f.tenant, acks)
	if err != nil || len(out) != 1000 {
		t.Fatalf("Ack of 1000 jobs: got %d outcomes, error %v, want 1000", len(out), err)
	}
	for _, o := range out {
		if !o.OK {
			t.Fatalf("Ack: got outcome %+v, want success", o)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestUnknownTransitions: operations that the state of a job does not allow fail with an error that
// names the state.
func TestUnknownTransitions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		held := f.add(t, job(`1`, func(j *api.NewJob) { j.Hold = true }))[0].ID
		pending := f.add(t, job(`2`))[0].ID
		done := f.add(t, job(`3`, func(j *api.NewJob) { j.Priority = api.PriorityHigh }))[0].ID
		active := f.add(t, job(`4`, func(j *api.NewJob) { j.Priority = api.PriorityHigh }))[0].ID
		f.ack(t, f.fetch(t, 2)[0], "")
		steer := map[string]func(id string) error{
			"cancel":  func(id string) error { return second(f.Cancel(t.Context(), f.tenant, id)) },
			"retry":   func(id string) error { return second(f.Retry(t.Context(), f.tenant, id)) },
			"hold":    func(id string) error { return second(f.Hold(t.Context(), f.tenant, id, "")) },
			"approve": func(id string) error { return second(f.Approve(t.Context(), f.tenant, id)) },
			"reject":  func(id string) error { return second(f.Reject(t.Context(), f.tenant, id)) },
			"move":    func(id string) error { return second(f.Move(t.Context(), f.tenant, id, "others")) },
			"delete":  func(id string) error { return f.Delete(t.Context(), f.tenant, id) },
		}
		for _, tt := range []struct {
			op, id string
			state  api.JobState
		}{
			{"cancel", done, api.JobCompleted}, {"retry", done, api.JobCompleted}, {"retry", pending, api.JobPending}, {"retry", active, api.JobActive},
			{"hold", done, api.JobCompleted}, {"hold", active, api.JobActive}, {"approve", pending, api.JobPending}, {"reject", active, api.JobActive},
			{"move", active, api.JobActive}, {"move", done, api.JobCompleted}, {"delete", active, api.JobActive}, {"retry", held, api.JobHeld},
		} {
			err := steer[tt.op](tt.id)
			if api.ErrorCode(err) != api.CodeJobState || !strings.Contains(fmt.Sprint(err), string(" is "+tt.state)) {
				t.Errorf("%s of a job that is %s = %v, want CodeJobState and the state", tt.op, tt.state, err)
			}
		}
		f.sound(t, held, pending, done, active)
	})
}
