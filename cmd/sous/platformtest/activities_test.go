package platformtest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cadenceworker/cadencetest"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/bindings"
	"github.com/codesous/sous/storage/storagetest"
)

// fan runs the activity n times at once, each tried again as often as it takes.
func fan(ctx workflow.Context, n int) ([]string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskList: "activities", ScheduleToStartTimeout: 2 * time.Minute, StartToCloseTimeout: 5 * time.Second,
		RetryPolicy: &cadence.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1, ExpirationInterval: 3 * time.Minute},
	})
	futures := make([]workflow.Future, n)
	for i := range futures {
		futures[i] = workflow.ExecuteActivity(ctx, "work", []byte(fmt.Sprint(i)))
	}
	results := make([]string, n)
	for i, f := range futures {
		var raw []byte
		if err := f.Get(ctx, &raw); err != nil {
			return nil, err
		}
		results[i] = string(raw)
	}
	return results, nil
}

// A worker that is killed amid 50 activities loses none: those that it had in hand
// time out and are tried again by the one that comes after it.
func TestKilledWorkerLosesNoActivity(t *testing.T) {
	t.Parallel()
	const tasks = 50
	cadenceServer := cadencetest.Start(t)
	domain := cadenceServer.Domain(t)
	cadenceServer.Work(t, domain, "workflows", func(w worker.Worker) {
		w.RegisterWorkflowWithOptions(fan, workflow.RegisterOptions{Name: "fan"})
	})
	url := redis(t)
	store := storagetest.Open(t, storage.Config{URL: url})
	args := []string{"--cadence-addr", cadenceServer.GRPCAddr}
	first := platformtest.Serve(t, url, args...)
	first.Publish(t, "work", `{"timeout_ms": 10000, "max_concurrency": 100}`, map[string]string{
		"function.js": `export default (event) => new Promise(r => setTimeout(() => r(event.input.json), 300));`,
	})
	binding := api.WorkerBinding{
		Name: "worker", Domain: domain, Tasklist: "activities", Enabled: true,
		ActivityMap: map[string]api.JobTarget{"work": {Function: "work"}}, Limits: api.BindingLimits{MaxInflightTasks: 8},
	}
	binding.Normalize()
	_, err := bindings.New(store).Create(t.Context(), platformtest.Tenant, platformtest.Namespace,
		bindings.Record{WorkerBinding: binding, Access: api.AccessUnrestricted}, store.NowMS())
	if err != nil {
		t.Fatalf("Create: %v", err)
	}
	run, err := cadenceServer.Client(t, domain).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		TaskList: "workflows", ExecutionStartToCloseTimeout: 5 * time.Minute, DecisionTaskStartToCloseTimeout: 10 * time.Second,
	}, "fan", tasks)
	if err != nil {
		t.Fatalf("ExecuteWorkflow: %v", err)
	}
	platformtest.Eventually(t, time.Minute, "some are done and some run", func() error {
		done, running := byStatus(t, store)
		if done < 10 || running == 0 {
			return fmt.Errorf("%d done, %d run", done, running)
		}
		return nil
	})
	if err := first.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if done, _ := byStatus(t, store); done >= tasks {
		t.Fatal("all activities were done before the kill, want some in flight")
	}
	platformtest.Serve(t, url, args...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var results []string
	if err := run.Get(ctx, &results); err != nil {
		t.Fatalf("Get: %v", err)
	}
	for i, r := range results {
		if r != fmt.Sprint(i) {
			t.Errorf("activity %d = %q, want its own input", i, r)
		}
	}
	// What was done before the kill, and reported, was not done again.
	if done, _ := byStatus(t, store); done < tasks || done > tasks+8 {
		t.Errorf("%d activations succeeded, want %d, one for each activity", done, tasks)
	}
}

// byStatus counts the activations of the function work.
func byStatus(t *testing.T, store *storage.Store) (done, running int) {
	t.Helper()
	items, _, err := activations.New(store).List(t.Context(), activations.Filter{
		Tenant: platformtest.Tenant, Namespace: platformtest.Namespace, Function: "work", Limit: 500,
	})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, a := range items {
		switch a.Status {
		case api.StatusSuccess:
			done++
		case api.StatusRunning:
			running++
		}
	}
	return done, running
}
