package wire

import (
	"github.com/codesous/sous/api"
	workerv1 "github.com/codesous/sous/api/worker/v1"
)

// FromNewJobs converts jobs to add.
func FromNewJobs(jobs []api.NewJob) []*workerv1.NewJob {
	out := make([]*workerv1.NewJob, len(jobs))
	for i := range jobs {
		out[i] = fromNewJob(&jobs[i])
	}
	return out
}

func fromNewJob(j *api.NewJob) *workerv1.NewJob {
	out := &workerv1.NewJob{
		Payload: j.Payload, Priority: string(j.Priority), RunAtMs: j.RunAtMS, ExpireAtMs: j.ExpireAtMS, UniqueKey: j.UniqueKey, UniqueTtlMs: j.UniqueTTLMS,
		MaxAttempts: int32(min(j.MaxAttempts, api.MaxMaxAttempts+1)), //nolint:gosec // the server refuses one more than the largest
		Backoff:     string(j.Backoff), BaseDelayMs: j.BaseDelayMS, MaxDelayMs: j.MaxDelayMS, Jitter: j.Jitter, Tags: j.Tags,
		DependsOn: j.DependsOn, OnDependencyFailure: j.OnDependencyFailure, BatchId: j.BatchID, Hold: j.Hold, ResultSchema: j.ResultSchema,
	}
	out.Agent, out.Routing = fromAgent(j.Agent), j.Routing
	if t := j.Target; t != nil {
		out.Target = &workerv1.Target{Function: t.Function, Alias: t.Alias, Version: t.Version}
	}
	if c := j.Chain; c != nil {
		out.Chain = &workerv1.Chain{OnFailure: fromStep(c.OnFailure), OnExit: fromStep(c.OnExit)}
		for i := range c.Steps {
			out.Chain.Steps = append(out.Chain.Steps, fromStep(&c.Steps[i]))
		}
	}
	return out
}

func fromStep(s *api.ChainStep) *workerv1.ChainStep {
	if s == nil {
		return nil
	}
	return &workerv1.ChainStep{Queue: s.Queue, Job: fromNewJob(&s.NewJob)}
}

// ToNewJobs converts jobs to add. A list that is empty stays so.
func ToNewJobs(jobs []*workerv1.NewJob) []api.NewJob {
	out := make([]api.NewJob, len(jobs))
	for i := range jobs {
		out[i] = toNewJob(jobs[i])
	}
	return out
}

func toNewJob(j *workerv1.NewJob) api.NewJob {
	out := api.NewJob{Payload: raw(j.GetPayload()), JobOptions: api.JobOptions{
		Priority: api.Priority(j.GetPriority()), RunAtMS: j.GetRunAtMs(), ExpireAtMS: j.GetExpireAtMs(), UniqueKey: j.GetUniqueKey(), UniqueTTLMS: j.GetUniqueTtlMs(),
		MaxAttempts: int(j.GetMaxAttempts()), Backoff: api.Backoff(j.GetBackoff()), MaxDelayMS: j.GetMaxDelayMs(), Jitter: j.GetJitter(), Tags: j.GetTags(),
		DependsOn: j.GetDependsOn(), OnDependencyFailure: j.GetOnDependencyFailure(), BatchID: j.GetBatchId(), Hold: j.GetHold(), ResultSchema: raw(j.GetResultSchema()),
	}}
	if j != nil {
		out.BaseDelayMS = j.BaseDelayMs
	}
	out.Agent, out.Routing = toAgent(j.GetAgent()), j.GetRouting()
	if t := j.GetTarget(); t != nil {
		out.Target = &api.JobTarget{Function: t.GetFunction(), Alias: t.GetAlias(), Version: t.GetVersion()}
	}
	if c := j.GetChain(); c != nil {
		out.Chain = &api.Chain{OnFailure: toStep(c.GetOnFailure()), OnExit: toStep(c.GetOnExit())}
		for _, s := range c.GetSteps() {
			out.Chain.Steps = append(out.Chain.Steps, api.ChainStep{Queue: s.GetQueue(), NewJob: toNewJob(s.GetJob())})
		}
	}
	return out
}

func toStep(s *workerv1.ChainStep) *api.ChainStep {
	if s == nil {
		return nil
	}
	return &api.ChainStep{Queue: s.GetQueue(), NewJob: toNewJob(s.GetJob())}
}

// FromEnqueued converts the result of an enqueue.
func FromEnqueued(jobs []api.EnqueuedJob, err *api.Error) *workerv1.Enqueued {
	out := &workerv1.Enqueued{Error: FromError(err)}
	for i := range jobs {
		out.Jobs = append(out.Jobs, &workerv1.EnqueuedJob{Id: jobs[i].ID, State: string(jobs[i].State), Duplicate: jobs[i].Duplicate})
		out.Replayed = out.Replayed || jobs[i].Replayed
	}
	return out
}

// ToEnqueued converts the result of an enqueue.
func ToEnqueued(e *workerv1.Enqueued) ([]api.EnqueuedJob, error) {
	return convert(e.GetJobs(), func(j *workerv1.EnqueuedJob) api.EnqueuedJob {
		return api.EnqueuedJob{ID: j.GetId(), State: api.JobState(j.GetState()), Duplicate: j.GetDuplicate(), Replayed: e.GetReplayed()}
	}), ToError(e.GetError())
}
