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

// Entry is one job to be added to a queue, and the result.
//
// Ended, Living and Holder belong to unique keys. A script cannot read the run of a job whose
// id it finds in a key, because every key that a script reads is declared by its caller. It
// therefore replies with the Holder, and the caller reads that job. If it has ended, the next
// call names it in Ended, and the script takes the key from it. If it lives, the next call
// names it in Living, and the script records the duplicate under the idempotency key. See
// readHolders in queue/enqueue.go for an example.
type Entry struct {
	ID       string
	Spec     *api.JobSpec
	Run      Run    // the run with which the job is stored
	Text     string // the encoded spec
	Internal bool   // made by the platform; accepted by a draining queue
	Fresh    bool   // no earlier call can have created a job with this id
	Ended    string // a holder of the unique key that is known to have ended
	Living   string // a holder of the unique key that is known to live
	Holder   string // set by the call: the job that holds the unique key, if the entry is a duplicate
	Replayed bool   // set by the call: the whole call was made before
	Err      error  // set by the call
}

// NewEntry returns the entry of a job created at now, a Unix time in milliseconds.
func NewEntry(id string, spec *api.JobSpec, now int64) *Entry {
	return &Entry{ID: id, Spec: spec, Run: NewRun(spec, now)}
}

// Call holds the properties that the jobs of one call share.
type Call struct {
	Queue          Queue
	Batch          string // the batch of all jobs, "" for none
	Confined       bool   // a batch of another namespace counts as missing
	IdempotencyKey string // "" for none
	Digest         string // of the call's jobs, to detect another call with the same key
}

// confinement returns the argument of scripts that names the only namespace whose records
// they may find, "" for all.
func (q Queue) confinement(confined bool) string {
	if confined {
		return q.Namespace
	}
	return ""
}

// Insert adds items, at least one, to their queue, all of them or none, and sets their
// results. replayed reports whether the same call, by its idempotency key, was made before;
// nothing is written then. Errors: CodeBatchNotFound, CodeBatchSealed, CodeQueueDraining,
// CodeIdempotencyMismatch, CodeStoreUnavailable.
//
// A repeated Insert is harmless if the ids are the same: a job that exists keeps its record
// and only gets the entries that an interrupted first try did not write. The idempotency key
// is written last. A crash before it leaves the jobs, and the repeat finds them by their ids.
func (s *Store) Insert(ctx context.Context, call Call, items []*Entry) (replayed bool, err error) {
	keys, args := s.enqueueArguments(call, items)
	reply, err := s.store.ScriptThen(ctx, storage.ScriptJobEnqueue, keys, args, func(pipe redis.Pipeliner) {
		s.Announce(ctx, pipe, call.Queue, items)
		s.events.Trim(ctx, pipe, call.Queue.Tenant)
	})
	if err != nil {
		return false, err
	}
	answer := Words(reply)
	replayed = answer[0] == "again"
	for i, item := range items {
		item.Holder, item.Replayed = answer[i+1], replayed
	}
	return replayed, nil
}

// enqueueArguments returns the keys and arguments of job_enqueue.lua. Keys that few calls
// need follow the others, and the arguments name them by their position, from 1; 0 is none.
// Without an idempotency key, the cursor takes its place, so that later positions are fixed.
func (s *Store) enqueueArguments(call Call, items []*Entry) (keys []string, args []any) {
	q, tenant := s.Keys(call.Queue), s.store.JobKeys(call.Queue.Tenant)
	idempotency := q.Cursor()
	if call.IdempotencyKey != "" {
		idempotency = tenant.Idempotency(call.Queue.Namespace + ":" + call.Queue.Name + ":" + call.IdempotencyKey)
	}
	keys = append(make([]string, 0, 16+2*len(items)), s.Sets(call.Queue, api.JobPending)...)
	keys = append(keys, q.Set(string(api.JobScheduled)), q.Set(string(api.JobWaiting)), q.Set(string(api.JobHeld)),
		q.Cursor(), q.Expiry(), q.After(), tenant.Queues(), idempotency, q.Config(), tenant.Events(), tenant.Approvals())
	for _, item := range items {
		keys = append(keys, tenant.Run(item.ID))
	}
	for _, item := range items {
		keys = append(keys, tenant.Spec(item.ID))
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
	args = append(make([]any, 0, 8+5*len(items)), len(items), call.Queue.Path(), call.Digest,
		max(1, items[0].Spec.CreatedAtMS+api.IdempotencyTTLMS-s.store.NowMS()), batch, external, s.store.NowMS(), call.Queue.confinement(call.Confined))
	for i, item := range items {
		args = append(args, item.ID, item.Text, item.Run.String(), ScoreText(item.Spec.Score), item.conditions(uniques[i]))
	}
	return keys, args
}

// conditions returns the argument for the options that few jobs have: when the job expires,
// and its unique key, which is the script's key with the number unique. For example,
// "0 17 86400000 - j9" is a job that does not expire, and whose unique key is KEYS[17], lives
// for a day, and is held by j9, which has not ended.
func (e *Entry) conditions(unique int) string {
	expires := e.ExpiresMS()
	if unique == 0 && expires == 0 {
		return ""
	}
	options := e.Spec.WithDefaults()
	return fmt.Sprint(expires, " ", unique, " ", max(1, options.UniqueTTLMS), " ", cmp.Or(e.Ended, none), " ", cmp.Or(e.Living, none))
}

// Announce queues commands on pipe that mark when added jobs become due, and that an fn
// queue has work. They run after the enqueue: a mark without work costs one visit, but a
// visit between mark and work would remove the mark. The marks belong to other slots of a
// cluster than the tenant's keys, so the script cannot write them; repairs find work whose
// mark a crash prevented.
func (s *Store) Announce(ctx context.Context, pipe redis.Pipeliner, q Queue, items []*Entry) {
	due, ready := int64(0), false
	for _, item := range items {
		ready = ready || item.Run.State == api.JobPending
		for _, at := range []int64{item.ExpiresMS(), item.dueAt()} {
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

// ExpiresMS returns the Unix time in milliseconds at which the job expires, or its request for an
// approval, 0 for never.
func (e *Entry) ExpiresMS() int64 { return expiry(e.Spec, &e.Run) }

// dueAt returns the Unix time in milliseconds at which maintenance has to handle the new
// job, 0 for never.
func (e *Entry) dueAt() int64 {
	if e.Run.State == api.JobScheduled || e.Run.State == api.JobWaiting {
		return e.Run.At
	}
	return 0
}

// DependOn registers a job as a dependent of the jobs on, in each of their sets of dependents,
// and marks their runs so that their ends are followed up. It precedes the enqueue of the job:
// a dependent that does not exist is ignored, but one that is missing would wait until the
// sweeper finds it. Jobs that have ended accept dependents, too, and a waiting job is checked
// once after its enqueue. If confined, jobs of other namespaces than q's count as missing.
// Errors: CodeJobNotFound if one of them does not exist, CodeStoreUnavailable.
func (s *Store) DependOn(ctx context.Context, q Queue, id string, on []string, confined bool) error {
	tk := s.store.JobKeys(q.Tenant)
	keys := make([]string, 0, 3*len(on))
	for _, d := range on {
		keys = append(keys, tk.Run(d))
	}
	for _, d := range on {
		keys = append(keys, tk.Dependents(d))
	}
	if confined {
		for _, d := range on {
			keys = append(keys, tk.Spec(d))
		}
	}
	reply, err := s.store.Script(ctx, storage.ScriptJobDepend, keys, len(on), q.confinement(confined), id)
	if err != nil {
		return err
	}
	for i, text := range Words(reply) {
		if text == "" {
			return api.Errorf(api.CodeJobNotFound, "job %s in depends_on does not exist", on[i]).
				WithFields(api.FieldError{Path: "depends_on", Message: "must be ids of jobs that exist"})
		}
	}
	return nil
}

// Undepend undoes DependOn for jobs that were not added, so that refused calls and duplicates leave
// nothing. It returns err, the error of their enqueue. After an error that does not tell whether they
// were added, and where the store fails now, they stay until the jobs that they depend on end.
func (s *Store) Undepend(ctx context.Context, q Queue, items []*Entry, err error) error {
	var ids []string
	var refused []*Entry
	for _, item := range items {
		if len(item.Spec.DependsOn) > 0 && (notAdded(err) || notAdded(item.Err) || err == nil && item.Holder != "") {
			ids, refused = append(ids, item.ID), append(refused, item)
		}
	}
	if len(ids) == 0 {
		return err
	}
	states, failed := s.States(ctx, q.Tenant, ids)
	if failed != nil {
		return err
	}
	pipe := s.store.Client().Pipeline()
	for i, state := range states {
		if state != "" {
			continue // an earlier call with the same idempotency key has added it
		}
		for _, d := range refused[i].Spec.DependsOn {
			pipe.SRem(ctx, s.store.JobKeys(q.Tenant).Dependents(d), ids[i])
		}
	}
	_, _ = pipe.Exec(ctx) // best effort, as above
	return err
}

// notAdded reports whether, after err, the jobs of a call were certainly not added.
func notAdded(err error) bool {
	switch api.ErrorCode(err) {
	case api.CodeBatchNotFound, api.CodeBatchSealed, api.CodeQueueDraining, api.CodeIdempotencyMismatch, api.CodeJobNotFound:
		return true
	default:
		return false
	}
}

// Plain reports whether the job is new, can be fetched immediately, and can be refused only
// because its queue is draining. InsertPlain accepts such entries, if they belong to no batch
// and have no idempotency key.
func (e *Entry) Plain() bool {
	return e.Fresh && e.Run.State == api.JobPending && e.Spec.UniqueKey == "" && e.Spec.ExpireAtMS == 0
}

// InsertPlain adds plain entries to q in one round trip: it writes their records by one
// command, so that payloads pass through no script, and then indexes them by a script. A
// crash in between leaves jobs without an entry, which the sweeper adds (see Reindex); the
// caller has got no answer. All entries must be Plain. Errors: CodeQueueDraining,
// CodeStoreUnavailable.
func (s *Store) InsertPlain(ctx context.Context, q Queue, items []*Entry) error {
	k, tenant := s.Keys(q), s.store.JobKeys(q.Tenant)
	records := make([]any, 0, 4*len(items))
	var byRank [4][]*Entry
	for _, item := range items {
		records = append(records, tenant.Spec(item.ID), item.Text, tenant.Run(item.ID), item.Run.String())
		rank := RankOf(item.Spec.Score)
		byRank[rank] = append(byRank[rank], item)
	}
	args := append(make([]any, 0, 11+2*len(items)), q.Path())
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
	args = append(args, s.store.NowMS(), items[0].Run.EventDetail("", "", ""))
	for _, list := range byRank {
		for _, item := range list {
			args = append(args, item.Spec.Score, item.ID)
		}
	}
	keys := append([]string{k.Config(), k.Cursor(), tenant.Queues()}, s.Sets(q, api.JobPending)...)
	keys = append(keys, tenant.Events())
	_, err := s.store.ScriptBetween(ctx, storage.ScriptJobAdd, keys, args, func(pipe redis.Pipeliner) {
		// The store's client sends a call again that got no reply. NX keeps the runs of
		// jobs that workers have started since the first try.
		pipe.MSetNX(ctx, records...)
	}, func(pipe redis.Pipeliner) {
		s.Announce(ctx, pipe, q, items)
		s.events.Trim(ctx, pipe, q.Tenant)
	})
	if api.ErrorCode(err) == api.CodeQueueDraining {
		return errors.Join(err, s.withdraw(ctx, q, items))
	}
	return err
}

// withdraw deletes the records of refused jobs that no worker has started: an earlier try,
// whose reply was lost, may have added them.
func (s *Store) withdraw(ctx context.Context, q Queue, items []*Entry) error {
	sets := map[string][]*Record{}
	for _, item := range items {
		set := s.SetOf(q, api.JobPending, item.Spec.Score)
		sets[set] = append(sets[set], &Record{ID: item.ID, Stored: item.Run.String()})
	}
	var errs []error
	for set, records := range sets {
		_, err := s.purge(ctx, q, set, records)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
