package jobstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// The replies of the ack script for a job that the same epoch has completed before. Its
// other replies are those of a move.
const (
	Repeated      = "again"
	RepeatedAfter = "again after" // and its consequences are still to be handled
)

// Completion is one job to be completed, and the result. Two ways lead to the same state:
// CompleteKnown compares the whole run, as the summary cache of this process has it, and
// Complete only compares the epoch.
type Completion struct {
	ID, Result, Unique string // Result and Unique are "" for none
	Epoch              int64  // of the lease that the worker holds
	Run                string // of the job, as this process knows it; may be out of date
	Outcome            string // set by the call: Moved, MovedAfter, Repeated, RepeatedAfter, Missing, or the job's present run
	Err                error  // set by the call
}

// CompleteKnown completes those of items whose run this process knows and that need no
// other write: no result, no unique key, no consequences. It passes fewer arguments to a
// shorter script than Complete. It returns the items that it did not complete; their runs
// have changed, for example by a heartbeat, or they need Complete. A repeat after a lost
// reply returns the jobs that the first try completed, and Complete reports them as Repeated.
// Errors: CodeStoreUnavailable.
func (s *Store) CompleteKnown(ctx context.Context, q Queue, items []*Completion) (rest []*Completion, err error) {
	now := s.store.NowMS()
	var plain []*Completion
	groups := map[Run][]*Completion{}
	for _, item := range items {
		held, err := ParseRun(item.Run)
		if err != nil || item.Result != "" || item.Unique != "" || held.State != api.JobActive || held.Epoch != item.Epoch || held.follows == followsEnd {
			rest = append(rest, item)
			continue
		}
		groups[held] = append(groups[held], item)
	}
	if len(groups) == 0 {
		return rest, nil
	}
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	keys := append(make([]string, 0, 4+len(items)), k.Set(string(api.JobActive)), k.Set(string(api.JobCompleted)), k.Config(), tenant.Events())
	args := append(make([]any, 0, 2+2*len(items)), now, q.Path())
	for held, group := range groups {
		args = append(args, len(group), held.String(), held.Settle(SettledAck).To(api.JobCompleted, now).String(), held.EventDetail("", "", ""))
		for _, item := range group {
			plain = append(plain, item)
			keys = append(keys, tenant.Run(item.ID))
			args = append(args, item.ID)
		}
	}
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobComplete, keys, args, func(pipe redis.Pipeliner) {
		s.markSlotFreed(ctx, pipe, q)
		s.events.Trim(ctx, pipe, q.Tenant)
	})
	if err != nil {
		return nil, err
	}
	for _, item := range plain {
		item.Outcome = Moved
	}
	changed, err := Indexes(storage.ScriptJobComplete, Words(reply), len(plain))
	if err != nil {
		return nil, err
	}
	for _, at := range changed {
		rest = append(rest, plain[at])
	}
	return rest, nil
}

// Complete completes items of q, each if its epoch holds the job, and sets their outcomes.
// It returns how many it completed, and the ids of those whose end has consequences, also if
// an earlier try completed them and their markers are still there. Errors:
// CodeStoreUnavailable.
func (s *Store) Complete(ctx context.Context, q Queue, items []*Completion) (completed int, follow []string, err error) {
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	keys := append(make([]string, 0, 5+len(items)), k.Set(string(api.JobActive)), k.Set(string(api.JobCompleted)), k.After(), k.Config(), tenant.Events())
	for _, item := range items {
		keys = append(keys, tenant.Run(item.ID))
	}
	for _, item := range items {
		if item.Result != "" {
			keys = append(keys, tenant.Meta(item.ID))
		}
	}
	args := append(make([]any, 0, 3+4*len(items)), s.store.NowMS(), len(items), q.Path())
	for _, item := range items {
		unique := ""
		if item.Unique != "" {
			keys = append(keys, tenant.Unique(q.Namespace, q.Name, item.Unique))
			unique = strconv.Itoa(len(keys))
		}
		args = append(args, item.ID, item.Epoch, item.Result, unique)
	}
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobAck, keys, args, func(pipe redis.Pipeliner) {
		s.markSlotFreed(ctx, pipe, q)
		s.events.Trim(ctx, pipe, q.Tenant)
	})
	if err != nil {
		return 0, nil, err
	}
	for i, outcome := range Words(reply) {
		items[i].Outcome = outcome
		switch outcome {
		case MovedAfter, RepeatedAfter:
			follow = append(follow, items[i].ID)
		}
		switch outcome {
		case Moved, MovedAfter:
			completed++
		}
	}
	return completed, follow, nil
}

// markSlotFreed marks an fn queue as ready, since a slot under its concurrency limit may
// have become free. Other queues have no ready mark.
func (s *Store) markSlotFreed(ctx context.Context, pipe redis.Pipeliner, q Queue) {
	if IsFunctionQueue(q.Name) {
		s.MarkReady(ctx, pipe, q, s.store.NowMS())
	}
}
