// Package tasks keeps the state of long-running work beside the queue that announces it: which
// worker has a task, which step it has reached, and when it last reported. Every change is one
// compare-and-set of the task's record: of many callers exactly one succeeds, and a repeat by
// the same caller is safe.
//
// The record (record.go) is in the state store. The job only announces the task: a worker that
// fetches it claims the task, and may settle the job as soon as it has. A task of which a worker
// dies, with the default timeout of api.TaskStuckMS, 300 s:
//
//	 t     call                state    worker  step  republished  timeout_at
//	 0 s   Create              pending                0            —            job A0 is enqueued
//	 1 s   Claim by w1         claimed  w1            0            301 s
//	 2 s   Step 1 by w1        running  w1      1     0            302 s
//	 3 s   w1 dies
//	310 s  Sweep               pending          1     1            —            job A1 is enqueued
//	311 s  Claim by w2         claimed  w2      1     1            611 s
//	312 s  w1 is back, Step 2  claimed  w2      1     1            611 s        CodeTaskState
//	320 s  Complete by w2      completed        1     1            —            kept for 7 days
//
// create.go makes tasks, announce.go their jobs, work.go has the workers' calls, list.go reads
// pages, events.go publishes and reads what changes, and sweep.go repairs tasks whose workers do
// not report. All writes go through Tasks.write, except for the first one and for the
// postponement of a sweep.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore/kvrocks"
)

// Config adjusts Tasks. A zero value means the default.
type Config struct {
	// Logger logs repairs. Default: none.
	Logger *zap.Logger
}

// Tasks manages the tasks of all tenants in one store. It is safe for concurrent use, and any
// number of processes may have one over the same store.
type Tasks struct {
	store   *storage.Store
	states  *kvrocks.Store
	broker  *queue.Broker
	tenants *storage.Tenants
	log     *zap.Logger
	known   *otter.Cache[string, struct{}] // tenants that this process has entered; see enter
	swept   *otter.Cache[string, position] // where the sweeps of tenants continue that ended early
}

// knownTenants bounds the tenants that a process remembers.
const knownTenants = 20_000

// New returns the tasks in store, which are announced by jobs in broker. It closes neither.
func New(store *storage.Store, broker *queue.Broker, cfg Config) (*Tasks, error) {
	if store == nil || broker == nil {
		return nil, errors.New("tasks: a store and a queue are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	known, err := otter.New(&otter.Options[string, struct{}]{MaximumSize: knownTenants})
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", err)
	}
	swept, err := otter.New(&otter.Options[string, position]{MaximumSize: knownTenants})
	if err != nil {
		return nil, fmt.Errorf("tasks: %w", err)
	}
	return &Tasks{
		store: store, states: store.TaskStates(), broker: broker, tenants: storage.NewTenants(store), log: cfg.Logger, known: known, swept: swept,
	}, nil
}

// Get returns a task. Errors: CodeTaskNotFound, CodeValidationName.
func (t *Tasks) Get(ctx context.Context, tenant, taskType, id string) (*api.Task, error) {
	r, err := t.find(ctx, tenant, taskType, id)
	if err != nil {
		return nil, err
	}
	return t.show(r), nil
}

func validate(tenant, taskType, id string) error {
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	if err := api.ValidateTaskType(taskType); err != nil {
		return err
	}
	return api.ValidateTaskID(id)
}

// find reads a task's record. Errors: CodeTaskNotFound, CodeValidationName, CodeInternal for a
// damaged record.
func (t *Tasks) find(ctx context.Context, tenant, taskType, id string) (*record, error) {
	if err := validate(tenant, taskType, id); err != nil {
		return nil, err
	}
	found, err := t.states.Get(ctx, t.store.TaskKey(tenant, taskType, id))
	if err != nil {
		return nil, fmt.Errorf("read a task: %w", err)
	}
	if found == nil {
		return nil, NotFound(taskType, id)
	}
	r, err := parse(tenant, *found)
	if err != nil {
		return nil, err
	}
	// An ended task is kept for a limited time. A crash between its end and the call of retire
	// leaves that call to the next reader.
	if r.State.Terminal() && found.TTL == 0 {
		err = t.retire(ctx, r)
	}
	return r, err
}

// NotFound returns the error for a task that does not exist, with CodeTaskNotFound.
func NotFound(taskType, id string) error {
	return api.Errorf(api.CodeTaskNotFound, "task %s/%s does not exist", taskType, id)
}

// retire lets the record of an ended task expire after api.TaskRetentionMS. It cannot be part of
// the write that ends the task: a compare-and-set keeps the time-to-live.
func (t *Tasks) retire(ctx context.Context, r *record) error {
	return t.states.Expire(ctx, t.key(r), api.TaskRetentionMS*time.Millisecond)
}

func (t *Tasks) key(r *record) string { return t.store.TaskKey(r.tenant, r.TaskType, r.TaskID) }

// show returns the task as callers see it, a copy. Stuck is computed by the present time.
func (t *Tasks) show(r *record) *api.Task {
	task := r.Task
	task.Stuck = task.StuckAt(t.store.NowMS())
	return &task
}

// maxTries bounds the attempts of a change that conflicts with other changes. Each conflict means
// that another change succeeded, so only a storm of changes reaches it.
const maxTries = 100

// change writes the task that decide returns, nil for no change, if the task has not changed
// since decide saw it; otherwise decide is called again with the new record. If the answer to
// the write is lost, a repeat of the call finds its own result: each decide recognizes the state
// that it would write, and returns nil then.
func (t *Tasks) change(ctx context.Context, tenant, taskType, id string, decide func(r *record, now int64) (*api.Task, error)) (*api.Task, error) {
	for range maxTries {
		r, err := t.find(ctx, tenant, taskType, id)
		if err != nil {
			return nil, err
		}
		next, err := decide(r, t.store.NowMS())
		if err != nil {
			return nil, err
		}
		if next == nil {
			return t.show(r), nil
		}
		if done, err := t.write(ctx, r, *next); done || err != nil {
			return t.show(r), err
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "task %s/%s keeps changing", taskType, id)
}

// write replaces r by next if r has not changed since it was read, and reports whether it did.
// The times of changes strictly increase, so that a time identifies a version of its record.
func (t *Tasks) write(ctx context.Context, r *record, next api.Task) (bool, error) {
	next.UpdatedAtMS = max(next.UpdatedAtMS, r.UpdatedAtMS+1)
	after := *r
	after.Task = next
	done, err := t.publish(ctx, r, &after)
	if err != nil {
		return false, fmt.Errorf("change a task: %w", err)
	}
	if !done {
		return false, nil
	}
	*r = after
	if next.State.Terminal() {
		return true, t.retire(ctx, r)
	}
	return true, nil
}
