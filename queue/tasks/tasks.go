// Package tasks keeps the state of long pieces of work beside the queue that
// announces them: who has a task, how far it has come, and since when nobody has
// said anything. Every change is one compare-and-set of the task's record, so that
// of many callers exactly one succeeds, and a repeat by the same one is safe.
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
	"github.com/codesous/sous/storage/statestore"
)

// Config is what Tasks can be told; zero values mean the documented default.
type Config struct {
	// Logger gets what the sweeper repairs (default: none).
	Logger *zap.Logger
}

// Tasks are the tasks of all tenants over one store. It is safe for concurrent
// use, and any number may work on one store.
type Tasks struct {
	store   *storage.Store
	states  statestore.Store
	broker  *queue.Broker
	tenants *storage.Tenants
	log     *zap.Logger
	known   *otter.Cache[string, struct{}] // tenants that are entered
}

// knownTenants bounds what a process remembers.
const knownTenants = 20_000

// New makes tasks over a store and the queue that announces them, which stay the
// caller's to close.
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
	return &Tasks{
		store: store, states: store.TaskStates(), broker: broker, tenants: storage.NewTenants(store), log: cfg.Logger, known: known,
	}, nil
}

// Get reads a task. CodeTaskNotFound.
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

// find reads a task's record. CodeTaskNotFound, CodeValidationName.
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
	// What ended is kept for a while only. A crash between the end and this leaves it
	// to the next who looks.
	if r.State.Terminal() && found.TTL == 0 {
		err = t.retire(ctx, r)
	}
	return r, err
}

// NotFound is what is said of a task that does not exist.
func NotFound(taskType, id string) error {
	return api.Errorf(api.CodeTaskNotFound, "task %s/%s does not exist", taskType, id)
}

// retire lets the record of a task that has ended go when its time is over.
func (t *Tasks) retire(ctx context.Context, r *record) error {
	return t.states.Expire(ctx, t.key(r), api.TaskRetentionMS*time.Millisecond)
}

func (t *Tasks) key(r *record) string { return t.store.TaskKey(r.tenant, r.TaskType, r.TaskID) }

// show is the record as it is told to callers.
func (t *Tasks) show(r *record) *api.Task {
	task := r.Task
	task.Stuck = task.StuckAt(t.store.NowMS())
	return &task
}

// maxTries bounds how often a change is decided anew because others changed the
// record meanwhile. Each of them got somewhere: it takes a storm to reach it.
const maxTries = 100

// change lets decide say which fields of a task are to be others, nil for none,
// and writes them if the task is still what decide saw; else decide looks again.
// Whether a write was answered or not, a repeat meets its own result.
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
	return nil, api.Errorf(api.CodeStoreConflict, "others keep changing task %s/%s", taskType, id)
}

// write makes r what next says if it has not changed since it was read, and says
// whether it did. Times of changes grow, so that one is the version of its record.
func (t *Tasks) write(ctx context.Context, r *record, next api.Task) (bool, error) {
	next.UpdatedAtMS = max(next.UpdatedAtMS, r.UpdatedAtMS+1)
	after := *r
	after.Task = next
	done, err := t.states.CompareAndSet(ctx, t.key(r), r.version(), r.changes(&after))
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
