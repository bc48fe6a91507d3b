package jobstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// The fields of a job's hash, each there only where it says something. Most jobs
// have no hash: a job's spec and its run have keys of their own.
const (
	fieldProgress   = "progress"
	FieldCheckpoint = "checkpoint"
	fieldResult     = "result"
	FieldHoldReason = "hold_reason"
	FieldDeadReason = "dead_reason"
)

// Record is a job as it is stored.
type Record struct {
	Id      string
	Stored  string // of run, for compare-and-set
	Run     Run
	Spec    *api.JobSpec
	Details map[string]string // the details that were read
}

func (r *Record) Queue(tenant string) Queue {
	return Queue{tenant, r.Spec.Namespace, r.Spec.Queue}
}

// DetailFields are the fields that are read where a job is shown, beside its spec and run.
var DetailFields = []string{fieldProgress, FieldCheckpoint, fieldResult, FieldHoldReason, FieldDeadReason}

// Load reads jobs and some of their details; jobs that do not exist are nil.
func (s *Store) Load(ctx context.Context, tenant string, ids []string, fields ...string) ([]*Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := s.store.JobKeys(tenant)
	pipe := s.rdb.Pipeline()
	// Run and spec of a job by one command: they belong together. The details behind
	// them: those of the run that was read are there by then.
	pairs := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		pairs = append(pairs, keys.Run(id), keys.Spec(id))
	}
	stored := pipe.MGet(ctx, pairs...)
	replies := make([]*redis.SliceCmd, len(ids))
	if len(fields) > 0 {
		for i, id := range ids {
			replies[i] = pipe.HMGet(ctx, keys.Meta(id), fields...)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Failure(ctx, "read jobs", err)
	}
	out, held := make([]*Record, len(ids)), Words(stored.Val())
	for i, id := range ids {
		r, err := newRecord(id, held[2*i], held[2*i+1])
		if err != nil {
			return nil, err
		}
		out[i] = r
		if r != nil && replies[i] != nil {
			for k, text := range Words(replies[i].Val()) {
				if text != "" {
					r.Details[fields[k]] = text
				}
			}
		}
	}
	return out, nil
}

// newRecord reads a job; nil where it has no run, and so does not exist.
func newRecord(id, text, spec string) (r *Record, err error) {
	r = &Record{Id: id, Stored: text, Details: map[string]string{}}
	if r.Stored == "" {
		return nil, nil //nolint:nilnil // documented: no job
	}
	r.Run, err = ParseRun(r.Stored)
	if err != nil {
		return nil, err
	}
	r.Spec, err = DecodeSpec(spec)
	return r, err
}

// States reads where jobs stand, "" where there is none, and nothing else of them:
// their payloads may be large.
func (s *Store) States(ctx context.Context, tenant string, ids []string) ([]api.JobState, error) {
	out := make([]api.JobState, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	runs := make([]string, len(ids))
	for i, id := range ids {
		runs[i] = s.store.JobKeys(tenant).Run(id)
	}
	reply, err := s.rdb.MGet(ctx, runs...).Result()
	if err != nil {
		return nil, Failure(ctx, "read jobs", err)
	}
	for i, text := range Words(reply) {
		if text != "" {
			now, err := ParseRun(text)
			if err != nil {
				return nil, err
			}
			out[i] = now.State
		}
	}
	return out, nil
}

// Find reads one job, all its fields. CodeJobNotFound.
func (s *Store) Find(ctx context.Context, tenant, id string) (*Record, error) {
	found, err := s.Load(ctx, tenant, []string{id}, DetailFields...)
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, NotFound(id)
	}
	return found[0], nil
}

func NotFound(id string) error {
	return api.Errorf(api.CodeJobNotFound, "job %s does not exist", id)
}

// View is a job as the API shows it.
func (r *Record) View(errs []string) (*api.Job, error) {
	j := &api.Job{ID: r.Id, JobSpec: *r.Spec, State: r.Run.State, Attempt: r.Run.Attempt}
	j.JobOptions = r.Spec.WithDefaults()
	if len(j.Payload) == 0 {
		j.Payload = json.RawMessage("null")
	}
	j.StateSinceMS = r.Run.At
	switch {
	case r.Run.State == api.JobActive:
		j.Lease = &api.Lease{Epoch: r.Run.Epoch, ExpiresMS: r.Run.At, WorkerID: r.Run.Worker}
		j.StateSinceMS = 0
	case r.Run.State == api.JobScheduled || r.Run.State == api.JobRetrying:
		j.DueAtMS, j.StateSinceMS = r.Run.At, 0
	case r.Run.State.Terminal():
		j.EndedAtMS = r.Run.At
	}
	j.Progress, j.Checkpoint = RawOf(r.Details[fieldProgress]), RawOf(r.Details[FieldCheckpoint])
	switch r.Run.State { // the details may be newer than the run
	case api.JobCompleted:
		j.Result = RawOf(r.Details[fieldResult])
	case api.JobHeld:
		j.HoldReason = r.Details[FieldHoldReason]
	case api.JobDead:
		j.DeadReason = r.Details[FieldDeadReason]
	}
	for _, raw := range errs {
		var e api.JobError
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			return nil, fmt.Errorf("queue: a stored error cannot be read: %w", err)
		}
		j.Errors = append(j.Errors, e)
	}
	return j, nil
}

func RawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// Holds says whether epoch holds r's lease; done, that it settled it in the given
// way before.
func (r *Record) Holds(epoch int64, kind string) (holds, done bool) {
	return r.Run.State == api.JobActive && r.Run.Epoch == epoch, r.Run.settledBy(epoch, kind)
}
