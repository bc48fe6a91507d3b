package invoker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage/kvstore"
)

// setKV stores what functions read under key.
func (b *bench) setKV(key, value string) {
	b.t.Helper()
	if err := kvstore.New(b.store).Set(b.t.Context(), b.tenant, namespace, key, []byte(value), 0); err != nil {
		b.t.Fatalf("Set: %v", err)
	}
}

// enqueuing is a config that may enqueue.
func enqueuing(queues ...string) api.VersionConfig {
	config := defaults()
	config.Capabilities.Queue = &api.QueueCapability{Publish: queues}
	return config
}

const enqueuer = `export default async ({ queue, payload, options }) => { try { return await cs.queue.enqueue(queue, payload, options) } catch (e) { return { code: e.code, message: e.message } } };`

func TestEnqueueFromAFunction(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("producer", enqueuer, enqueuing("orders", "later"))
		now := b.store.NowMS()
		type answer struct {
			ID            string
			State         api.JobState
			Duplicate     bool
			Code, Message string
		}
		enqueue := func(call string) (a answer) {
			b.t.Helper()
			if err := json.Unmarshal([]byte(b.result(b.granted("producer", call))), &a); err != nil {
				b.t.Fatalf("json.Unmarshal: %v", err)
			}
			return a
		}
		first := enqueue(`{"queue":"orders","payload":{"n":1,"s":"ü<&>"}}`)
		job := b.job(first.ID)
		if first.State != api.JobPending || first.Duplicate || string(job.Payload) != `{"n":1,"s":"ü<&>"}` || job.Queue != "orders" || job.Namespace != namespace {
			b.t.Errorf(`got answer %+v and job %+v, want a new pending job in queue orders of namespace %s with payload {"n":1,"s":"ü<&>"}`, first, job, namespace)
		}

		zero := int64(0)
		full := enqueue(fmt.Sprintf(`{"queue":"orders","payload":[],"options":{"priority":"high","delaySeconds":60.5,"expireAtMs":%d,"uniqueKey":"k","uniqueTtlSeconds":90,
			"maxAttempts":7,"backoff":"linear","baseDelayMs":0,"maxDelayMs":1000,"jitter":true,"tags":{"a":"b"},"dependsOn":[%q],"onDependencyFailure":"hold","resultSchema":{"type":"object"},
			"chain":{"steps":[{"queue":"later","payload":{"step":1},"maxAttempts":2},{"payload":2}],"onFailure":{"queue":"later"},"onExit":{"payload":null,"priority":"low"}}}}`, now+3_600_000, first.ID))
		got := b.job(full.ID)
		if full.State != api.JobWaiting || got.RunAtMS < now+60_500 || got.RunAtMS > now+80_000 {
			b.t.Fatalf("got job %+v that runs at %d, want it waiting, to run 60.5 to 80 s after %d", full, got.RunAtMS, now)
		}
		want := api.JobOptions{
			Priority: api.PriorityHigh, ExpireAtMS: now + 3_600_000, UniqueKey: "k", UniqueTTLMS: 90_000, MaxAttempts: 7,
			Backoff: api.BackoffLinear, BaseDelayMS: &zero, MaxDelayMS: 1000, Jitter: true, Tags: map[string]string{"a": "b"},
			DependsOn: []string{first.ID}, OnDependencyFailure: api.DependencyHold, ResultSchema: json.RawMessage(`{"type":"object"}`),
			Chain: &api.Chain{
				Steps: []api.ChainStep{
					{Queue: "later", NewJob: api.NewJob{Payload: json.RawMessage(`{"step":1}`), JobOptions: api.JobOptions{MaxAttempts: 2}}},
					{NewJob: api.NewJob{Payload: json.RawMessage("2")}},
				},
				OnFailure: &api.ChainStep{Queue: "later"},
				OnExit:    &api.ChainStep{NewJob: api.NewJob{Payload: json.RawMessage("null"), JobOptions: api.JobOptions{Priority: api.PriorityLow}}},
			},
		}
		if diff := cmp.Diff(want, got.JobOptions, cmpopts.IgnoreFields(api.JobOptions{}, "RunAtMS")); diff != "" {
			b.t.Errorf("options (-want +got):\n%s", diff)
		}
		if again := enqueue(`{"queue":"orders","payload":1,"options":{"uniqueKey":"k"}}`); again.ID != full.ID || !again.Duplicate {
			b.t.Errorf("got job %+v, want a duplicate of %s", again, full.ID)
		}
		if held := enqueue(`{"queue":"later","options":{"hold":true,"idempotencyKey":"i"}}`); held.State != api.JobHeld {
			b.t.Errorf("got job %+v, want it held", held)
		} else if again := enqueue(`{"queue":"later","options":{"hold":true,"idempotencyKey":"i"}}`); again.ID != held.ID {
			b.t.Errorf("got job %+v for a repeat, want %s", again, held.ID)
		}
	})
}

// A job that REST would refuse is refused with the same code, and jobs of other tenants do not exist.
func TestEnqueueRefuses(t *testing.T) {
	each(t, func(b *bench) {
		b.publish("producer", enqueuer, enqueuing("*"))
		b.publish("limited", enqueuer, enqueuing("orders", "fn.other"))
		elsewhere, err := b.broker.Enqueue(b.t.Context(), queue.Enqueue{Tenant: b.tenant, Namespace: "other", Queue: "orders", Jobs: []api.NewJob{{}}})
		if err != nil {
			b.t.Fatalf("Enqueue: %v", err)
		}
		batch, err := b.broker.CreateBatch(b.t.Context(), b.tenant, "other", nil)
		if err != nil {
			b.t.Fatalf("CreateBatch: %v", err)
		}
		draining := true
		if _, err := b.broker.Configure(b.t.Context(), b.tenant, namespace, "full", queue.Change{Draining: &draining}); err != nil {
			b.t.Fatalf("Configure: %v", err)
		}
		for _, tt := range []struct {
			function, call string
			want           api.Code
			text           string
		}{
			{"limited", `{"queue":"later"}`, api.CodeRuntimeCapabilityDenied, `{"queue": {"publish": ["later"]}}`},
			{"limited", `{"queue":"orders","options":{"chain":{"steps":[{"queue":"later"}]}}}`, api.CodeRuntimeCapabilityDenied, `["later"]`},
			{"limited", `{"queue":"orders","options":{"chain":{"onExit":{"queue":"later"}}}}`, api.CodeRuntimeCapabilityDenied, `["later"]`},
			{"limited", `{"queue":"orders","options":{"chain":{"onFailure":{"queue":"later"}}}}`, api.CodeRuntimeCapabilityDenied, `["later"]`},
			{"limited", `{"queue":"fn.other"}`, api.CodeQueueReserved, "cs.invoke"},
			{"producer", `{"queue":"fn.other"}`, api.CodeQueueReserved, ""},
			{"producer", `{"queue":"orders","options":{"chain":{"steps":[{"queue":"fn.other"}]}}}`, api.CodeQueueReserved, ""},
			{"producer", `{"queue":"orders","options":{"target":{"function":"other","alias":"prod"}}}`, api.CodeHostInvalidArgument, `"target"`},
			{"producer", `{"queue":"orders","options":{"delay":5}}`, api.CodeHostInvalidArgument, `"delay"`},
			{"producer", `{"queue":"orders","options":{"run_at_ms":5}}`, api.CodeHostInvalidArgument, "run_at_ms"},
			{"producer", `{"queue":"orders","options":{"delaySeconds":5,"runAtMs":5}}`, api.CodeHostInvalidArgument, "only one"},
			{"producer", `{"queue":"orders","options":{"delaySeconds":-5}}`, api.CodeHostInvalidArgument, "delaySeconds"},
			{"producer", `{"queue":"orders","options":{"idempotencyKey":"` + strings.Repeat("k", api.MaxUniqueKeyLength+1) + `"}}`, api.CodeHostInvalidArgument, "idempotencyKey"},
			{"producer", `{"queue":"orders","options":{"idempotencyKey":"a\nb"}}`, api.CodeHostInvalidArgument, "idempotencyKey"},
			{"producer", `{"queue":"orders","options":{"priority":"urgent"}}`, api.CodeInvalid, "priority"},
			{"producer", `{"queue":"orders","options":{"maxAttempts":5000}}`, api.CodeInvalid, "max_attempts"},
			{"producer", `{"queue":"orders","payload":"` + strings.Repeat("x", api.MaxJobPayloadBytes) + `"}`, api.CodeBodyLimit, ""},
			{"producer", `{"queue":"a:b"}`, api.CodeValidationName, ""},
			{"producer", `{"queue":"../x"}`, api.CodeValidationName, ""},
			{"producer", `{"queue":"orders","options":{"chain":{"steps":[{"queue":"a:b"}]}}}`, api.CodeValidationName, ""},
			{"producer", `{"queue":"full"}`, api.CodeQueueDraining, ""},
			{"producer", fmt.Sprintf(`{"queue":"orders","options":{"dependsOn":[%q]}}`, elsewhere[0].ID), api.CodeJobNotFound, ""},
			{"producer", fmt.Sprintf(`{"queue":"orders","options":{"batchId":%q}}`, batch.ID), api.CodeBatchNotFound, ""},
			{"producer", `{"queue":"orders","options":7}`, api.CodeHostInvalidArgument, "must be an object"},
			{"producer", `{"queue":7}`, api.CodeHostInvalidArgument, "must be a string"},
		} {
			var got struct{ Code, Message string }
			if err := json.Unmarshal([]byte(b.result(b.granted(tt.function, tt.call))), &got); err != nil {
				b.t.Fatalf("json.Unmarshal: %v", err)
			}
			if got.Code != string(tt.want) || !strings.Contains(got.Message, tt.text) {
				b.t.Errorf("%s %.80s: %+v, want %s %s", tt.function, tt.call, got, tt.want, tt.text)
			}
		}
	})
}
