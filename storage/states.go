package storage

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/statestore/kvrocks"
)

var _ kvrocks.Backend = (*Store)(nil)

// Failure is the function of the same name.
func (*Store) Failure(ctx context.Context, op string, err error) error {
	return Failure(ctx, op, err)
}

// States returns the state store: records of fields under a key. It maintains the given
// indexes of them; every writer of such records must name the same indexes.
func (s *Store) States(indexes ...kvrocks.Index) statestore.Store {
	return kvrocks.New(s, indexes...)
}

// TaskStates returns the state store of tasks, with the index of the tasks that have not
// ended.
func (s *Store) TaskStates() statestore.Store {
	return s.States(kvrocks.Index{
		Prefix: taskRecords,
		Key:    s.keys.taskIndexOf,
		Field:  "updated_at",
		Except: TaskEnded(),
	})
}

// TaskEnded matches the tasks that have ended. A scan of a tenant's tasks by updated_at
// that leaves them out is served by the index.
func TaskEnded() statestore.Exception {
	return statestore.Exception{Field: "state", Values: []string{
		string(api.TaskCompleted), string(api.TaskFailed), string(api.TaskCancelled),
	}}
}

// TaskKey returns the key of a tenant's task. With an empty id it is the prefix of the
// keys of all tasks of the type; with an empty type as well, of all the tenant's tasks.
func (s *Store) TaskKey(tenant, taskType, id string) string {
	return s.keys.taskPrefix(tenant, taskType) + id
}
