package jobstore

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Purge deletes jobs of one state and queue, those whose run still is the record's.
func (s *Store) Purge(ctx context.Context, q Queue, state api.JobState, records []*Record) (int, error) {
	if len(records) == 0 {
		return 0, nil
	}
	tenant := s.store.JobKeys(q.Tenant)
	keys := []string{s.Keys(q).Set(string(state))}
	args := []any{len(records)}
	for _, r := range records {
		keys = append(keys, tenant.Run(r.Id), tenant.Spec(r.Id), tenant.Meta(r.Id), tenant.Errors(r.Id), tenant.Dependents(r.Id))
		args = append(args, r.Id, r.Stored)
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobPurge, keys, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("queue: a purge answered %v", reply)
	}
	return int(n), nil
}

// Partition parts the members of one of q's sets from strays: jobs that are not, or not
// any more, in one of the given states of q.
func Partition(q Queue, ids []string, found []*Record, states ...api.JobState) (members, strays []*Record) {
	for i, r := range found {
		switch {
		case r == nil:
			strays = append(strays, &Record{Id: ids[i]})
		case r.Queue(q.Tenant) != q || !oneOf(r.Run.State, states):
			strays = append(strays, r)
		default:
			members = append(members, r)
		}
	}
	return members, strays
}

// Drop takes strays out of a set, those that have not come back since they were
// read, and says how many it took.
func (s *Store) Drop(ctx context.Context, q Queue, key string, strays []*Record) (int, error) {
	dropped, err := s.dropEach(ctx, q, key, strays)
	return len(dropped), err
}

// dropEach is drop that names the jobs whose entries it took.
func (s *Store) dropEach(ctx context.Context, q Queue, key string, strays []*Record) ([]string, error) {
	if len(strays) == 0 {
		return nil, nil
	}
	tenant := s.store.JobKeys(q.Tenant)
	keys, args := []string{key}, []any{len(strays)}
	for _, r := range strays {
		keys, args = append(keys, tenant.Run(r.Id)), append(args, r.Id, r.Stored)
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobDrop, keys, args...)
	return Words(reply), err
}

// DropFrom is dropEach for strays that a step met.
func (s *Store) DropFrom(ctx context.Context, q Queue, step []Position, strays []*Record) (dropped []string, err error) {
	sets := make(map[string]string, len(step))
	for _, p := range step {
		sets[p.Id] = p.Set
	}
	in := map[string][]*Record{}
	for _, r := range strays {
		in[sets[r.Id]] = append(in[sets[r.Id]], r)
	}
	for set, strays := range in {
		some, err := s.dropEach(ctx, q, set, strays)
		dropped = append(dropped, some...)
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

func oneOf(s api.JobState, states []api.JobState) bool {
	for _, state := range states {
		if s == state {
			return true
		}
	}
	return len(states) == 0
}
