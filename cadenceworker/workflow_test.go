package cadenceworker_test

import (
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/workflow"
)

// plan is what the tests' workflow does: activities, one after the other, or all at
// once.
type plan struct {
	Activity     string
	Input        string // as it is sent; several values are separated by newlines
	Timeout      time.Duration
	Heartbeat    time.Duration
	Attempts     int32 // 0: no retry policy
	NonRetriable []string
	ActivityID   string
	Times        int // default: once
	AtOnce       bool
	CancelOn     string // a signal on which the activities are cancelled
}

// report is what came of it, of the last activity where several were asked for.
type report struct {
	Results []string // "" for none
	Kind    string   // custom, timeout, cancelled, generic, panic; "" for success
	Reason  string   // or the kind of the timeout
	Details json.RawMessage
}

func runPlan(ctx workflow.Context, p plan) (report, error) {
	o := workflow.ActivityOptions{
		TaskList: tasklist, ActivityID: p.ActivityID, ScheduleToStartTimeout: 2 * time.Minute, StartToCloseTimeout: 30 * time.Second,
		HeartbeatTimeout: p.Heartbeat, WaitForCancellation: true,
	}
	if p.Timeout > 0 {
		o.StartToCloseTimeout = p.Timeout
	}
	if p.Attempts > 0 {
		o.RetryPolicy = &cadence.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: p.Attempts,
			ExpirationInterval: 5 * time.Minute, NonRetriableErrorReasons: p.NonRetriable,
		}
	}
	ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, o))
	if p.CancelOn != "" {
		workflow.Go(ctx, func(ctx workflow.Context) {
			workflow.GetSignalChannel(ctx, p.CancelOn).Receive(ctx, nil)
			cancel()
		})
	}
	var out report
	var futures []workflow.Future
	for range max(1, p.Times) {
		f := workflow.ExecuteActivity(ctx, p.Activity, []byte(p.Input))
		futures = append(futures, f)
		if !p.AtOnce {
			out.add(ctx, f)
		}
	}
	if p.AtOnce {
		for _, f := range futures {
			out.add(ctx, f)
		}
	}
	return out, nil
}

func (r *report) add(ctx workflow.Context, f workflow.Future) {
	var result []byte
	err := f.Get(ctx, &result)
	if err == nil {
		r.Results = append(r.Results, string(result))
		return
	}
	var custom *cadence.CustomError
	var timeout *workflow.TimeoutError
	var canceled *cadence.CanceledError
	var panicked *workflow.PanicError
	switch {
	case errors.As(err, &custom):
		r.Kind, r.Reason = "custom", custom.Reason()
		var raw []byte
		if custom.HasDetails() && custom.Details(&raw) == nil {
			r.Details = raw
		}
	case errors.As(err, &timeout):
		r.Kind, r.Reason = "timeout", timeout.TimeoutType().String()
	case errors.As(err, &canceled):
		r.Kind = "cancelled"
	case errors.As(err, &panicked):
		r.Kind, r.Reason = "panic", err.Error()
	default:
		r.Kind, r.Reason = "generic", err.Error()
	}
}

// awaitSignal ends with what the signal go says.
func awaitSignal(ctx workflow.Context, first json.RawMessage) (string, error) {
	var said json.RawMessage
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &said)
	return string(first) + string(said), nil
}
