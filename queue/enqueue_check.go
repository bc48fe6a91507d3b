package queue

import (
	"cmp"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// validate checks the call without reading the store: CodeInvalid…, CodeBodyLimit.
func (e *Enqueue) validate(nowMS int64) error {
	switch {
	case len(e.Jobs) == 0:
		return api.Errorf(api.CodeInvalid, "the call has no jobs").WithFields(api.FieldError{Path: "jobs", Message: "must hold at least one job"})
	case len(e.Jobs) > api.MaxEnqueueJobs:
		return api.Errorf(api.CodeInvalid, "the call has %d jobs, the limit is %d", len(e.Jobs), api.MaxEnqueueJobs).WithFields(api.FieldError{Path: "jobs", Message: "must hold at most " + strconv.Itoa(api.MaxEnqueueJobs) + " jobs"})
	}
	total := 0
	for i := range e.Jobs {
		j := &e.Jobs[i]
		total += len(j.Payload)
		err := j.Validate(nowMS)
		if err == nil && j.BatchID != e.Jobs[0].BatchID {
			err = api.Errorf(api.CodeInvalid, "the jobs of the call name different batches").
				WithFields(api.FieldError{Path: "batch_id", Message: "must be the same for all jobs of a call"})
		}
		if err != nil {
			return jobstore.AtIndex(err, i)
		}
	}
	if total > api.MaxEnqueueBytes {
		return api.Errorf(api.CodeBodyLimit, "the payloads have %s in total, the limit is %s", api.SizeText(total), api.SizeText(api.MaxEnqueueBytes))
	}
	return nil
}

// checkOptions checks the options of a job of queue, and of the steps of its chain:
// CodeQueueReserved, CodeInvalid, CodeBodyLimit if the schemas of the call have used up budget.
func (b *Broker) checkOptions(queue string, o *api.JobOptions, budget *schema.Budget) error {
	if jobstore.IsFunctionQueue(queue) != (o.Target != nil) {
		return api.Errorf(api.CodeQueueReserved, "queues fn.… are reserved for the platform: their jobs, and no others, have a target")
	}
	if o.Target != nil && queue != api.FunctionQueuePrefix+o.Target.Function {
		return api.InvalidField("target.function", "must be the function of the queue")
	}
	if len(o.ResultSchema) > 0 {
		if err := b.results.CheckSchema(o.ResultSchema, budget); err != nil {
			return err
		}
	}
	if o.Chain == nil {
		return nil
	}
	queues := []string{queue} // those in which the chain may end
	for i := range o.Chain.Steps {
		step := &o.Chain.Steps[i]
		queue = cmp.Or(step.Queue, queue)
		queues = append(queues, queue)
		if err := b.checkOptions(queue, &step.JobOptions, budget); err != nil {
			return err
		}
	}
	for _, step := range []*api.ChainStep{o.Chain.OnFailure, o.Chain.OnExit} {
		if step == nil {
			continue
		}
		in := queues
		if step.Queue != "" {
			in = []string{step.Queue}
		}
		for _, queue := range in {
			if err := b.checkOptions(queue, &step.JobOptions, budget); err != nil {
				return err
			}
		}
	}
	return nil
}
