package queue

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// validate refuses what cannot be enqueued.
func (e *Enqueue) validate(nowMS int64) error {
	switch {
	case len(e.Jobs) == 0:
		return api.Errorf(api.CodeInvalid, "there is no job").WithFields(api.FieldError{Path: "jobs", Message: "must hold at least one"})
	case len(e.Jobs) > api.MaxEnqueueJobs:
		return api.Errorf(api.CodeInvalid, "at most %d jobs a call", api.MaxEnqueueJobs).WithFields(api.FieldError{Path: "jobs", Message: "are too many"})
	}
	total := 0
	for i := range e.Jobs {
		j := &e.Jobs[i]
		total += len(j.Payload)
		err := j.Validate(nowMS)
		if err == nil && j.BatchID != e.Jobs[0].BatchID {
			err = api.Errorf(api.CodeInvalid, "all jobs of a call are of one batch").
				WithFields(api.FieldError{Path: "batch_id", Message: "must be the same for all jobs of a call"})
		}
		if err != nil {
			return atIndex(err, i)
		}
	}
	if total > api.MaxEnqueueBytes {
		return api.Errorf(api.CodeBodyLimit, "the payloads exceed %d bytes together", api.MaxEnqueueBytes)
	}
	return nil
}

// confine refuses (CodeBatchNotFound, CodeJobNotFound) what jobs refer to outside
// their namespace.
func (b *Broker) confine(ctx context.Context, e *Enqueue) error {
	if id := e.Jobs[0].BatchID; id != "" { // of all of them
		if _, err := b.GetBatch(ctx, e.Tenant, e.Namespace, id); err != nil {
			return err
		}
	}
	var needed []string
	for i := range e.Jobs {
		needed = append(needed, e.Jobs[i].DependsOn...)
	}
	if len(needed) == 0 {
		return nil
	}
	in, err := b.Within(ctx, e.Tenant, e.Namespace, needed)
	if err != nil {
		return err
	}
	for _, id := range needed {
		if !in[id] {
			return api.Errorf(api.CodeJobNotFound, "job %s does not exist", id).
				WithFields(api.FieldError{Path: "depends_on", Message: "must be ids of jobs that exist"})
		}
	}
	return nil
}

// checkOptions refuses what a job of a queue, or a step of its chain, cannot be
// told: CodeQueueReserved, CodeInvalid.
func (b *Broker) checkOptions(queue string, o *api.JobOptions) error {
	if jobstore.IsFunctionQueue(queue) != (o.Target != nil) {
		return api.Errorf(api.CodeQueueReserved, "queues fn.… are the platform's: their jobs, and only theirs, have a target")
	}
	if o.Target != nil && queue != api.FunctionQueuePrefix+o.Target.Function {
		return api.InvalidField("target.function", "must be the function of the queue")
	}
	if len(o.ResultSchema) > 0 {
		if err := b.checkSchema(o.ResultSchema); err != nil {
			return err
		}
	}
	if o.Chain == nil {
		return nil
	}
	queues := []string{queue} // in which a step may end
	for i := range o.Chain.Steps {
		step := &o.Chain.Steps[i]
		queue = cmp.Or(step.Queue, queue)
		queues = append(queues, queue)
		if err := b.checkOptions(queue, &step.JobOptions); err != nil {
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
			if err := b.checkOptions(queue, &step.JobOptions); err != nil {
				return err
			}
		}
	}
	return nil
}

// atIndex puts the job's place before the paths of an error's fields.
func atIndex(err error, i int) error {
	place := "jobs[" + strconv.Itoa(i) + "]"
	coded := api.Errorf(api.ErrorCode(err), "%s: %s", place, jobstore.MessageOf(err))
	fields := jobstore.FieldsOf(err)
	if len(fields) == 0 {
		fields = []api.FieldError{{Message: jobstore.MessageOf(err)}}
	}
	for _, f := range fields {
		f.Path = strings.TrimSuffix(place+"."+f.Path, ".")
		coded.Fields = append(coded.Fields, f)
	}
	return coded
}
