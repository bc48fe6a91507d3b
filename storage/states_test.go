package storage_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/storagetest"
)

// TestTaskStates: the index has the tasks that have not ended, oldest change first,
// each tenant's by itself, and serves scans of one type as of all.
func TestTaskStates(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant, other := storagetest.Tenant(t), storagetest.Tenant(t)
		states := s.TaskStates()
		put := func(tenant, taskType, id, state string, updatedAt int64) {
			t.Helper()
			err := states.Put(t.Context(), s.TaskKey(tenant, taskType, id), statestore.Record{Fields: statestore.Fields{
				"state": []byte(state), "updated_at": fmt.Append(nil, updatedAt),
			}})
			if err != nil {
				t.Fatalf("states.Put: %v", err)
			}
		}
		put(tenant, "email-send", "a", "running", 9)
		put(tenant, "email-send", "b", "pending", 10)
		put(tenant, "email-send", "c", "completed", 1)
		put(tenant, "email", "d", "claimed", 8)
		put(other, "email", "e", "pending", 2)
		open := &statestore.Filter{Field: "updated_at", Op: statestore.Less, Value: []byte("11"), Except: storage.TaskEnded()}
		scan := func(prefix string, f *statestore.Filter) (keys []string) {
			t.Helper()
			for e, err := range states.Scan(t.Context(), prefix, f) {
				if err != nil {
					t.Fatalf("unexpected error: %v", err)
				}
				keys = append(keys, e.Key)
			}
			return keys
		}
		a, b, c := s.TaskKey(tenant, "email-send", "a"), s.TaskKey(tenant, "email-send", "b"), s.TaskKey(tenant, "email-send", "c")
		d := s.TaskKey(tenant, "email", "d")
		if diff := cmp.Diff([]string{d, a, b}, scan(s.TaskKey(tenant, "", ""), open)); diff != "" {
			t.Errorf("open tasks differ (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{d}, scan(s.TaskKey(tenant, "email", ""), open)); diff != "" {
			t.Errorf("open tasks of email differ (-want +got):\n%s", diff)
		}
		all := &statestore.Filter{Field: "updated_at", Op: statestore.Less, Value: []byte("11")}
		if diff := cmp.Diff([]string{c, d, a, b}, scan(s.TaskKey(tenant, "", ""), all)); diff != "" {
			t.Errorf("tasks differ (-want +got):\n%s", diff)
		}
	})
}
