package jobstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Purge deletes jobs of q in one state, those whose run is still that of the record, with
// all their data. It returns how many it deleted; a job whose run is missing counts as
// deleted, because an interrupted purge may have left the rest. The state must not be pending,
// which has a set for each priority. The consequences of the jobs' ends should have been
// handled before. Errors: CodeStoreUnavailable.
func (s *Store) Purge(ctx context.Context, q Queue, state api.JobState, records []*Record) (int, error) {
	return s.purge(ctx, q, s.Keys(q).Set(string(state)), records)
}

// purge is Purge for jobs in one set of q.
func (s *Store) purge(ctx context.Context, q Queue, set string, records []*Record) (int, error) {
	if len(records) == 0 {
		return 0, nil
	}
	tenant := s.store.JobKeys(q.Tenant)
	keys := []string{set, tenant.Approvals()}
	args := []any{len(records)}
	for _, r := range records {
		keys = append(keys, tenant.Run(r.ID), tenant.Spec(r.ID), tenant.Meta(r.ID), tenant.Errors(r.ID), tenant.Dependents(r.ID), tenant.Ledger(r.ID), tenant.Steps(r.ID))
		args = append(args, r.ID, r.Stored)
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobPurge, keys, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("queue: %s replied %v", storage.ScriptJobPurge, reply)
	}
	return int(n), nil
}

// Partition separates the members of one of q's sets from strays: entries of jobs that do
// not exist, or that are no longer in q and in one of the given states. found[i] is the
// record of ids[i], nil if there is none. No states means any state.
func Partition(q Queue, ids []string, found []*Record, states ...api.JobState) (members, strays []*Record) {
	for i, r := range found {
		switch {
		case r == nil:
			strays = append(strays, &Record{ID: ids[i]})
		case r.Queue(q.Tenant) != q || len(states) > 0 && !slices.Contains(states, r.Run.State):
			strays = append(strays, r)
		default:
			members = append(members, r)
		}
	}
	return members, strays
}

// Drop removes the entries of strays from a set of q, unless their jobs have changed since
// they were read: a job may have come back into the set meanwhile, and every change of a job
// changes its run. It returns how many it removed. Errors: CodeStoreUnavailable.
func (s *Store) Drop(ctx context.Context, q Queue, key string, strays []*Record) (int, error) {
	dropped, err := s.dropEach(ctx, q, key, strays)
	return len(dropped), err
}

// dropEach is Drop, but returns the ids of the removed entries.
func (s *Store) dropEach(ctx context.Context, q Queue, key string, strays []*Record) ([]string, error) {
	if len(strays) == 0 {
		return nil, nil
	}
	tenant := s.store.JobKeys(q.Tenant)
	keys, args := []string{key}, []any{len(strays)}
	for _, r := range strays {
		keys, args = append(keys, tenant.Run(r.ID)), append(args, r.ID, r.Stored)
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobDrop, keys, args...)
	return Words(reply), err
}

// DropFrom is Drop for strays found in a page of one or more sets, which Page returned. It
// returns the ids of the removed entries. Errors: CodeStoreUnavailable.
func (s *Store) DropFrom(ctx context.Context, q Queue, step []Position, strays []*Record) (dropped []string, err error) {
	sets := make(map[string]string, len(step))
	for _, p := range step {
		sets[p.ID] = p.Set
	}
	in := map[string][]*Record{}
	for _, r := range strays {
		in[sets[r.ID]] = append(in[sets[r.ID]], r)
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

// Followed returns those of q's ended jobs whose consequences were handled: they have no marker in
// the after set. A job can keep its marker for long: the store may fail, or there are too many. Errors: CodeStoreUnavailable.
func (s *Store) Followed(ctx context.Context, q Queue, ended []*Record) ([]*Record, error) {
	if len(ended) == 0 {
		return nil, nil
	}
	key := s.Keys(q).After()
	marked, err := s.rdb.ZCard(ctx, key).Result()
	if err != nil || marked == 0 {
		return ended, Failure(ctx, "count markers", err)
	}
	pipe := s.rdb.Pipeline()
	markers := make([]*redis.FloatCmd, len(ended))
	for i, r := range ended {
		markers[i] = pipe.ZScore(ctx, key, r.ID)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, Failure(ctx, "read markers", err)
	}
	var out []*Record
	for i, r := range ended {
		switch err := markers[i].Err(); {
		case errors.Is(err, redis.Nil):
			out = append(out, r)
		case err != nil:
			return nil, Failure(ctx, "read markers", err)
		}
	}
	return out, nil
}
