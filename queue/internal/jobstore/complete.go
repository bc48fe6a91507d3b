package jobstore

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// What the ack script answers, beside the words of a move, where the same epoch had
// completed the job before.
const (
	Repeated      = "again"
	RepeatedAfter = "again after" // and something is still to follow
)

// Completion is one job to be completed.
type Completion struct {
	Id, Result, Unique string
	Epoch              int64
	Run                string // of the job, as this process knows it; may be out of date
	Outcome            string // answer: moved, movedAfter, repeated, repeatedAfter, missing, or the job's run as it is
	Err                error  // answer
}

// CompleteKnown completes jobs whose run is as this process knows it, and of which
// nothing else is to be written. It returns the others.
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
	keys := append(make([]string, 0, 2+len(items)), k.Set(string(api.JobActive)), k.Set(string(api.JobCompleted)))
	args := append(make([]any, 0, 1+2*len(items)), now)
	for held, group := range groups {
		args = append(args, len(group), held.String(), held.Settle(settledAck).To(api.JobCompleted, now).String())
		for _, item := range group {
			plain = append(plain, item)
			keys = append(keys, tenant.Run(item.Id))
			args = append(args, item.Id)
		}
	}
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobComplete, keys, args, func(pipe redis.Pipeliner) {
		s.markSlotFreed(ctx, pipe, q)
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

// Complete runs the script that judges each job of one queue. It returns how many it
// completed, and the ids of those whose end has consequences.
func (s *Store) Complete(ctx context.Context, q Queue, items []*Completion) (completed int, follow []string, err error) {
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	keys := append(make([]string, 0, 3+len(items)), k.Set(string(api.JobActive)), k.Set(string(api.JobCompleted)), k.After())
	for _, item := range items {
		keys = append(keys, tenant.Run(item.Id))
	}
	for _, item := range items {
		if item.Result != "" {
			keys = append(keys, tenant.Meta(item.Id))
		}
	}
	args := append(make([]any, 0, 2+4*len(items)), s.store.NowMS(), len(items))
	for _, item := range items {
		unique := ""
		if item.Unique != "" {
			keys = append(keys, tenant.Unique(q.Namespace, q.Name, item.Unique))
			unique = strconv.Itoa(len(keys))
		}
		args = append(args, item.Id, item.Epoch, item.Result, unique)
	}
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobAck, keys, args, func(pipe redis.Pipeliner) {
		s.markSlotFreed(ctx, pipe, q)
	})
	if err != nil {
		return 0, nil, err
	}
	for i, outcome := range Words(reply) {
		items[i].Outcome = outcome
		switch outcome {
		case MovedAfter, RepeatedAfter:
			follow = append(follow, items[i].Id)
		}
		switch outcome {
		case Moved, MovedAfter:
			completed++
		}
	}
	return completed, follow, nil
}

// markSlotFreed marks a queue of the platform's own: a place under its limits may have
// become free.
func (s *Store) markSlotFreed(ctx context.Context, pipe redis.Pipeliner, q Queue) {
	if IsFunctionQueue(q.Name) {
		s.MarkReady(ctx, pipe, q, s.store.NowMS())
	}
}
