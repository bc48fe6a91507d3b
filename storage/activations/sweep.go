package activations

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// SweepCounts counts the work of a sweep.
type SweepCounts struct {
	Read     int // records read
	Lost     int // of these, ended as lost
	Trimmed  int // index entries removed because they can have outlived their records
	Dangling int // index entries without a record that are too young for one to have expired
	// Waiting counts the records that an earlier sweep read and whose jobs have not ended
	// since.
	Waiting int
	// More reports that the limit ended the sweep before the end of the index.
	More bool
}

// Add sums the counts of two sweeps.
func (c *SweepCounts) Add(o SweepCounts) {
	c.Read += o.Read
	c.Lost += o.Lost
	c.Trimmed += o.Trimmed
	c.Dangling += o.Dangling
	c.Waiting += o.Waiting
	c.More = c.More || o.More
}

// Swept is the result of one sweep of a function's activations.
type Swept struct {
	SweepCounts
	// Ended are the ids of the lost ones, which were ended.
	Ended []string
	// Unreadable are the ids of records that cannot be read, which were passed over.
	Unreadable []string
	// Asynchronous are activations that have not ended and belong to jobs. The caller
	// checks with the queue whether those jobs exist.
	Asynchronous []*Record
}

// Limits of a sweep.
const (
	// sweepOpenMax is the number of running activations that a sweep may leave behind
	// its cursor, to be read again; beyond it the cursor waits. As many that belong to
	// jobs are remembered; beyond it the rescan finds the rest.
	sweepOpenMax = 64
	// sweepRescanMS is the interval at which a function's index is swept from its start:
	// an entry from a slow clock may lie before the cursor.
	sweepRescanMS = 24 * 60 * 60 * 1000
)

// horizon returns the start_ms up to which an entry is expected to have outlived a record that is
// kept for keepMS. A synchronous call ends within its timeout and the grace period, and its record
// lives for the retention from then. A record can be younger: the start_ms of an asynchronous
// activation is the time at which it was accepted, and its job may run days later; and a version
// may have a longer retention than its tenant. The rescan removes such entries, within a day.
func (sw *sweep) horizon(keepMS int64) int64 {
	return sw.nowMS - keepMS - api.MaxTimeoutMS - api.LostGraceMS
}

// sweepState is the progress of a function's sweeps, stored as JSON in the hash cs:sweep:act
// under tenant/namespace/function:
//
//	{"after_ms":1767225600000,"after_id":"0b1e…","open":["1767225599000:77aa…"],
//	 "rescan_ms":1767180000000,"trim_ms":1766600000000,"keep_ms":3600000,"early_ms":1767221000000}
//
// Every entry up to (after_ms, after_id) has been examined. Those that had not ended then are
// in Open or Jobs and are examined again by each sweep, until they end. Two sweepers that each
// save a state do no harm: each state accounts for every entry by itself.
type sweepState struct {
	AfterMS  int64    `json:"after_ms"`          // start_ms of the last entry passed
	AfterID  string   `json:"after_id"`          // its id
	Open     []string `json:"open,omitempty"`    // positions passed whose activations still ran
	Jobs     []string `json:"jobs,omitempty"`    // positions passed whose activations belong to jobs, and had not ended
	RescanMS int64    `json:"rescan_ms"`         // when a sweep last began at the start of the index
	TrimMS   int64    `json:"trim_ms,omitempty"` // entries before this start_ms were trimmed, or had records
	// KeepMS is the shortest retention of a version among the records read since RescanMS, 0 for
	// none. EarlyMS is TrimMS for it.
	KeepMS  int64 `json:"keep_ms,omitempty"`
	EarlyMS int64 `json:"early_ms,omitempty"`
}

// SweepFunction sweeps the activations of a function that no sweep has seen ended. It ends the
// lost ones, removes index entries without a record, and reports the asynchronous ones. It
// examines up to limit activations, and trims up to limit index entries for each retention;
// limit is at most api.MaxPageLimit. Activations that earlier sweeps left running are examined
// even beyond it. A cursor in the store keeps its progress: the next call, of any process,
// continues there. A function that was never invoked costs three reads. With an error the Swept
// holds the work done so far, which is not repeated except for reads. CodeStoreUnavailable.
func (r *Repository) SweepFunction(ctx context.Context, tenant, namespace, function string, nowMS int64, limit int) (Swept, error) {
	sw := &sweep{
		r: r, tenant: tenant, nowMS: nowMS, limit: storage.PageLimit(limit),
		index: r.s.Keys().ActivationIndex(tenant, namespace, function),
		field: tenant + "/" + namespace + "/" + function,
	}
	err := sw.run(ctx)
	return sw.swept, err
}

// sweep is one call of SweepFunction.
type sweep struct {
	r             *Repository
	tenant        string
	index, field  string
	nowMS         int64
	limit         int
	state, before sweepState
	swept         Swept
}

// run trims, examines the activations that earlier sweeps left open, and then continues at the
// cursor. It ends at the limit of reads, at the end of the index, or when too many activations
// behind the cursor are still running.
func (sw *sweep) run(ctx context.Context) error {
	if err := sw.loadState(ctx); err != nil {
		return err
	}
	if err := sw.trimAll(ctx); err != nil {
		return err
	}
	if err := sw.reopen(ctx); err != nil {
		return err
	}
	for sw.swept.Read < sw.limit && len(sw.state.Open) < sweepOpenMax {
		positions, err := sw.nextPositions(ctx)
		if err != nil {
			return err
		}
		if len(positions) == 0 {
			return sw.saveState(ctx)
		}
		open, jobs, err := sw.examine(ctx, positions)
		if err != nil {
			return err
		}
		last := positions[len(positions)-1]
		sw.state.AfterMS, sw.state.AfterID = last.startMS, last.id
		sw.state.Open = append(sw.state.Open, open...)
		room := max(0, sweepOpenMax-len(sw.state.Jobs))
		sw.state.Jobs = append(sw.state.Jobs, jobs[:min(room, len(jobs))]...)
	}
	sw.swept.More = sw.swept.More || sw.swept.Read >= sw.limit // trim may have set it
	return sw.saveState(ctx)
}

// loadState reads the cursor. If the last rescan is a day old, it begins at the start of the index
// and drops Open and Jobs, whose entries it will pass again.
func (sw *sweep) loadState(ctx context.Context) error {
	raw, err := sw.r.s.Client().HGet(ctx, sw.r.s.Keys().ActivationSweeps(), sw.field).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		sw.state.RescanMS = sw.nowMS
		return nil
	case err != nil:
		return storage.Failure(ctx, "read sweep cursor", err)
	}
	if json.Unmarshal(raw, &sw.state) != nil { // nothing is lost by beginning again
		sw.state = sweepState{RescanMS: sw.nowMS}
	}
	sw.before = sw.state
	sw.before.Open, sw.before.Jobs = slices.Clone(sw.state.Open), slices.Clone(sw.state.Jobs)
	if sw.nowMS-sw.state.RescanMS >= sweepRescanMS {
		sw.state = sweepState{RescanMS: sw.nowMS, TrimMS: sw.state.TrimMS, EarlyMS: sw.state.EarlyMS}
	}
	return nil
}

// saveState is a call of its own, since the cursors belong to no tenant. A sweep that is
// interrupted before it reads the same entries again, which changes nothing.
func (sw *sweep) saveState(ctx context.Context) error {
	a, b := sw.state, sw.before
	if a.AfterMS == b.AfterMS && a.AfterID == b.AfterID && a.RescanMS == b.RescanMS && a.TrimMS == b.TrimMS &&
		a.KeepMS == b.KeepMS && a.EarlyMS == b.EarlyMS &&
		slices.Equal(a.Open, b.Open) && slices.Equal(a.Jobs, b.Jobs) || a.AfterID == "" && sw.before.RescanMS == 0 {
		return nil // no progress, or an index that never had an entry
	}
	raw, err := storage.Encode(sw.state)
	if err != nil {
		return err
	}
	return storage.Failure(ctx, "save sweep cursor", sw.r.s.Client().HSet(ctx, sw.r.s.Keys().ActivationSweeps(), sw.field, raw).Err())
}

// trimAll trims the entries that have outlived the retention of the tenant, and, where a version
// has a shorter one, those that have outlived that.
func (sw *sweep) trimAll(ctx context.Context) error {
	keep := sw.r.s.ActivationRetentionMS(sw.tenant, 0)
	if err := sw.trim(ctx, &sw.state.TrimMS, sw.horizon(keep)); err != nil || sw.state.KeepMS == 0 || sw.state.KeepMS >= keep {
		return err
	}
	sw.state.EarlyMS = max(sw.state.EarlyMS, sw.state.TrimMS)
	return sw.trim(ctx, &sw.state.EarlyMS, sw.horizon(sw.state.KeepMS))
}

// trim removes the entries before horizon whose records are gone, from the cursor after: on KVRocks
// a read from the start would walk over the entries removed before. An old entry whose record
// lives belongs to a job that ran late, or to a version with a longer retention. It stays, and a
// rescan removes it after its record.
func (sw *sweep) trim(ctx context.Context, after *int64, horizon int64) error {
	if horizon <= *after {
		return nil
	}
	old, err := sw.r.s.Client().ZRangeByScoreWithScores(ctx, sw.index, &redis.ZRangeBy{
		Min: strconv.FormatInt(*after, 10), Max: "(" + strconv.FormatInt(horizon, 10), Count: int64(sw.limit),
	}).Result()
	if err != nil || len(old) == 0 {
		return storage.Failure(ctx, "trim index", err)
	}
	ids := make([]string, len(old))
	for i, z := range old {
		ids[i], _ = z.Member.(string) // members are always strings
	}
	raws, err := sw.records(ctx, ids)
	if err != nil {
		return err
	}
	var gone []string
	for i, raw := range raws {
		if raw == "" {
			gone = append(gone, ids[i])
		}
	}
	if err := sw.remove(ctx, gone); err != nil {
		return err
	}
	sw.swept.Trimmed += len(gone)
	if len(old) < sw.limit {
		*after = horizon
		return nil
	}
	sw.swept.More = true
	last := int64(old[len(old)-1].Score)
	if last == *after && len(gone) == 0 {
		last++ // one millisecond fills a page with entries that stay; the rescan examines the rest
	}
	*after = last
	return nil
}

// records reads the records of activations. A missing record is "".
func (sw *sweep) records(ctx context.Context, ids []string) ([]string, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = sw.r.s.Keys().ActivationMeta(sw.tenant, id)
	}
	raws, err := sw.r.s.GetMany(ctx, keys)
	return raws, storage.Failure(ctx, "sweep activations", err)
}

// remove removes entries from the index, whose records do not exist. A record that is being
// written has its entry already and would lose it here, so the callers pass only entries
// whose start_ms is at least the grace period old.
func (sw *sweep) remove(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	members := make([]any, len(ids))
	for i, id := range ids {
		members[i] = id
	}
	return storage.Failure(ctx, "trim index", sw.r.s.Client().ZRem(ctx, sw.index, members...).Err())
}

// reopen reads the activations again that ran, or belonged to jobs, when the cursor passed
// them.
func (sw *sweep) reopen(ctx context.Context) (err error) {
	sw.state.Open, _, err = sw.examine(ctx, positionsOf(sw.state.Open))
	if err != nil {
		return err
	}
	asked := min(len(sw.state.Jobs), max(1, sw.limit-sw.swept.Read))
	_, jobs, err := sw.examine(ctx, positionsOf(sw.state.Jobs[:asked]))
	sw.swept.Waiting = len(jobs)
	sw.state.Jobs = append(sw.state.Jobs[asked:], jobs...) // the next sweep continues after these
	return err
}

// positionsOf parses the positions of a state. It skips those that it cannot parse; the
// rescan finds them.
func positionsOf(texts []string) []indexPosition {
	positions := make([]indexPosition, 0, len(texts))
	for _, s := range texts {
		if p, err := parseIndexPosition(s); err == nil {
			positions = append(positions, p)
		}
	}
	return positions
}

// nextPositions returns entries after the cursor that are old enough: an activation younger
// than the grace period cannot be lost, and its record may still be on its way.
func (sw *sweep) nextPositions(ctx context.Context) ([]indexPosition, error) {
	window := min(indexWindow, sw.limit-sw.swept.Read, sweepOpenMax-len(sw.state.Open))
	by := redis.ZRangeBy{
		Min:   strconv.FormatInt(sw.state.AfterMS, 10),
		Max:   strconv.FormatInt(sw.nowMS-api.LostGraceMS, 10),
		Count: int64(window),
	}
	for {
		found, err := sw.r.s.Client().ZRangeByScoreWithScores(ctx, sw.index, &by).Result()
		if err != nil {
			return nil, storage.Failure(ctx, "sweep index", err)
		}
		var positions []indexPosition
		for _, z := range found {
			id, _ := z.Member.(string)
			p := indexPosition{int64(z.Score), id}
			if p.startMS > sw.state.AfterMS || p.id > sw.state.AfterID {
				positions = append(positions, p)
			}
		}
		if len(positions) > 0 || len(found) < window {
			return positions, nil
		}
		by.Offset += int64(window) // all of these had the cursor's score and lay before it
	}
}

// examine ends lost activations and removes entries without a record. It returns the
// positions of the activations that still run, and of those that belong to jobs and have
// not ended.
func (sw *sweep) examine(ctx context.Context, positions []indexPosition) (open, jobs []string, err error) {
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.id
	}
	raws, err := sw.records(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	sw.swept.Read += len(positions)
	var gone []string
	for i, raw := range raws {
		if raw == "" {
			gone = append(gone, ids[i])
			if positions[i].startMS <= sw.nowMS-api.MinRetentionMS { // the version may have had the shortest retention
				sw.swept.Trimmed++
			} else {
				sw.swept.Dangling++
			}
			continue
		}
		a, err := storage.Decode[Record](raw)
		switch {
		case err != nil:
			sw.swept.Unreadable = append(sw.swept.Unreadable, ids[i])
		case a.Status.Terminal():
			sw.learn(a.RetentionMS)
		case a.JobID != "":
			sw.swept.Asynchronous = append(sw.swept.Asynchronous, &a)
			jobs = append(jobs, positions[i].String())
		case a.Status != api.StatusRunning:
			// It is queued, and has no job that could run or end it. No release writes such a
			// record; among the open ones it would be read until it expires.
		case a.Lost(sw.nowMS):
			if err := sw.end(ctx, &a); err != nil {
				return nil, nil, err
			}
		default:
			open = append(open, positions[i].String())
		}
	}
	return open, jobs, sw.remove(ctx, gone)
}

// learn notes the retention of a version, 0 for none of its own.
func (sw *sweep) learn(ownMS int64) {
	if ownMS > 0 && (sw.state.KeepMS == 0 || ownMS < sw.state.KeepMS) {
		sw.state.KeepMS = ownMS
	}
}

// end ends a lost activation, unless another caller has ended it.
func (sw *sweep) end(ctx context.Context, a *Record) error {
	_, won, err := sw.r.repair(ctx, a, sw.nowMS)
	if won {
		sw.swept.Lost++
		sw.swept.Ended = append(sw.swept.Ended, a.ActivationID)
	}
	if api.ErrorCode(err) == api.CodeActivationNotFound {
		return nil
	}
	return err
}
