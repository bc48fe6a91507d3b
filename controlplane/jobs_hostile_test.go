package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/queue"
)

// The platform's own jobs are not for workers outside to settle: that would end, or
// repeat, invocations past their records.
func TestTheJobsOfFunctionsAreNobodysToSettle(t *testing.T) {
	t.Parallel()
	h := start(t)
	q := queue.FunctionQueue{Tenant: h.tenant, Namespace: "payments", Queue: "fn.charge"}
	id := api.NewJobID()
	spec := &api.JobSpec{Namespace: q.Namespace, Queue: q.Queue, Payload: []byte(`1`)}
	spec.Target = &api.JobTarget{Function: "charge", Alias: "prod"}
	if _, _, err := h.queue.EnqueueInvocation(t.Context(), h.tenant, id, spec); err != nil {
		t.Fatalf("EnqueueInvocation: %v", err)
	}
	if got, err := h.queue.Take(t.Context(), q, "invoker", 1, 5*time.Second); err != nil || len(got.Jobs) != 1 {
		t.Fatalf("Take: got %v %v, want no error and 1 job", got, err)
	}
	for verb, body := range map[string]string{
		"ack":       `{"acks":[{"id":%q,"lease_epoch":1,"continue":true}]}`,
		"fail":      `{"fails":[{"id":%q,"lease_epoch":1,"error":"x","snooze_ms":0}]}`,
		"heartbeat": `{"worker_id":"w1","jobs":[{"id":%q,"lease_epoch":1,"lease_ms":43200000}]}`,
	} {
		a := h.call(t, "POST", h.at("T/jobs:"+verb), fmt.Sprintf(body, id))
		if got := ok[settled](t, a, 409).Jobs; len(got) != 1 || got[0].Code != api.CodeJobNotFound {
			t.Errorf("%s: got %s, want one outcome with CodeJobNotFound", verb, a.body)
		}
	}
	if job := h.job(t, id); job.State != api.JobActive || job.Lease.ExpiresMS > time.Now().Add(time.Minute).UnixMilli() {
		t.Errorf("got job %+v, want it active under a lease that ends within a minute", job)
	}
}

// Fetches that wait are bounded, of one tenant and in all: one over the bound gets
// what there is, and is refused where there is nothing.
func TestWaitingFetchesAreBounded(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.MaxWaits = 3 })
	first := h.waiting(t.Context(), t) // a tenant has the half of three: one place
	fetch := func(tenant, queueName string) answer {
		return h.call(t, "POST", "/v1/tenants/"+tenant+"/jobs:fetch", strings.Replace(
			strings.Replace(waitingFetch, "emails", queueName, 1), "60000", "1", 1))
	}
	refused := fetch(h.tenant, "others")
	refused.refused(t, 429, api.CodeCapacityLimit)
	if refused.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After, want one")
	}
	ok[fetched](t, fetch(h.tenant+"2", "others"), 200)
	h.add(t, "others", `{}`)
	if got := ok[fetched](t, fetch(h.tenant, "others"), 200).Jobs; len(got) != 1 {
		t.Errorf("got %+v, want one item", got)
	}
	h.add(t, "emails", `{}`)
	response := <-first
	_ = response.Body.Close()
	ok[fetched](t, fetch(h.tenant, "others"), 200) // its place is free
}
