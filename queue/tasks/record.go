package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
)

// The fields of a task's record: those of the seed, and what announces the task.
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

// record is a task as it is stored.
type record struct {
	api.Task
	tenant string
	digest string // of what it was made of
}

// fields are the record's values; what is empty is absent.
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

// numbers are the fields that are decimal integers.
func (r *record) numbers() map[string]*int64 {
	return map[string]*int64{
		fieldCurrentStep: &r.CurrentStep, fieldStepCount: &r.StepCount, fieldCreatedAt: &r.CreatedAtMS, fieldUpdatedAt: &r.UpdatedAtMS,
		fieldTimeoutAt: &r.TimeoutAtMS, fieldTimeout: &r.TimeoutMS, fieldRepublished: &r.Republished,
	}
}

// version is what of the record says that it has not changed.
func (r *record) version() statestore.Fields {
	all := r.fields()
	return statestore.Fields{fieldState: all[fieldState], fieldUpdatedAt: all[fieldUpdatedAt]}
}

// changes are the fields in which after differs from r, nil for those that go.
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

// parse reads a stored record. CodeInternal where it is none of a task.
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
		var err error
		if *number, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return nil, damaged(r, name, text(name))
		}
	}
	// A crash in the middle of a write leaves fields that were to go.
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
