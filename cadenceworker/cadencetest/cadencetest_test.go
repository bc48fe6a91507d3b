package cadencetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/cadence/activity"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"

	"github.com/codesous/sous/cadenceworker/cadencetest"
)

const tasklist = "greetings"

// greet waits a second between its two activities.
func greet(ctx workflow.Context, name string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskList: tasklist, ScheduleToStartTimeout: time.Minute, StartToCloseTimeout: time.Minute,
	})
	var greeting, loud string
	if err := workflow.ExecuteActivity(ctx, "prefix", name).Get(ctx, &greeting); err != nil {
		return "", err
	}
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	err := workflow.ExecuteActivity(ctx, "shout", greeting).Get(ctx, &loud)
	return loud, err
}

func register(w worker.Worker) {
	w.RegisterWorkflowWithOptions(greet, workflow.RegisterOptions{Name: "greet"})
	w.RegisterActivityWithOptions(func(_ context.Context, name string) (string, error) {
		return "hello " + name, nil
	}, activity.RegisterOptions{Name: "prefix"})
	w.RegisterActivityWithOptions(func(_ context.Context, text string) (string, error) {
		return strings.ToUpper(text), nil
	}, activity.RegisterOptions{Name: "shout"})
}

func start(ctx context.Context, t *testing.T, c client.Client) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		TaskList: tasklist, ExecutionStartToCloseTimeout: time.Minute, DecisionTaskStartToCloseTimeout: 5 * time.Second,
	}, "greet", "world")
	if err != nil {
		t.Fatalf("ExecuteWorkflow: %v", err)
	}
	return run
}

func wantGreeting(ctx context.Context, t *testing.T, run client.WorkflowRun) {
	t.Helper()
	var got string
	if err := run.Get(ctx, &got); err != nil {
		t.Fatalf("Get: %v", err)
	}
	if want := "HELLO WORLD"; got != want {
		t.Errorf("the workflow gave %q, want %q", got, want)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAWorkflowRunsToItsEnd(t *testing.T) {
	t.Parallel()
	s := cadencetest.Start(t)
	ctx := within(t, 2*time.Minute)
	domain := s.Domain(t)
	s.Work(t, domain, tasklist, register)
	wantGreeting(ctx, t, start(ctx, t, s.Client(t, domain)))
}

func TestAServerKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	s := cadencetest.StartOwn(t)
	ctx := within(t, 2*time.Minute)
	domain := s.Domain(t)
	c := s.Client(t, domain)
	run := start(ctx, t, c)
	s.Stop(t)
	if _, err := c.DescribeWorkflowExecution(within(t, time.Second), run.GetID(), run.GetRunID()); err == nil {
		t.Error("a server that is stopped answers")
	}
	s.Restart(t)
	s.Work(t, domain, tasklist, register)
	wantGreeting(ctx, t, c.GetWorkflow(ctx, run.GetID(), run.GetRunID()))
}
