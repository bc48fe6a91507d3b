package jobstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Entry is one job on its way into a queue.
type Entry struct {
	Id       string
	Spec     *api.JobSpec
	Run      Run    // with which the job is stored
	Text     string // the spec, encoded
	Internal bool   // made by the platform: a draining queue takes it
	Fresh    bool   // no earlier call can have made a job of this id
	Ended    string // a holder of the unique key that is known to have ended
	Living   string // one that is known to live
	Holder   string // answer: the job that holds the unique key, if it is a duplicate
	Replayed bool   // answer: the whole call was made before
	Err      error  // answer
}

// NewEntry returns the entry of a job that is made at now, in milliseconds.
func NewEntry(id string, spec *api.JobSpec, now int64) *Entry {
	return &Entry{Id: id, Spec: spec, Run: NewRun(spec, now)}
}

// Call is what the jobs of one call share.
type Call struct {
	Queue          Queue
	Batch          string
	IdempotencyKey string
	Digest         string
}

// Insert runs the script that adds items, all of them or none. Each item then holds its
// answer. again reports that the whole call was made before.
func (s *Store) Insert(ctx context.Context, call Call, items []*Entry) (again bool, err error) {
	keys, args := s.enqueueArguments(call, items)
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobEnqueue, keys, args, func(pipe redis.Pipeliner) {
		s.Announce(ctx, pipe, call.Queue, items)
	})
	if err != nil {
		return false, err
	}
	answer := Words(reply)
	again = answer[0] == "again"
	for i, item := range items {
		item.Holder, item.Replayed = answer[i+1], again
	}
	return again, nil
}

// enqueueArguments lays the call out as job_enqueue.lua reads it.
func (s *Store) enqueueArguments(call Call, items []*Entry) (keys []string, args []any) {
	q, tenant := s.Keys(call.Queue), s.store.JobKeys(call.Queue.Tenant)
	idempotency := q.Cursor()
	if call.IdempotencyKey != "" {
		idempotency = tenant.Idempotency(call.Queue.Namespace + ":" + call.Queue.Name + ":" + call.IdempotencyKey)
	}
	keys = append(make([]string, 0, 15+2*len(items)), s.Sets(call.Queue, api.JobPending)...)
	keys = append(keys, q.Set(string(api.JobScheduled)), q.Set(string(api.JobWaiting)), q.Set(string(api.JobHeld)),
		q.Cursor(), q.Expiry(), q.After(), tenant.Queues(), idempotency, q.Config())
	for _, item := range items {
		keys = append(keys, tenant.Run(item.Id))
	}
	for _, item := range items {
		keys = append(keys, tenant.Spec(item.Id))
	}
	uniques := make([]int, len(items))
	external := "1"
	for i, item := range items {
		if item.Spec.UniqueKey != "" {
			keys = append(keys, tenant.Unique(call.Queue.Namespace, call.Queue.Name, item.Spec.UniqueKey))
			uniques[i] = len(keys)
		}
		if item.Internal {
			external = ""
		}
	}
	batch := 0
	if call.Batch != "" {
		keys = append(keys, tenant.Batch(call.Batch)+":meta", tenant.Batch(call.Batch)+":jobs")
		batch = len(keys) - 1
	}
	args = append(make([]any, 0, 6+5*len(items)), len(items), call.Queue.Path(), call.Digest,
		max(1, items[0].Spec.CreatedAtMS+api.IdempotencyTTLMS-s.store.NowMS()), batch, external)
	for i, item := range items {
		args = append(args, item.Id, item.Text, item.Run.String(), ScoreText(item.Spec.Score), item.conditions(uniques[i]))
	}
	return keys, args
}

// conditions lays out what few jobs have: when the job expires, and its unique key,
// which is the script's key of that number.
func (e *Entry) conditions(unique int) string {
	if unique == 0 && e.Spec.ExpireAtMS == 0 {
		return ""
	}
	options := e.Spec.WithDefaults()
	return fmt.Sprint(e.Spec.ExpireAtMS, " ", unique, " ", max(1, options.UniqueTTLMS), " ", cmp.Or(e.Ended, none), " ", cmp.Or(e.Living, none))
}

// Announce tells, behind the enqueue, when something is due in the queue, and
// that a queue of the platform's own has work.
func (s *Store) Announce(ctx context.Context, pipe redis.Pipeliner, q Queue, items []*Entry) {
	due, ready := int64(0), false
	for _, item := range items {
		ready = ready || item.Run.State == api.JobPending
		for _, at := range []int64{item.Spec.ExpireAtMS, item.dueAt()} {
			if at > 0 && (due == 0 || at < due) {
				due = at
			}
		}
	}
	if due > 0 {
		s.MarkDue(ctx, pipe, q, due)
	}
	if ready && strings.HasPrefix(q.Name, api.FunctionQueuePrefix) {
		s.MarkReady(ctx, pipe, q, s.store.NowMS())
	}
}

// dueAt is when maintenance is to look after the new job, 0 for never.
func (e *Entry) dueAt() int64 {
	if e.Run.State == api.JobScheduled || e.Run.State == api.JobWaiting {
		return e.Run.At
	}
	return 0
}

// DependOn enters a job among those that wait for others. CodeJobNotFound.
func (s *Store) DependOn(ctx context.Context, tenant, id string, on []string) error {
	tk := s.store.JobKeys(tenant)
	keys := make([]string, 0, 2*len(on))
	for _, d := range on {
		keys = append(keys, tk.Run(d))
	}
	for _, d := range on {
		keys = append(keys, tk.Dependents(d))
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobDepend, keys, len(on), id)
	if err != nil {
		return err
	}
	for i, text := range Words(reply) {
		if text == "" {
			return api.Errorf(api.CodeJobNotFound, "job %s, to depend on, does not exist", on[i]).
				WithFields(api.FieldError{Path: "depends_on", Message: "must be ids of jobs that exist"})
		}
	}
	return nil
}

// Plain reports whether the job is a new one, for a worker at once, that only a draining
// queue can refuse.
func (e *Entry) Plain() bool {
	return e.Fresh && e.Run.State == api.JobPending && e.Spec.UniqueKey == "" && e.Spec.ExpireAtMS == 0
}

// InsertPlain adds plain jobs: their records by one plain command, then their entries by a
// script, in one round trip. Payloads pass through no script that way.
func (s *Store) InsertPlain(ctx context.Context, q Queue, items []*Entry) error {
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	records := make([]any, 0, 4*len(items))
	var byRank [4][]*Entry
	for _, item := range items {
		records = append(records, tenant.Spec(item.Id), item.Text, tenant.Run(item.Id), item.Run.String())
		rank := RankOf(item.Spec.Score)
		byRank[rank] = append(byRank[rank], item)
	}
	args := append(make([]any, 0, 9+2*len(items)), q.Path())
	for _, list := range byRank {
		args = append(args, len(list))
	}
	for _, list := range byRank {
		least := int64(0)
		for i, item := range list {
			if i == 0 || item.Spec.Score < least {
				least = item.Spec.Score
			}
		}
		args = append(args, least)
	}
	for _, list := range byRank {
		for _, item := range list {
			args = append(args, item.Spec.Score, item.Id)
		}
	}
	keys := append([]string{k.Config(), k.Cursor(), tenant.Queues()}, s.Sets(q, api.JobPending)...)
	_, err := s.store.ScriptBetween(ctx, storage.ScriptJobAdd, keys, args, func(pipe redis.Pipeliner) {
		// A call that got no answer is sent again by the store's client: NX keeps the
		// runs of jobs that workers have begun since.
		pipe.MSetNX(ctx, records...)
	}, func(pipe redis.Pipeliner) {
		s.Announce(ctx, pipe, q, items)
	})
	if api.ErrorCode(err) == api.CodeQueueDraining {
		return errors.Join(err, s.withdraw(ctx, q, items))
	}
	return err
}

// withdraw deletes the records of refused jobs, as long as no worker has begun them: a
// call whose answer was lost may have entered them before.
func (s *Store) withdraw(ctx context.Context, q Queue, items []*Entry) error {
	records := make([]*Record, len(items))
	for i, item := range items {
		records[i] = &Record{Id: item.Id, Stored: item.Run.String()}
	}
	_, err := s.Purge(ctx, q, api.JobPending, records)
	return err
}
