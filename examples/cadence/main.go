// Cadence is an example that places orders: a workflow of Cadence's Go client whose
// activities are functions. The program only names the tasklist that a worker binding
// serves.
//
// This process decides what happens next in the workflow; the functions in charge/ and pack/
// do the work, on a server of sous. Both sides meet in Cadence: neither calls the other.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"
	"go.uber.org/zap"
)

// The tasklist of the workflow's decisions, and the tasklist of the activities that
// functions run.
const (
	decisions  = "orders"
	activities = "order-activities"
)

// order is the input of the workflow and of both activities, which functions get as
// event.input.json.
type order struct {
	ID    string   `json:"id"`
	Card  string   `json:"card"`
	Total float64  `json:"total"`
	Items []string `json:"items"`
}

// charged is the result of the function charge, packed that of the function pack.
type charged struct {
	Receipt  string `json:"receipt"`
	Attempts int    `json:"attempts"`
}

type packed struct {
	Packed      int `json:"packed"`
	ResumedFrom int `json:"resumed_from"`
}

// placed is the result of the workflow.
type placed struct {
	Charge charged `json:"charge"`
	Pack   packed  `json:"pack"`
}

// place charges and then packs. The code of the error that a function throws is the reason
// of its activity's failure: a declined card is not retried, everything else is.
func place(ctx workflow.Context, o order) (*placed, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskList:               activities,
		ScheduleToStartTimeout: time.Minute,
		StartToCloseTimeout:    time.Minute,
		HeartbeatTimeout:       10 * time.Second,
		WaitForCancellation:    true,
		RetryPolicy: &cadence.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: 5, ExpirationInterval: 5 * time.Minute,
			NonRetriableErrorReasons: []string{"CardDeclined"},
		},
	})
	var out placed
	if err := workflow.ExecuteActivity(ctx, "Charge", o).Get(ctx, &out.Charge); err != nil {
		return nil, err
	}
	if err := workflow.ExecuteActivity(ctx, "Pack", o).Get(ctx, &out.Pack); err != nil {
		return nil, err
	}
	return &out, nil
}

// describe returns an error with the cause of a failed order: the reason of the
// activity and the details that the platform adds. The activation id leads to the log of the
// function: sous activation logs ID.
func describe(err error) error {
	var failed *cadence.CustomError
	if !errors.As(err, &failed) {
		return err
	}
	var details []byte
	var said struct {
		Message      string `json:"message"`
		ActivationID string `json:"activation_id"`
	}
	if failed.HasDetails() && failed.Details(&details) == nil && json.Unmarshal(details, &said) == nil {
		return fmt.Errorf("%s: %s (activation %s)", failed.Reason(), said.Message, said.ActivationID)
	}
	return errors.New(failed.Reason())
}

// run starts one workflow and waits for its result. The workflow continues without this
// process, except for its decisions, which wait until a worker of the tasklist runs again.
func run() error {
	addr := flag.String("cadence", "127.0.0.1:7833", "HOST:PORT of the server's frontend, its gRPC port")
	domain := flag.String("domain", "orders", "Cadence domain; registered if it does not exist")
	text := flag.String("order", `{"id": "A-1", "card": "good", "total": 12.5, "items": ["cup", "saucer"]}`, "the order, as JSON")
	flag.Parse()
	var o order
	if err := json.Unmarshal([]byte(*text), &o); err != nil {
		return fmt.Errorf("--order: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	conn, err := connect(*addr)
	if err != nil {
		return err
	}
	defer conn.close()
	if err := conn.register(ctx, *domain); err != nil {
		return err
	}
	w, err := worker.NewV2(conn.service, *domain, decisions, worker.Options{Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	w.RegisterWorkflowWithOptions(place, workflow.RegisterOptions{Name: "PlaceOrder"})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	started, err := client.NewClient(conn.service, *domain, nil).ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "order-" + o.ID, TaskList: decisions, ExecutionStartToCloseTimeout: 10 * time.Minute,
		DecisionTaskStartToCloseTimeout: 10 * time.Second, WorkflowIDReusePolicy: client.WorkflowIDReusePolicyAllowDuplicate,
	}, "PlaceOrder", o)
	if err != nil {
		return err
	}
	var out placed
	if err := started.Get(ctx, &out); err != nil {
		return describe(err)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cadence:", err)
		os.Exit(1)
	}
}
