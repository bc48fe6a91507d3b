package activations

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
)

// The scripts of activations, by the names of their files in package lua.
const (
	scriptFinish   = "activation_finish.lua"
	scriptWithdraw = "activation_withdraw.lua"
	scriptAttempt  = "activation_attempt.lua"
)

// keep returns the time-to-live that a write of a's record sets.
func (r *Repository) keep(a *Record) time.Duration { return keepOf(r.s, a) }

// keepOf returns the time-to-live of a's record: the retention of a's version, else that of the
// tenant or of the store. A record that has not ended lives for api.ActivationTTLMS at least, so
// that a short retention ends no record of a job that waits, and one of a run that sleeps for as long
// after its sleep.
func keepOf(s *storage.Store, a *Record) time.Duration {
	ms := s.ActivationRetentionMS(a.Tenant, a.RetentionMS)
	if !a.Status.Terminal() {
		ms = max(ms, api.ActivationTTLMS, a.AsleepUntilMS-s.NowMS()+api.ActivationTTLMS)
	}
	return time.Duration(ms) * time.Millisecond
}

// Repository keeps the record of every invocation for its retention, and an index of the records
// for each function. It is safe for concurrent use, by any number of processes: of two
// writers that end an activation, one wins, and the other gets the winner's record.
type Repository struct {
	s      *storage.Store
	events *events.Log
}

// New returns the activations in s.
func New(s *storage.Store) *Repository { return &Repository{s, events.New(s)} }

// Record is the stored form of an activation, with fields that its readers do not see. A
// result of undefined is absent. Scripts compare records by their bytes, so a field that is
// added here must be added to appendJSON.
type Record struct {
	api.Activation
	// EventSHA256 is the digest of the event of an idempotent invoke, in hexadecimal digits.
	// A repeated one must have the same event.
	EventSHA256 string `json:"event_sha256,omitempty"`
	// Claim is a random value that distinguishes the records of two callers that start
	// the same derived id at the same moment, or that end the same lost activation. Without
	// it their records would have equal bytes, and each caller would take the stored one for
	// its own.
	Claim string `json:"claim,omitempty"`
	// LeaseEpoch is that of the job's lease under which the record was written, 0 for none. A
	// writer with an earlier lease loses: attempts cannot tell, since they begin again after each
	// sleep of a run.
	LeaseEpoch int64 `json:"lease_epoch,omitempty"`
	// ResultBytes is the size of a result that has a key of its own, because it is larger
	// than api.MaxInlineResultBytes; else 0.
	ResultBytes int `json:"result_bytes,omitempty"`
	// RetentionMS is how long the ended record is kept, in milliseconds, as the version
	// configures it; 0 means as long as the tenant's other records.
	RetentionMS int64 `json:"retention_ms,omitempty"`
	// Events names the events of the activation that are recorded, as the version configures
	// it (see event.Recorded); "" for none.
	Events string `json:"events,omitempty"`
	// MemoryMB is the memory limit of the version, for the metering of the process that runs
	// it. It is not stored.
	MemoryMB int `json:"-"`
	// AsleepUntilMS is when the run of a queued record continues at the latest, 0 if it does not
	// sleep. It is not stored.
	AsleepUntilMS int64 `json:"-"`
	// Short stores no more of the result than fits the record, and little of a long error. It is
	// not stored.
	Short bool `json:"-"`
}

// Start stores the record of an activation that begins, if its id is new, and adds it to
// the index of its function. Where the id is taken, created is false and existing is the
// stored record. A repeat of the same record counts as created: if the answer of a first try
// is lost, the caller can call Start again with the same a. CodeStoreUnavailable, after which
// the record may exist.
func (r *Repository) Start(ctx context.Context, a *Record) (created bool, existing *Record, err error) {
	raw, err := encodeRecord(a)
	if err != nil {
		return false, nil, err
	}
	w := r.recordWrite(a, raw)
	if err := r.s.Commit(ctx, a.ActivationID, w); err != nil {
		return false, nil, storage.Failure(ctx, "start activation", err)
	}
	return r.recorded(ctx, w)
}

// RecordEnded stores an activation that ended before its running record was written: its
// index entry, its log and its terminal record, in one pipeline of plain commands. log is
// chunk 0 in the form that Logs.Append takes, or nil. a.Result is the full result, as for
// Finish.
//
// won reports whether this record, from this call or an earlier try, is the stored one;
// current is the stored one. A call whose outcome is unknown may be repeated, or followed
// by Start and Finish.
func (r *Repository) RecordEnded(ctx context.Context, a *Record, log []byte) (won bool, current *Record, err error) {
	if err := checkChunk(log); err != nil {
		return false, nil, err
	}
	end, err := encodeEnd(a)
	if err != nil {
		return false, nil, err
	}
	w := r.recordWrite(a, end.raw)
	if log != nil {
		w.logKey, w.logIndex, w.log = r.s.Keys().LogChunk(a.Tenant, a.ActivationID, 0), r.s.Keys().LogChunks(a.Tenant, a.ActivationID), log
	}
	if end.stored.ResultBytes > 0 {
		w.resultKey, w.result = r.s.Keys().ActivationResult(a.Tenant, a.ActivationID), end.result
	}
	// Outside the group commit: no other activation waits behind a large result or log.
	if max(end.stored.ResultBytes, len(log)) > api.MaxInlineResultBytes {
		r.s.CommitAlone(ctx, w)
	} else if err := r.s.Commit(ctx, a.ActivationID, w); err != nil {
		return false, nil, storage.Failure(ctx, "record activation", err)
	}
	won, held, err := r.recorded(ctx, w)
	if err != nil || !won {
		return false, held, err
	}
	return true, end.whole(), nil
}

// recordWrite returns the write of the record raw of a, without log and result.
func (r *Repository) recordWrite(a *Record, raw string) *recordWrite {
	return &recordWrite{
		meta:    r.s.Keys().ActivationMeta(a.Tenant, a.ActivationID),
		index:   r.s.Keys().ActivationIndex(a.Tenant, a.Namespace, a.Function),
		tenant:  a.Tenant,
		id:      a.ActivationID,
		startMS: a.StartMS,
		raw:     raw,
		keep:    r.keep(a),
		events:  r.events,
		change:  r.change(a),
	}
}

// recorded reads the outcome of w. created reports whether w's record, from this try or an
// earlier one, is the stored one; otherwise existing is the stored one.
func (r *Repository) recorded(ctx context.Context, w *recordWrite) (created bool, existing *Record, err error) {
	for _, cmd := range w.before {
		if err := cmd.Err(); err != nil {
			return false, nil, storage.Failure(ctx, "record activation", err)
		}
	}
	switch err := w.set.Err(); {
	case err == nil:
		return true, nil, nil
	case !errors.Is(err, redis.Nil):
		return false, nil, storage.Failure(ctx, "record activation", err)
	}
	held, heldRaw, err := r.read(ctx, w.tenant, w.id)
	if err != nil {
		return false, nil, err
	}
	if heldRaw == w.raw {
		return true, nil, nil // an earlier try, whose answer was lost
	}
	return false, held, nil
}

// recordWrite stores a record whose key does not exist. The index entry comes first: the
// sweeper finds and removes an entry without a record, but nothing finds a record without
// an entry. The record comes last, since it makes log and result visible.
type recordWrite struct {
	meta, index, tenant, id, raw string
	startMS                      int64
	keep                         time.Duration // the time-to-live of record, log and result
	logKey, logIndex             string        // with log
	log                          []byte        // nil if there is none
	resultKey                    string        // with result
	result                       []byte        // nil if it is in the record, or if there is none
	events                       *events.Log
	change                       *event.Change // nil if no event is recorded

	before []redis.Cmder // the commands that must succeed before the record may become visible
	set    *redis.StatusCmd
}

// IndexEntry implements storage.Write.
func (w *recordWrite) IndexEntry() (key string, entry redis.Z) {
	return w.index, redis.Z{Score: float64(w.startMS), Member: w.id}
}

// Queue implements storage.Write.
func (w *recordWrite) Queue(ctx context.Context, pipe redis.Pipeliner, indexed *redis.IntCmd) {
	w.before = append(w.before, indexed)
	if w.log != nil {
		w.before = append(w.before, queueChunk(ctx, pipe, w.logKey, w.logIndex, 0, w.log, w.keep)...)
	}
	if w.result != nil {
		w.before = append(w.before, pipe.Set(ctx, w.resultKey, w.result, w.keep))
	}
	if w.change != nil {
		w.before = append(w.before, w.events.Append(ctx, pipe, w.tenant, *w.change))
		w.events.Trim(ctx, pipe, w.tenant)
	}
	w.set = pipe.SetArgs(ctx, w.meta, w.raw, redis.SetArgs{Mode: "NX", TTL: w.keep})
}

// Withdraw removes the record of a Start whose outcome was unknown, so that its derived id can
// be used again. The caller has not run it. Withdraw leaves any record but a's own, byte for
// byte; a missing record is no error. Interrupted after the record is removed, it leaves an
// index entry to the sweeper.
func (r *Repository) Withdraw(ctx context.Context, a *Record) error {
	raw, err := encodeRecord(a)
	if err != nil {
		return err
	}
	_, err = r.s.Script(ctx, scriptWithdraw, []string{
		r.s.Keys().ActivationMeta(a.Tenant, a.ActivationID),
		r.s.Keys().ActivationIndex(a.Tenant, a.Namespace, a.Function),
	}, raw, a.ActivationID)
	return err
}

// Finish replaces the queued or running record of the lease of a by a's terminal record.
// a.Result is the full result; it is stored truncated (see TruncateResult), and
// under a key of its own where it is large.
//
// won reports whether this record, from this call or an earlier try, is the stored one;
// current is the stored one. Finish loses to a terminal record, and to a record of another
// lease, which belongs to another worker. Finish must follow the return of Start.
// CodeActivationNotFound, also for a record that has expired.
func (r *Repository) Finish(ctx context.Context, a *Record) (won bool, current *Record, err error) {
	end, err := encodeEnd(a)
	if err != nil {
		return false, nil, err
	}
	keys := []string{r.s.Keys().ActivationMeta(a.Tenant, a.ActivationID), r.s.JobKeys(a.Tenant).Events()}
	args := []any{end.raw, a.LeaseEpoch, r.keep(&end.stored).Milliseconds(), changeText(r.change(a))}
	var reply any
	if end.stored.ResultBytes > 0 {
		// Outside the group commit: no other activation waits behind a large result.
		keys = append(keys, r.s.Keys().ActivationResult(a.Tenant, a.ActivationID))
		reply, err = r.s.Script(ctx, scriptFinish, keys, append(args, end.result)...)
	} else {
		reply, err = r.s.CommitScript(ctx, a.ActivationID, scriptFinish, keys, args...)
	}
	if err != nil {
		return false, nil, err
	}
	if heldRaw, lost := reply.(string); lost {
		held, err := r.join(ctx, heldRaw)
		return false, held, err
	}
	return true, end.whole(), nil
}

// encodedEnd is a terminal activation in its stored form: the record, and a result of more
// than api.MaxInlineResultBytes beside it.
type encodedEnd struct {
	stored Record
	raw    string // of stored
	result []byte // truncated (see TruncateResult); part of stored unless it is large
}

// encodeEnd returns the stored form of a, which it does not change.
func encodeEnd(a *Record) (*encodedEnd, error) {
	e := &encodedEnd{stored: *a}
	result, truncated := TruncateResult(a.Result)
	if a.Short && len(result) > api.MaxInlineResultBytes {
		result, truncated = truncateResult(a.Result, api.MaxInlineResultBytes/8) // escapes may add six bytes to each
	}
	if a.Short && a.Error.Bytes() > api.MaxInlineResultBytes {
		short := *a.Error
		short.Message = api.TruncateText(short.Message, api.MaxInlineResultBytes/4)
		short.Stack = api.TruncateText(short.Stack, api.MaxInlineResultBytes/4)
		e.stored.Error = &short
	}
	e.result = result
	e.stored.ResultTruncated = truncated
	e.stored.Result, e.stored.ResultBytes = result, 0
	if len(result) > api.MaxInlineResultBytes {
		e.stored.Result, e.stored.ResultBytes = nil, len(result)
	}
	var err error
	e.raw, err = encodeRecord(&e.stored)
	return e, err
}

// whole returns the stored record with its result.
func (e *encodedEnd) whole() *Record {
	e.stored.Result = e.result
	return &e.stored
}

// Get returns an activation with its result. A lost one, which is still running
// api.LostGraceMS after its deadline, it ends first: it writes. CodeActivationNotFound.
func (r *Repository) Get(ctx context.Context, tenant, id string) (*Record, error) {
	a, _, err := r.read(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if a.Lost(r.s.NowMS()) {
		a, _, err = r.repair(ctx, a, r.s.NowMS())
	}
	return a, err
}

// read returns the stored record with its result, and the record's bytes. The key of a
// large result, which most activations do not have, is read in the same command.
func (r *Repository) read(ctx context.Context, tenant, id string) (*Record, string, error) {
	raws, err := r.s.GetMany(ctx, []string{r.s.Keys().ActivationMeta(tenant, id), r.s.Keys().ActivationResult(tenant, id)})
	if err != nil {
		return nil, "", storage.Failure(ctx, "read activation", err)
	}
	if raws[0] == "" {
		return nil, "", api.Errorf(api.CodeActivationNotFound, "activation %s does not exist", id)
	}
	a, err := storage.Decode[Record](raws[0])
	if err != nil {
		return nil, "", err
	}
	if a.ResultBytes > 0 {
		a.Result = json.RawMessage(raws[1])
	}
	return &a, raws[0], nil
}

// join decodes a record's bytes and reads a result that has a key of its own.
func (r *Repository) join(ctx context.Context, raw string) (*Record, error) {
	a, err := storage.Decode[Record](raw)
	if err != nil || a.ResultBytes == 0 {
		return &a, err
	}
	a.Result, err = r.s.Client().Get(ctx, r.s.Keys().ActivationResult(a.Tenant, a.ActivationID)).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, storage.Failure(ctx, "read result", err)
	}
	return &a, nil
}

// repair ends a lost activation, unless another caller has ended it. It returns the stored
// record, and whether this call ended it. The process that ran it may still live, with a
// clock that is behind; its Finish then loses.
func (r *Repository) repair(ctx context.Context, lost *Record, nowMS int64) (*Record, bool, error) {
	a := *lost
	a.Status = api.StatusError
	a.Error = &api.ActivationError{Type: api.ErrLost, Message: "the process that ran this activation ended before it did"}
	a.end(nowMS)
	a.Claim = uuid.NewString() // of two callers that end it in one millisecond, one has this claim
	won, current, err := r.Finish(ctx, &a)
	return current, won, err
}

// end sets the time of the end. Clocks differ: a duration is never negative. An asynchronous
// activation keeps the duration of its last attempt: StartMS is the time at which it was
// accepted.
func (a *Record) end(nowMS int64) {
	a.EndMS = nowMS
	if a.JobID == "" {
		a.DurationMS = max(0, nowMS-a.StartMS)
	}
}

// Cancel ends a queued or running activation as cancelled and returns the record. It does not
// stop the function: the caller publishes storage.ChangeCancel for the replica that runs it.
// CodeActivationTerminal, with the record, where it has ended; CodeActivationNotFound;
// CodeStoreConflict where other writers keep changing it.
func (r *Repository) Cancel(ctx context.Context, tenant, id string, nowMS int64) (*Record, error) {
	var current *Record
	err := storage.RetryConflicts(ctx, func() error {
		held, _, err := r.read(ctx, tenant, id)
		if err != nil {
			return err
		}
		if held.Lost(nowMS) {
			held, _, err = r.repair(ctx, held, nowMS)
			if err != nil {
				return err
			}
		}
		current = held
		if held.Status.Terminal() {
			return api.Errorf(api.CodeActivationTerminal, "activation %s has ended: %s", id, held.Status)
		}
		a := *held
		a.Status = api.StatusCancelled
		a.end(nowMS)
		won, stored, err := r.Finish(ctx, &a)
		if err != nil {
			return err
		}
		current = stored
		if !won {
			return api.Errorf(api.CodeStoreConflict, "the activation changed meanwhile")
		}
		return nil
	})
	return current, err
}
