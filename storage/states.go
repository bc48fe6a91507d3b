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

// States gives the records of fields in the store, and keeps the given indexes of
// them: whoever writes such records names the same ones.
func (s *Store) States(indexes ...kvrocks.Index) statestore.Store {
	return kvrocks.New(s, indexes...)
}

// TaskStates gives the records of tasks, with the index of those that have not ended.
func (s *Store) TaskStates() statestore.Store {
	return s.States(kvrocks.Index{
		Prefix: taskRecords,
		Key:    s.keys.taskIndexOf,
		Field:  "updated_at",
		Except: TaskEnded(),
	})
}

// TaskEnded names the tasks that have ended. A scan of a tenant's tasks by updated_at
// that leaves them out is served by the index.
func TaskEnded() statestore.Exception {
	return statestore.Exception{Field: "state", Values: []string{
		string(api.TaskCompleted), string(api.TaskFailed), string(api.TaskCancelled),
	}}
}

// TaskKey is the key of a tenant's task. Without an id it begins the keys of all of
// the type, without a type those of the tenant's tasks.
func (s *Store) TaskKey(tenant, taskType, id string) string {
	return s.keys.taskPrefix(tenant, taskType) + id
}
