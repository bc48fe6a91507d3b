package hostcall

import (
	"context"
	"encoding/json"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/durable"
)

// Steps keeps the steps of runs.
type Steps interface {
	Load(ctx context.Context, l step.Lease) ([]step.Step, error)
	Record(ctx context.Context, l step.Lease, s *step.Step) error
	Arrived(ctx context.Context, l step.Lease, waits []step.Step, taken map[string]bool) ([]step.Arrival, error)
}

// stepCalls serves cs.step, cs.sleep, cs.waitForEvent and cs.waitForApproval. They need no
// capability, but an activation that is an attempt of a job. The child replays the function; the
// server keeps the records and compares.
type stepCalls struct {
	steps Steps
	nowMS func() int64
}

// calls returns the three calls.
func (c *stepCalls) calls() map[string]call {
	return map[string]call{
		durable.Load.Name:   handle(durable.Load, free, c.load),
		durable.Record.Name: handle(durable.Record, free, c.record),
		durable.Park.Name:   handle(durable.Park, free, c.park),
	}
}

// maxMessage bounds the message of an approval, which is the reason for which its job is held.
const maxMessage = 1024

// run returns the activation of a run. Errors: CodeHostStepUnavailable.
func (c *stepCalls) run(s *Scope) (*step.Activation, error) {
	if s.Run == nil || c.steps == nil {
		return nil, api.Errorf(api.CodeHostStepUnavailable, "steps are for asynchronous runs of one job: invoke the function with the mode async, or by a job, a schedule or a queue")
	}
	return s.Run, nil
}

// load returns the steps of the run, and the time.
func (c *stepCalls) load(ctx context.Context, s *Scope, _ wire.None, _ []byte) (clock durable.Clock, _ []byte, err error) {
	run, err := c.run(s)
	if err != nil {
		return clock, nil, err
	}
	steps, err := c.steps.Load(ctx, run.Lease)
	if err != nil {
		return clock, nil, err
	}
	for i := range steps {
		run.Took(steps[i].Taken)
	}
	return durable.Clock{NowMS: c.nowMS()}, mustJSON(steps), nil
}

// record writes a step. Errors: CodeHostInvalidArgument, those of Steps.Record.
func (c *stepCalls) record(ctx context.Context, s *Scope, e durable.Entry, result []byte) (none wire.None, _ []byte, err error) {
	run, err := c.run(s)
	if err != nil {
		return none, nil, err
	}
	err = c.check(&e.Step)
	switch {
	case err != nil:
		return none, nil, err
	case e.Taken != "" && !step.IsArrival(e.Taken):
		return none, nil, invalid("no wait takes %q", shortened(e.Taken))
	case len(result) > step.MaxResultBytes:
		return none, nil, invalid("the result of a step is at most %s of JSON", api.SizeText(step.MaxResultBytes))
	case len(result) > 0 && !json.Valid(result):
		return none, nil, invalid("the result of a step is JSON")
	}
	e.Step.Result, e.Step.Taken, e.Step.LeaseEpoch = result, e.Taken, run.Epoch
	run.Took(e.Taken)
	return none, nil, c.steps.Record(ctx, run.Lease, &e.Step)
}

// check checks a step. Errors: CodeHostInvalidArgument.
func (c *stepCalls) check(s *step.Step) error {
	problem := step.CheckName(s.Name)
	if problem != "" {
		return invalid("the name of a step %s", problem)
	}
	switch s.Kind {
	case step.KindStep, step.KindSleep, step.KindEvent, step.KindApproval:
	default:
		return invalid("no step has the kind %q", shortened(string(s.Kind)))
	}
	switch s.Status {
	case step.StatusWaiting, step.StatusRetrying, step.StatusCompleted, step.StatusFailed:
	default:
		return invalid("no step has the status %q", shortened(string(s.Status)))
	}
	switch {
	case s.N < 1 || s.N > step.MaxSteps || s.Seq < 0 || s.Seq > step.MaxSteps || s.Status.Final() != (s.Seq > 0):
		return api.Errorf(api.CodeHostStepLimit, "a run has at most %d steps", step.MaxSteps)
	case s.DueAtMS < 0 || s.DueAtMS > c.nowMS()+step.MaxWaitMS+60_000:
		return invalid("a step waits for at most 365 days")
	case len(s.Message) > maxMessage:
		return invalid("the message of an approval has at most %s", api.SizeText(maxMessage))
	}
	if s.Error != nil {
		s.Error.Name = api.TruncateText(s.Error.Name, step.MaxNameBytes)
		s.Error.Code = api.TruncateText(s.Error.Code, api.MaxErrorCodeBytes)
		s.Error.Message = api.TruncateText(s.Error.Message, step.MaxErrorBytes)
	}
	return nil
}

// park ends the activation, unless what it waits for has arrived: then it replies the arrivals.
func (c *stepCalls) park(ctx context.Context, s *Scope, w durable.Waits, _ []byte) (none wire.None, _ []byte, err error) {
	run, err := c.run(s)
	if err != nil {
		return none, nil, err
	}
	if len(w.Waits) == 0 || len(w.Waits) > step.MaxSteps {
		return none, nil, invalid("an activation waits for 1 to %d steps", step.MaxSteps)
	}
	p := &step.Park{Taken: run.Taken()}
	for i := range w.Waits {
		wait := &w.Waits[i]
		if err := c.check(wait); err != nil {
			return none, nil, err
		}
		if wait.DueAtMS <= 0 {
			return none, nil, invalid("the step %q has no time", wait.Label())
		}
		if p.DueMS == 0 || wait.DueAtMS < p.DueMS {
			p.DueMS = wait.DueAtMS
		}
		switch wait.Kind {
		case step.KindEvent:
			p.Events = append(p.Events, wait.Name)
		case step.KindApproval:
			p.Approval, p.Message = true, wait.Message
		}
	}
	arrived, err := c.steps.Arrived(ctx, run.Lease, w.Waits, p.Taken)
	if err != nil {
		return none, nil, err
	}
	if len(arrived) > 0 {
		return none, mustJSON(arrived), nil
	}
	run.Park(p)
	return none, []byte("[]"), nil
}
