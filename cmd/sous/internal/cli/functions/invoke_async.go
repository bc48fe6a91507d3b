package functions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// The pause between two reads of an asynchronous invocation grows from waitPauseMin to
// waitPauseMax.
const (
	waitPauseMin = 50 * time.Millisecond
	waitPauseMax = 2 * time.Second
)

// queued is the JSON form of the output of invoke --async.
type queued struct {
	api.Queued
	Replayed bool `json:"replayed"`
}

// invokeAsync enqueues an invocation of fn and prints the activation, or with wait its
// outcome. An interrupt while it waits ends the command and not the invocation.
func (a commands) invokeAsync(ctx context.Context, t *command.Target, fn *client.Function, name string, o client.InvokeOptions, wait, logs bool) error {
	var out queued
	var end invoked
	err := a.Working("queueing "+name, func() (err error) {
		out.Queued, err = fn.Enqueue(ctx, o)
		out.Replayed = out.Queued.Replayed
		if err == nil && wait {
			end, err = a.awaitEnd(ctx, t.Tenant, out.ActivationID)
			end.Replayed = out.Replayed
		}
		if err == nil && logs {
			end.Logs, _, err = command.Collect(t.Tenant.LogLines(ctx, out.ActivationID), 0)
		}
		return err
	})
	if err != nil {
		return err
	}
	if wait {
		return a.printInvoked(end)
	}
	if err := a.Print(out, out.ActivationID+"\n"); err != nil {
		return err
	}
	a.Note("%s", out.summary())
	return nil
}

func (q queued) summary() string {
	s := fmt.Sprintf("%s; sous activation get %s shows its end", q.Status, q.ActivationID)
	if q.Replayed {
		s += ", replayed"
	}
	return s
}

// awaitEnd polls an activation until it has ended. An asynchronous activation ends after its
// last attempt, so a failed attempt that is followed by another does not end the wait; it is
// noted.
func (a commands) awaitEnd(ctx context.Context, tenant *client.Tenant, id string) (invoked, error) {
	noted := 0
	for pause := waitPauseMin; ; pause = min(2*pause, waitPauseMax) {
		act, err := tenant.Activation(ctx, id)
		if err != nil {
			return invoked{}, err
		}
		if act.Status.Terminal() {
			return invoked{text: command.IndentJSON, InvokeResponse: api.InvokeResponse{
				ActivationID: id, Status: act.Status, Result: act.Result, ResultTruncated: act.ResultTruncated,
				Error: act.Error, DurationMS: act.DurationMS,
			}}, nil
		}
		noted = a.noteAttempts(ctx, tenant, act.JobID, noted)
		select {
		case <-ctx.Done():
			return invoked{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// noteAttempts notes the attempts of a job that have failed, but for the first noted ones, and
// returns their number. A caller that may not read jobs gets no notes.
func (a commands) noteAttempts(ctx context.Context, tenant *client.Tenant, jobID string, noted int) int {
	job, err := tenant.Job(ctx, jobID)
	if err != nil || len(job.Errors) <= noted {
		return noted
	}
	for _, e := range job.Errors[noted:] {
		reason, _, _ := strings.Cut(e.Error, "\n")
		a.Note("attempt %d of %d failed: %s", e.Attempt, job.MaxAttempts, command.Printable(reason))
	}
	if wait := time.Until(time.UnixMilli(job.DueAtMS)).Round(time.Second); job.State == api.JobRetrying && wait > 0 {
		a.Note("the next attempt begins in %s", command.DurationText(wait))
	}
	return len(job.Errors)
}
