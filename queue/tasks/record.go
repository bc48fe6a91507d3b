package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
)

// The fields of a task's record. The names of the first group are fixed: they are older than
// this package, as are the keys, which begin with gbe:. Times are Unix milliseconds as text:
//
//	state       running          current_step  1
//	task_type   reindex          created_at    1700000000000
//	task_id     42               updated_at    1700000002000
//	worker      w1               timeout_at    1700000302000
const (
	fieldState       = "state"
	fieldTaskType    = "task_type"
	fieldTaskID      = "task_id"
	fieldWorker      = "worker"
	fieldCurrentStep = "current_step"
	fieldStepCount   = "step_count"
	fieldCreatedAt   = "created_at"
	fieldUpdatedAt   = "updated_at"
	fieldTimeoutAt   = "timeout_at"
	fieldError       = "error"
	fieldParamsRef   = "params_ref"
	fieldResultRef   = "result_ref"

	fieldNamespace   = "namespace"
	fieldQueue       = "queue"
	fieldTimeout     = "timeout_ms"
	fieldRepublished = "republished"
	fieldJob         = "job_id"
	fieldPayload     = "payload"
	fieldDigest      = "digest"
)

// record is a stored task.
type record struct {
	api.Task
	tenant string
	digest string // of the content with which the task was created
}

// fields returns the record's fields. Empty values are absent.
func (r *record) fields() statestore.Fields {
	out := statestore.Fields{}
	for name, value := range map[string]string{
		fieldState: string(r.State), fieldTaskType: r.TaskType, fieldTaskID: r.TaskID, fieldWorker: r.Worker,
		fieldError: r.Error, fieldParamsRef: r.ParamsRef, fieldResultRef: r.ResultRef,
		fieldNamespace: r.Namespace, fieldQueue: r.Queue, fieldJob: r.JobID, fieldPayload: string(r.Payload), fieldDigest: r.digest,
	} {
		if value != "" {
			out[name] = []byte(value)
		}
	}
	for name, number := range r.numbers() {
		if *number != 0 {
			out[name] = strconv.AppendInt(nil, *number, 10)
		}
	}
	return out
}

// numbers returns the fields that are decimal integers.
func (r *record) numbers() map[string]*int64 {
	return map[string]*int64{
		fieldCurrentStep: &r.CurrentStep, fieldStepCount: &r.StepCount, fieldCreatedAt: &r.CreatedAtMS, fieldUpdatedAt: &r.UpdatedAtMS,
		fieldTimeoutAt: &r.TimeoutAtMS, fieldTimeout: &r.TimeoutMS, fieldRepublished: &r.Republished,
	}
}

// version returns the fields that a compare-and-set compares: they differ after every change,
// because each raises updated_at. A postponement by a sweep leaves both: a change that was
// decided before it is still written, and replaces the timeout that it set.
func (r *record) version() statestore.Fields {
	all := r.fields()
	return statestore.Fields{fieldState: all[fieldState], fieldUpdatedAt: all[fieldUpdatedAt]}
}

// changes returns the fields in which after differs from r, nil for those that are removed.
func (r *record) changes(after *record) statestore.Fields {
	was, is := r.fields(), after.fields()
	out := statestore.Fields{}
	for name, value := range is {
		if before, ok := was[name]; !ok || !bytes.Equal(before, value) {
			out[name] = value
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			out[name] = nil
		}
	}
	return out
}

// parse parses a stored record. Error: CodeInternal if the record is damaged. It is returned
// for an unknown state or a number that is none, and not for missing fields.
func parse(tenant string, stored statestore.Record) (*record, error) {
	text := func(name string) string { return string(stored.Fields[name]) }
	r := &record{
		tenant: tenant, digest: text(fieldDigest),
		Task: api.Task{
			State: api.TaskState(text(fieldState)), TaskType: text(fieldTaskType), TaskID: text(fieldTaskID), Worker: text(fieldWorker),
			Error: text(fieldError), ParamsRef: text(fieldParamsRef), ResultRef: text(fieldResultRef),
			Namespace: text(fieldNamespace), Queue: text(fieldQueue), JobID: text(fieldJob),
		},
	}
	if payload := stored.Fields[fieldPayload]; len(payload) > 0 {
		r.Payload = json.RawMessage(payload)
	}
	for name, number := range r.numbers() {
		value, ok := stored.Fields[name]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return nil, damaged(r, name, text(name))
		}
		*number = n
	}
	// A crash in the middle of a write leaves fields that the write removes.
	switch r.State {
	case api.TaskPending:
		r.Worker = ""
	case api.TaskClaimed, api.TaskRunning:
	case api.TaskCompleted, api.TaskFailed, api.TaskCancelled:
		r.TimeoutAtMS = 0
	default:
		return nil, damaged(r, fieldState, text(fieldState))
	}
	return r, nil
}

func damaged(r *record, field, value string) error {
	return api.Wrap(api.CodeInternal, fmt.Errorf("task %s/%s of %s: field %s is %q", r.TaskType, r.TaskID, r.tenant, field, value), "the task's record is damaged")
}
