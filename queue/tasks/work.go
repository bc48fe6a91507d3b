package tasks

import (
	"cmp"
	"context"

	"github.com/codesous/sous/api"
)

// Claim assigns a pending task to a worker, in one write: a claimed task always has a worker and
// a timeout. For the worker that holds the task already it returns the task unchanged, so worker
// names must be unique: two workers of one name would both believe that they hold it. A worker
// that gets CodeTaskState leaves the task to its holder. Errors: CodeTaskState, CodeTaskNotFound,
// CodeInvalid….
func (t *Tasks) Claim(ctx context.Context, tenant, taskType, id string, c api.TaskClaim) (*api.Task, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return t.change(ctx, tenant, taskType, id, func(r *record, now int64) (*api.Task, error) {
		if r.heldBy(c.Worker) {
			return nil, nil //nolint:nilnil // documented: nothing is to change
		}
		if r.State != api.TaskPending {
			return nil, r.conflict("claimed")
		}
		next := r.Task
		next.State, next.Worker = api.TaskClaimed, c.Worker
		heard(&next, now, c.TimeoutMS)
		return &next, nil
	})
}

// Step reports the step that the worker of a task has reached, and extends the task's timeout.
// Steps must not decrease; the same step again is the heartbeat of a long one. Errors:
// CodeTaskState, CodeTaskNotFound, CodeTenantRate, CodeInvalid….
func (t *Tasks) Step(ctx context.Context, tenant, taskType, id string, s api.TaskStep) (*api.Task, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return t.change(ctx, tenant, taskType, id, func(r *record, now int64) (*api.Task, error) {
		if !r.heldBy(s.Worker) {
			return nil, r.conflict("stepped by " + s.Worker)
		}
		next := r.Task
		next.State, next.CurrentStep, next.StepCount = api.TaskRunning, s.Step, cmp.Or(s.StepCount, r.StepCount)
		switch {
		case s.Step < r.CurrentStep:
			return nil, api.Errorf(api.CodeTaskState, "task %s/%s is at step %d and does not go back to %d", r.TaskType, r.TaskID, r.CurrentStep, s.Step)
		case next.StepCount > 0 && s.Step > next.StepCount:
			return nil, api.Errorf(api.CodeInvalid, "step %d exceeds the task's %d", s.Step, next.StepCount).
				WithFields(api.FieldError{Path: "step", Message: "must not exceed step_count"})
		}
		heard(&next, now, s.TimeoutMS)
		return &next, nil
	})
}

// Complete ends a task that its worker has completed. A repeat with the same result succeeds.
// Errors: CodeTaskState, CodeTaskNotFound, CodeInvalid….
func (t *Tasks) Complete(ctx context.Context, tenant, taskType, id string, c api.TaskCompletion) (*api.Task, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return t.end(ctx, tenant, taskType, id, c.Worker, api.Task{State: api.TaskCompleted, ResultRef: c.ResultRef})
}

// Fail ends a task that its worker gave up. A repeat with the same error succeeds.
// Errors: CodeTaskState, CodeTaskNotFound, CodeInvalid….
func (t *Tasks) Fail(ctx context.Context, tenant, taskType, id string, f api.TaskFailure) (*api.Task, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return t.end(ctx, tenant, taskType, id, f.Worker, api.Task{State: api.TaskFailed, Error: f.Error})
}

// end ends the task that worker holds, with the state, the result and the error of how.
func (t *Tasks) end(ctx context.Context, tenant, taskType, id, worker string, how api.Task) (*api.Task, error) {
	return t.change(ctx, tenant, taskType, id, func(r *record, now int64) (*api.Task, error) {
		if r.State == how.State && r.Worker == worker && r.ResultRef == how.ResultRef && r.Error == how.Error {
			return nil, nil //nolint:nilnil // a repeat
		}
		if !r.heldBy(worker) {
			return nil, r.conflict("ended by " + worker)
		}
		next := r.Task
		next.State, next.ResultRef, next.Error = how.State, how.ResultRef, how.Error
		next.UpdatedAtMS, next.TimeoutAtMS = now, 0
		return &next, nil
	})
}

// Cancel ends a task that has not ended. A worker that holds it learns of that from its next
// report. A repeat succeeds. Errors: CodeTaskState, CodeTaskNotFound.
func (t *Tasks) Cancel(ctx context.Context, tenant, taskType, id string) (*api.Task, error) {
	return t.change(ctx, tenant, taskType, id, func(r *record, now int64) (*api.Task, error) {
		if r.State == api.TaskCancelled {
			return nil, nil //nolint:nilnil // a repeat
		}
		if r.State.Terminal() {
			return nil, r.conflict("cancelled")
		}
		next := r.Task
		next.State, next.UpdatedAtMS, next.TimeoutAtMS = api.TaskCancelled, now, 0
		return &next, nil
	})
}

// heldBy reports whether worker holds the task.
func (r *record) heldBy(worker string) bool {
	return (r.State == api.TaskClaimed || r.State == api.TaskRunning) && r.Worker == worker
}

// heard records that the task's worker reported at now, and when it must report next: after
// timeoutMS, the task's own timeout if that is 0, or api.TaskStuckMS.
func heard(next *api.Task, now, timeoutMS int64) {
	next.UpdatedAtMS, next.TimeoutAtMS = now, now+cmp.Or(timeoutMS, next.TimeoutMS, api.TaskStuckMS)
}

func (r *record) conflict(verb string) error {
	held := ""
	if r.Worker != "" {
		held = ", its worker " + r.Worker
	}
	return api.Errorf(api.CodeTaskState, "task %s/%s cannot be %s: it is %s%s", r.TaskType, r.TaskID, verb, r.State, held)
}
