package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cadenceworker/cadencetest"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
)

// shout asks for the activity of its name.
func shout(ctx workflow.Context, word string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskList: "words", ScheduleToStartTimeout: time.Minute, StartToCloseTimeout: time.Minute,
	})
	var loud string
	err := workflow.ExecuteActivity(ctx, "Shout", word).Get(ctx, &loud)
	return loud, err
}

// TestCadenceCommands makes a binding by the commands alone, for a domain that is not
// there yet, and has a workflow use it.
func TestCadenceCommands(t *testing.T) {
	t.Parallel()
	cadence := cadencetest.Start(t)
	server := soustest.Start(t, "--cadence-addr", cadence.GRPCAddr)
	dir := filepath.Join(t.TempDir(), "shout")
	sous := func(args ...string) string {
		t.Helper()
		return server.Sous(t, args...)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	source := `export default (event) => event.input.json.toUpperCase();`
	if err := os.WriteFile(filepath.Join(dir, "function.js"), []byte(source), 0o644); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	sous("fn", "deploy", dir)
	domain := fmt.Sprintf("later-%d", time.Now().UnixNano())
	sous("cadence", "worker", "create", "words", "--domain", domain, "--tasklist", "words", "--activity", "Shout=shout")
	await := func(what string, is func(api.BindingCounts) bool) {
		t.Helper()
		platformtest.Eventually(t, 30*time.Second, what, func() error {
			var b api.BindingStatus
			if err := json.Unmarshal([]byte(sous("cadence", "worker", "status", "words", "-o", "json")), &b); err != nil {
				return err
			}
			if !is(b.Status) {
				return fmt.Errorf("%+v", b.Status)
			}
			return nil
		})
	}
	await("the binding waits for its domain", func(c api.BindingCounts) bool { return c.State == api.BindingWaiting && c.Reason != "" })

	cadence.Register(t, domain)
	cadence.Work(t, domain, "workflows", func(w worker.Worker) {
		w.RegisterWorkflowWithOptions(shout, workflow.RegisterOptions{Name: "shout"})
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, err := cadence.Client(t, domain).ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		TaskList: "workflows", ExecutionStartToCloseTimeout: time.Minute, DecisionTaskStartToCloseTimeout: 10 * time.Second,
	}, "shout", "hello")
	if err != nil {
		t.Fatalf("ExecuteWorkflow: %v", err)
	}
	var loud string
	if err := run.Get(ctx, &loud); err != nil || loud != "HELLO" {
		t.Fatalf("workflow result = %q, %v, want HELLO", loud, err)
	}
	await("the status counts the activity", func(c api.BindingCounts) bool {
		return c.State == api.BindingRunning && c.LastPollMS > 0 && c.Taken == 1 && c.Completed == 1 && c.InFlight == 0
	})
	if text := sous("cadence", "worker", "list"); !strings.Contains(text, "running") {
		t.Errorf("cadence worker list = %s, want a running binding", text)
	}
	sous("cadence", "worker", "delete", "words", "--yes")
}
