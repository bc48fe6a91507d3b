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
// ended. A task's record and its entry, before and after its last step:
//
//	HGETALL gbe:state:tasks:t_acme01.resize:42     state running, updated_at 1767225600000, …
//	ZSCORE  gbe:idx:tasks:t_acme01:by_updated …    1767225600000
//
//	HGETALL gbe:state:tasks:t_acme01.resize:42     state completed, updated_at 1767225660000, …
//	ZSCORE  gbe:idx:tasks:t_acme01:by_updated …    (none)
//
// The member is the record's key. Every writer of tasks uses this store: a scan corrects an
// entry that is wrong, but cannot find a record whose entry is missing.
func (s *Store) TaskStates() *kvrocks.Store {
	return kvrocks.New(s, kvrocks.Index{
		Prefix: taskRecords,
		Key:    s.keys.taskIndexOf,
		Field:  "updated_at",
		Except: TaskEnded(),
	})
}

// TaskEnded matches the tasks that have ended. A scan of a tenant's tasks by updated_at
// with this exception is served by the index; with any other it reads all keys.
func TaskEnded() statestore.Exception {
	return statestore.Exception{Field: "state", Values: []string{
		string(api.TaskCompleted), string(api.TaskFailed), string(api.TaskCancelled),
	}}
}

// TaskEvents returns the key of the stream of a tenant's events of a task type: those of kind
// progress, or those of kind terminal.
func (s *Store) TaskEvents(tenant, taskType, kind string) string {
	return s.keys.taskEvents(tenant, taskType, kind)
}

// TaskKey returns the key of a tenant's task. With an empty id it is the prefix of the
// keys of all tasks of the type; with an empty type as well, of all the tenant's tasks.
func (s *Store) TaskKey(tenant, taskType, id string) string {
	return s.keys.taskPrefix(tenant, taskType) + id
}
