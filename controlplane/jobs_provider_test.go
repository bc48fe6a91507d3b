package controlplane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
)

// TestTheWorkerMovesToAnotherProvider: a job whose provider is overloaded goes on at another target of
// its route, and one with an unknown routing is refused, as is a queue with an unknown provider.
func TestTheWorkerMovesToAnotherProvider(t *testing.T) {
	t.Parallel()
	h := start(t)
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	tenant := c.Tenant(h.tenant)
	route := ai.ProviderSettings{Kind: ai.KindRoute, Strategy: ai.StrategyFallback}
	for _, name := range []string{"main", "spare"} {
		route.Targets = append(route.Targets, ai.RouteTarget{Provider: name})
		if _, err := tenant.PutProvider(t.Context(), name, ai.ProviderSettings{Kind: ai.KindOpenAI, BaseURL: "https://models.example/v1", Models: []string{"of-" + name}}, 0); err != nil {
			t.Fatalf("PutProvider: %v", err)
		}
	}
	if _, err := tenant.PutProvider(t.Context(), "best", route, 0); err != nil {
		t.Fatalf("PutProvider: %v", err)
	}
	namespace := tenant.Namespace("payments")
	emails := namespace.Queue("emails")
	unknown, best := "unknown", "best"
	if _, err := emails.Configure(t.Context(), client.QueueChange{Provider: &unknown}); api.ErrorCode(err) != api.CodeProviderNotFound {
		t.Errorf("Configure: got error %v, want code %s", err, api.CodeProviderNotFound)
	}
	if _, err := emails.Enqueue(t.Context(), "", api.NewJob{JobOptions: api.JobOptions{Routing: unknown}}); api.ErrorCode(err) != api.CodeProviderNotFound {
		t.Errorf("Enqueue: got error %v, want code %s", err, api.CodeProviderNotFound)
	}
	if q, err := emails.Configure(t.Context(), client.QueueChange{Provider: &best}); err != nil || q.Provider != best {
		t.Fatalf("Configure: got %+v and error %v, want the provider %s", q, err, best)
	}
	made, err := emails.Enqueue(t.Context(), "", api.NewJob{})
	if err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	maintain(t, h)
	w, err := worker.New(namespace, worker.Config{Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	w.Handle("emails", func(_ context.Context, j *worker.Job) error {
		if j.Provider == "main" {
			return worker.ProviderFailed(errors.New("529"), agent.FailureOverloaded, time.Minute)
		}
		stop()
		return j.Return([]any{j.Provider, j.Model, j.Attempt})
	})
	if err := w.Run(ctx); err != nil {
		t.Fatalf("Run: %v", err)
	}
	if j := h.job(t, made[0].ID); j.State != api.JobCompleted || string(j.Result) != `["spare","of-spare",1]` {
		t.Errorf("got state %s and result %s, want it completed by the model of-spare of spare, at attempt 1", j.State, j.Result)
	}
}
