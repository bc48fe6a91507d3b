package hostcall

import (
	"context"
	"encoding/json"
	"math"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// jobCalls serves cs.job. It needs no capability, but an activation that is an attempt
// of a job.
type jobCalls struct{}

// calls returns the two calls. Both are accepted as soon as they are checked; the worker
// sends them with the next renewal of the job's lease (invoker/job_updates.go).
func (c jobCalls) calls() map[string]call {
	return map[string]call{
		wire.JobProgress.Name:   handle(wire.JobProgress, free, c.progress),
		wire.JobCheckpoint.Name: handle(wire.JobCheckpoint, free, c.checkpoint),
	}
}

// JobUpdate is a change of a job's progress, of its checkpoint, or of both. A nil field is
// unchanged.
type JobUpdate struct {
	Progress   *api.JobProgress
	Checkpoint json.RawMessage
}

// Empty reports whether u changes nothing.
func (u JobUpdate) Empty() bool { return u.Progress == nil && u.Checkpoint == nil }

// Over returns u with the fields of older that u leaves unchanged: the update to send after
// older did not arrive.
func (u JobUpdate) Over(older JobUpdate) JobUpdate {
	if u.Progress == nil {
		u.Progress = older.Progress
	}
	if u.Checkpoint == nil {
		u.Checkpoint = older.Checkpoint
	}
	return u
}

// notAJob is the refusal of call, the name that scripts use, outside of jobs.
func notAJob(call string) error {
	return invalid("%s is for jobs: this activation is not an asynchronous invocation", call)
}

// progress keeps how far the job has come. Fractions are cut off. Errors:
// CodeHostInvalidArgument, also for an activation that is no attempt of a job.
func (jobCalls) progress(_ context.Context, s *Scope, a wire.Progress, _ []byte) (none wire.None, _ []byte, err error) {
	const most = wire.MaxProgressCount
	switch {
	case s.UpdateJob == nil:
		return none, nil, notAJob("cs.job.progress")
	case a.Current < 0 || a.Current > most || a.Total < 0 || a.Total > most:
		return none, nil, invalid("cs.job.progress: current and total are from 0 to 2^53")
	case len(a.Message) > api.MaxProgressMessage:
		return none, nil, invalid("cs.job.progress: a message is at most %s", api.SizeText(api.MaxProgressMessage))
	}
	s.UpdateJob(a.Order, JobUpdate{Progress: &api.JobProgress{
		Current: int64(math.Floor(a.Current)), Total: int64(math.Floor(a.Total)), Message: a.Message,
	}})
	return none, nil, nil
}

// checkpoint keeps a value for the job's next attempt, which reads it by
// cs.job.lastCheckpoint. Errors: as those of progress.
func (jobCalls) checkpoint(_ context.Context, s *Scope, a wire.Checkpoint, value []byte) (none wire.None, _ []byte, err error) {
	switch {
	case s.UpdateJob == nil:
		return none, nil, notAJob("cs.job.checkpoint")
	case len(value) > api.MaxCheckpointBytes:
		return none, nil, invalid("cs.job.checkpoint: a checkpoint is at most %s of JSON", api.SizeText(api.MaxCheckpointBytes))
	case !json.Valid(value):
		return none, nil, invalid("cs.job.checkpoint: a checkpoint is JSON")
	}
	s.UpdateJob(a.Order, JobUpdate{Checkpoint: value})
	return none, nil, nil
}
