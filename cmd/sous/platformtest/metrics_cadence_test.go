package platformtest_test

import (
	"context"
	"errors"
	"time"

	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/metrics/metricstest"
)

// beat has one activity done, which sends a heartbeat.
func beat(ctx workflow.Context) error {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskList: "beats", ScheduleToStartTimeout: time.Minute, StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second,
	}), "beat").Get(ctx, nil)
}

// activities has a function run an activity, and binds it to a domain that there is not.
func (w *work) activities() {
	if w.cadence == nil {
		return
	}
	t, ns := w.t, w.server.API(w.t).Namespace(platformtest.Namespace)
	w.server.Publish(t, "beat", "", map[string]string{
		"function.js": `export default async () => { await cs.cadence.heartbeat(1); await new Promise((r) => setTimeout(r, 800)); };`,
	})
	domain := w.cadence.Domain(t)
	for name, domain := range map[string]string{"present": domain, "missing": domain + "-missing"} {
		_, err := ns.CreateBinding(t.Context(), api.NewBinding{
			Name: name, Domain: domain, Tasklist: "beats", ActivityMap: map[string]api.JobTarget{"beat": {Function: "beat"}},
		})
		if err != nil {
			t.Fatalf("CreateBinding: %v", err)
		}
	}
	w.cadence.Work(t, domain, "workflows", func(w worker.Worker) {
		w.RegisterWorkflowWithOptions(beat, workflow.RegisterOptions{Name: "beat"})
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := w.cadence.Client(t, domain).ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		TaskList: "workflows", ExecutionStartToCloseTimeout: time.Minute, DecisionTaskStartToCloseTimeout: 10 * time.Second,
	}, "beat")
	if err != nil {
		t.Fatalf("ExecuteWorkflow: %v", err)
	}
	platformtest.Eventually(t, 30*time.Second, "the activity runs", func() error {
		now := scrape(t, w.server.Output())
		if metricstest.Sum(now["sous_cadence_tasks_in_flight"]) == 0 {
			return errors.New("it does not")
		}
		w.during = append(w.during, now)
		return nil
	})
	if err := run.Get(ctx, nil); err != nil {
		t.Fatalf("Get: %v", err)
	}
}

// activitySeries are those of activities.
func (w *work) activitySeries() []expected {
	if w.cadence == nil {
		return nil
	}
	return []expected{
		{"sous_cadence_polls_total", []string{"outcome=task"}, 1},
		{"sous_cadence_tasks_total", []string{"status=completed"}, 1},
		{"sous_cadence_heartbeats_total", []string{"outcome=ok"}, 1},
		{"sous_cadence_workers", []string{"state=running"}, 1},
		{"sous_cadence_workers", []string{"state=waiting_for_domain"}, 1},
		{"sous_invocations_total", []string{"function=beat", "status=success", "trigger=cadence"}, 1},
		{"sous_store_changes_received_total", []string{"kind=binding"}, 2},
		{"sous_loop_rounds_total", []string{"loop=cadence", "outcome=ok"}, 1},
	}
}
