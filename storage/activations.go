package storage

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

const activationTTL = api.ActivationTTLMS * time.Millisecond

// Activations keeps the record of every invocation for a week, and an index of
// them for each function.
type Activations struct{ s *Store }

// NewActivations gives the activations in s.
func NewActivations(s *Store) *Activations { return &Activations{s} }

// StoredActivation is an activation's record, with what it hides from its
// readers. A result that the handler returned as undefined is absent.
type StoredActivation struct {
	api.Activation
	// EventSHA256 tells whether a repeated idempotent invoke has the same body.
	EventSHA256 string `json:"event_sha256,omitempty"`
	// Claim is a random value that tells apart the records of two callers who start
	// the same derived id in one moment: only one of them may take it for its own.
	Claim string `json:"claim,omitempty"`
	// ResultBytes is the size of the result that lies under a key of its own,
	// because it is larger than api.MaxInlineResultBytes; else 0.
	ResultBytes int `json:"result_bytes,omitempty"`
}

// Start stores the record of an activation that begins, if its id is new, and
// enters it in its function's index. Where the id is taken, created is false and
// existing is what is stored; a repeat of the same record counts as created.
func (r *Activations) Start(ctx context.Context, a *StoredActivation) (created bool, existing *StoredActivation, err error) {
	raw, err := encodeActivation(a)
	if err != nil {
		return false, nil, err
	}
	w := r.recordWrite(a, raw)
	if err := r.s.commits.do(ctx, a.ActivationID, w); err != nil {
		return false, nil, failure(ctx, "start activation", err)
	}
	return r.recorded(ctx, w)
}

// RecordEnded stores an activation that ended before its running record was
// written: its index entry, its log and its terminal record, in one pipeline of
// plain commands. log is a chunk as Logs.Append takes it, number 0, or nil.
// a.Result is whole, as for Finish. won reports whether this record (from this call
// or an earlier try) is the stored one; current is the stored one. A call whose
// outcome is unknown may be repeated, or followed by Start and Finish.
func (r *Activations) RecordEnded(ctx context.Context, a *StoredActivation, log []byte) (won bool, current *StoredActivation, err error) {
	if err := checkChunk(log); err != nil {
		return false, nil, err
	}
	end, err := encodeEnd(a)
	if err != nil {
		return false, nil, err
	}
	w := r.recordWrite(a, end.raw)
	if log != nil {
		w.logKey, w.logIndex, w.log = r.s.keys.logChunk(a.Tenant, a.ActivationID, 0), r.s.keys.logChunks(a.Tenant, a.ActivationID), log
	}
	if end.stored.ResultBytes > 0 {
		w.resultKey, w.result = r.s.keys.activationResult(a.Tenant, a.ActivationID), end.result
	}
	// Beside the group commit: no other activation waits behind a large result or log.
	if max(end.stored.ResultBytes, len(log)) > api.MaxInlineResultBytes {
		pipe := r.s.rdb.Pipeline()
		queueBatch(ctx, pipe, []write{w})
		_, _ = pipe.Exec(ctx) // each command keeps its own error
	} else if err := r.s.commits.do(ctx, a.ActivationID, w); err != nil {
		return false, nil, failure(ctx, "record activation", err)
	}
	won, held, err := r.recorded(ctx, w)
	if err != nil || !won {
		return false, held, err
	}
	return true, end.whole(), nil
}

func (r *Activations) recordWrite(a *StoredActivation, raw string) *recordWrite {
	return &recordWrite{
		meta:    r.s.keys.activationMeta(a.Tenant, a.ActivationID),
		index:   r.s.keys.activationIndex(a.Tenant, a.Namespace, a.Function),
		tenant:  a.Tenant,
		id:      a.ActivationID,
		startMS: a.StartMS,
		raw:     raw,
	}
}

// recorded reads the outcome of w: whether its record, from this try or an earlier
// one, is the stored one, else the stored one.
func (r *Activations) recorded(ctx context.Context, w *recordWrite) (created bool, existing *StoredActivation, err error) {
	for _, cmd := range w.before {
		if err := cmd.Err(); err != nil {
			return false, nil, failure(ctx, "record activation", err)
		}
	}
	switch err := w.set.Err(); {
	case err == nil:
		return true, nil, nil
	case !errors.Is(err, redis.Nil):
		return false, nil, failure(ctx, "record activation", err)
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

// recordWrite stores a record whose key does not exist. The index entry comes first:
// the sweeper finds and removes an entry without a record, and nothing would find a
// record without an entry. The record comes last: it makes log and result visible.
type recordWrite struct {
	meta, index, tenant, id, raw string
	startMS                      int64
	logKey, logIndex             string // with log
	log                          []byte // nil: none
	resultKey                    string // with result
	result                       []byte // nil: it is in the record, or there is none

	before []redis.Cmder // what the record's visibility rests on
	set    *redis.StatusCmd
}

func (w *recordWrite) indexEntry() (key string, entry redis.Z) {
	return w.index, redis.Z{Score: float64(w.startMS), Member: w.id}
}

func (w *recordWrite) queue(ctx context.Context, pipe redis.Pipeliner, indexed *redis.IntCmd) {
	w.before = append(w.before, indexed)
	if w.log != nil {
		w.before = append(w.before, queueChunk(ctx, pipe, w.logKey, w.logIndex, 0, w.log)...)
	}
	if w.result != nil {
		w.before = append(w.before, pipe.Set(ctx, w.resultKey, w.result, activationTTL))
	}
	w.set = pipe.SetArgs(ctx, w.meta, w.raw, redis.SetArgs{Mode: "NX", TTL: activationTTL})
}

// Withdraw takes back the record of a Start whose outcome was unknown and after
// which nothing ran. A record that is not a's own stays.
func (r *Activations) Withdraw(ctx context.Context, a *StoredActivation) error {
	raw, err := encodeActivation(a)
	if err != nil {
		return err
	}
	_, err = r.s.eval(ctx, scriptActivationWithdraw, []string{
		r.s.keys.activationMeta(a.Tenant, a.ActivationID),
		r.s.keys.activationIndex(a.Tenant, a.Namespace, a.Function),
	}, raw, a.ActivationID)
	return err
}

// Finish stores a's terminal record in place of the queued or running one of
// attempt fromAttempt. a.Result is whole: what is stored of it is cut (see
// CutResult), and lies under a key of its own where it is large. won says whether
// this record (from this call or an earlier try) is the one that stands; current
// is what is stored. Call it when Start has returned. CodeActivationNotFound.
func (r *Activations) Finish(ctx context.Context, a *StoredActivation, fromAttempt int) (won bool, current *StoredActivation, err error) {
	end, err := encodeEnd(a)
	if err != nil {
		return false, nil, err
	}
	w := &scriptWrite{
		script: r.s.scripts[scriptActivationFinish],
		keys:   []string{r.s.keys.activationMeta(a.Tenant, a.ActivationID)},
		args:   []any{end.raw, fromAttempt, int64(api.ActivationTTLMS)},
	}
	var reply any
	if end.stored.ResultBytes > 0 {
		// Beside the group commit: no other activation waits behind a large result.
		w.keys = append(w.keys, r.s.keys.activationResult(a.Tenant, a.ActivationID))
		w.args = append(w.args, end.result)
		reply, err = r.s.eval(ctx, scriptActivationFinish, w.keys, w.args...)
	} else {
		reply, err = r.commitScript(ctx, a.ActivationID, scriptActivationFinish, w)
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

// encodedEnd is a terminal activation as it is stored.
type encodedEnd struct {
	stored StoredActivation
	raw    string // of stored
	result []byte // cut (see CutResult); in stored unless it is large
}

func encodeEnd(a *StoredActivation) (*encodedEnd, error) {
	e := &encodedEnd{stored: *a}
	result, truncated := CutResult(a.Result)
	e.result = result
	e.stored.ResultTruncated = truncated
	e.stored.Result, e.stored.ResultBytes = result, 0
	if len(result) > api.MaxInlineResultBytes {
		e.stored.Result, e.stored.ResultBytes = nil, len(result)
	}
	var err error
	e.raw, err = encodeActivation(&e.stored)
	return e, err
}

// whole is the stored record with its result.
func (e *encodedEnd) whole() *StoredActivation {
	e.stored.Result = e.result
	return &e.stored
}

// Get gives an activation with its result. One that is lost is repaired first.
// CodeActivationNotFound.
func (r *Activations) Get(ctx context.Context, tenant, id string) (*StoredActivation, error) {
	a, _, err := r.read(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if a.Lost(r.s.NowMS()) {
		a, _, err = r.repair(ctx, a, r.s.NowMS())
	}
	return a, err
}

// read gives the stored record with its result, and the record's bytes.
func (r *Activations) read(ctx context.Context, tenant, id string) (*StoredActivation, string, error) {
	raws, err := r.s.getMany(ctx, []string{r.s.keys.activationMeta(tenant, id), r.s.keys.activationResult(tenant, id)})
	if err != nil {
		return nil, "", failure(ctx, "read activation", err)
	}
	if raws[0] == "" {
		return nil, "", api.Errorf(api.CodeActivationNotFound, "activation %s does not exist", id)
	}
	a, err := decode[StoredActivation](raws[0])
	if err != nil {
		return nil, "", err
	}
	if a.ResultBytes > 0 {
		a.Result = json.RawMessage(raws[1])
	}
	return &a, raws[0], nil
}

// join reads a record's bytes and adds a result that lies under its own key.
func (r *Activations) join(ctx context.Context, raw string) (*StoredActivation, error) {
	a, err := decode[StoredActivation](raw)
	if err != nil || a.ResultBytes == 0 {
		return &a, err
	}
	a.Result, err = r.s.rdb.Get(ctx, r.s.keys.activationResult(a.Tenant, a.ActivationID)).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, failure(ctx, "read result", err)
	}
	return &a, nil
}

// repair ends a lost activation, unless somebody was faster; it gives what is
// stored then, and whether this call ended it.
func (r *Activations) repair(ctx context.Context, lost *StoredActivation, nowMS int64) (*StoredActivation, bool, error) {
	a := *lost
	a.Status = api.StatusError
	a.Error = &api.ActivationError{Type: api.ErrLost, Message: "the process that ran this activation ended before it did"}
	a.end(nowMS)
	a.Claim = uuid.NewString() // of two who end it in one millisecond one has
	won, current, err := r.Finish(ctx, &a, a.Attempt)
	return current, won, err
}

func (a *StoredActivation) end(nowMS int64) {
	a.EndMS = nowMS
	a.DurationMS = max(0, nowMS-a.StartMS)
}

// Cancel ends a queued or running activation as cancelled and gives the record.
// CodeActivationTerminal, with the record, where it has ended;
// CodeActivationNotFound.
func (r *Activations) Cancel(ctx context.Context, tenant, id string, nowMS int64) (*StoredActivation, error) {
	var current *StoredActivation
	err := retryConflicts(ctx, func() error {
		held, _, err := r.read(ctx, tenant, id)
		if err != nil {
			return err
		}
		if held.Lost(nowMS) {
			if held, _, err = r.repair(ctx, held, nowMS); err != nil {
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
		won, stored, err := r.Finish(ctx, &a, a.Attempt)
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
