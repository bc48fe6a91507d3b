package invoker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
)

// keeping writes its event to the key done, and returns it.
const keeping = `export default async (event) => { await cs.kv.set("done", event); return event; };`

// TestTriggersAskForRoles: a version with a list of roles runs for a queue trigger only if the
// list admits the owner of the trigger, also if the alias has moved to it since.
func TestTriggersAskForRoles(t *testing.T) {
	eachWorking(t, func(b *bench) {
		b.publish("keeper", keeping, asynchronous(1))
		b.triggerFor("keeper", trigger.NewQueueTrigger{}, "operator")
		b.inState(api.JobCompleted, b.mail("1"))

		listed := asynchronous(1)
		listed.Authz = &api.Authz{InvokeHTTPRoles: []string{"role:boss"}}
		b.publish("keeper", keeping, listed)
		refused := b.mailOnce("2")
		b.inState(api.JobDead, refused)
		if got := b.job(refused[0]).Errors; len(got) != 1 || !strings.Contains(got[0].Error, "other roles") {
			b.t.Errorf("got the errors %+v of the job, want one about the roles", got)
		}
		if got := b.kv("done"); got != "1" {
			b.t.Errorf("the function has run with %s last, want 1: the owner lacks its role", got)
		}

		b.triggerFor("keeper", trigger.NewQueueTrigger{BatchSize: 1}, "operator", "role:boss")
		b.eventually("the trigger acts for its new owner", func() bool {
			ids := b.mailOnce("3")
			b.eventually("the job ends", func() bool { return b.job(ids[0]).State.Terminal() })
			return b.job(ids[0]).State == api.JobCompleted
		})
		if got := b.kv("done"); got != "3" {
			b.t.Errorf("the function has run with %s last, want 3: the owner has its role", got)
		}
	})
}

// mailOnce adds a job to the queue mail that is not retried.
func (b *bench) mailOnce(payload string) (ids []string) {
	b.t.Helper()
	made, err := b.broker.Enqueue(b.t.Context(), queue.Enqueue{Tenant: b.tenant, Namespace: namespace, Queue: "mail", Jobs: []api.NewJob{
		{Payload: json.RawMessage(payload), JobOptions: api.JobOptions{MaxAttempts: 1}},
	}})
	if err != nil {
		b.t.Fatalf("Enqueue: %v", err)
	}
	return []string{made[0].ID}
}

// TestJobsAskForRoles: the version that the alias names when a step of a chain or the callback of
// a batch runs must admit the roles of the client that enqueued it. A job without a client, as
// release 0.1.0 stored it, runs only a version without a list.
func TestJobsAskForRoles(t *testing.T) {
	eachWorking(t, func(b *bench) {
		open := b.publish("keeper", keeping, asynchronous(1))
		listed := asynchronous(1)
		listed.Authz = &api.Authz{InvokeHTTPRoles: []string{"role:boss"}}
		closed := b.publish("keeper", keeping, listed)
		move := func(version int64) {
			b.t.Helper()
			if _, err := storage.NewAliases(b.store).Set(b.t.Context(), b.tenant, namespace, "keeper", "prod", version, nil, b.store.NowMS()); err != nil {
				b.t.Fatalf("Set: %v", err)
			}
			b.engine.FunctionChanged(b.t.Context(), b.tenant, namespace, "keeper")
		}
		move(open)
		target := func(payload string) api.NewJob {
			return api.NewJob{Payload: json.RawMessage(payload), JobOptions: api.JobOptions{
				MaxAttempts: 1, Target: &api.JobTarget{Function: "keeper", Alias: "prod"},
			}}
		}
		runs := map[string]func(payload string, by *api.JobAuthor){
			"second step of a chain": func(payload string, by *api.JobAuthor) {
				step := api.ChainStep{Queue: "fn.keeper", NewJob: target(payload)}
				made, err := b.broker.Enqueue(b.t.Context(), queue.Enqueue{
					Tenant: b.tenant, Namespace: namespace, Queue: "first", By: by,
					Jobs: []api.NewJob{{JobOptions: api.JobOptions{Chain: &api.Chain{Steps: []api.ChainStep{{Queue: "first"}, step}}}}},
				})
				if err != nil {
					b.t.Fatalf("Enqueue: %v", err)
				}
				move(closed)
				for range 2 {
					b.complete("first")
				}
				if got := b.job(made[0].ID).State; got != api.JobCompleted {
					b.t.Fatalf("the first job: got state %s, want %s", got, api.JobCompleted)
				}
			},
			"callback of a batch": func(payload string, by *api.JobAuthor) {
				batch, err := b.broker.CreateBatch(b.t.Context(), b.tenant, namespace, &api.BatchCallback{Queue: "fn.keeper", NewJob: target(payload), By: by})
				if err != nil {
					b.t.Fatalf("CreateBatch: %v", err)
				}
				move(closed)
				if _, err := b.broker.SealBatch(b.t.Context(), b.tenant, namespace, batch.ID); err != nil {
					b.t.Fatalf("SealBatch: %v", err)
				}
			},
		}
		ended := 0
		for name, run := range runs {
			for _, tt := range []struct {
				by   *api.JobAuthor
				want api.Status
			}{
				{&api.JobAuthor{Principal: api.Principal{Sub: "key", Roles: []string{"invoker"}}, Access: api.AccessGranted}, api.StatusError},
				{nil, api.StatusError},
				{&api.JobAuthor{Principal: api.Principal{Sub: "key", Roles: []string{"invoker", "role:boss"}}, Access: api.AccessGranted}, api.StatusSuccess},
				{&api.JobAuthor{Principal: api.Principal{Sub: "local"}, Access: api.AccessUnrestricted}, api.StatusSuccess},
			} {
				move(open)
				run(`"`+name+`"`, tt.by)
				ended++
				b.eventually("the "+name+" ends", func() bool {
					items := b.list("keeper")
					return len(items) == ended && items[0].Status.Terminal()
				})
				got := b.list("keeper")[0]
				if got.Status != tt.want {
					b.t.Errorf("%s of %+v: got status %s, want %s", name, tt.by, got.Status, tt.want)
				}
				if tt.want == api.StatusError && (got.Error == nil || got.Error.Code != string(api.CodeAuthzDenied)) {
					b.t.Errorf("%s of %+v: got error %+v, want code %s", name, tt.by, got.Error, api.CodeAuthzDenied)
				}
			}
		}
	})
}

// complete waits for a job in a queue, and completes it.
func (b *bench) complete(name string) {
	b.t.Helper()
	var jobs []api.FetchedJob
	b.eventually("a job is in queue "+name, func() bool {
		var err error
		jobs, err = b.broker.Fetch(b.t.Context(), queue.Fetch{Tenant: b.tenant, Namespace: namespace, Queues: []string{name}, WorkerID: "test", Count: 1})
		if err != nil {
			b.t.Fatalf("Fetch: %v", err)
		}
		return len(jobs) > 0
	})
	if _, err := b.broker.Ack(b.t.Context(), b.tenant, []api.JobAck{{ID: jobs[0].ID, LeaseEpoch: jobs[0].LeaseEpoch}}); err != nil {
		b.t.Fatalf("Ack: %v", err)
	}
}
