package queue

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/duework"
)

// move takes one job from where it was read to another state.
type move struct {
	record  *record
	to      run
	field   string // written with it, "" for none
	value   string
	failure string // an error's record, "" for none
	release bool   // lets the unique key go
	follow  bool   // what follows the job's end is to be done
	spec    string // replaces the spec, "" leaves it

	outcome string // answer: moved, movedAfter, missing, or the job's run as it is
}

// The answers of the move script that are no run.
const (
	moved      = "ok"
	movedAfter = "after" // moved, and something follows
	missing    = "gone"
)

// end is what every move into a terminal state does beside the state.
func (m move) end() move {
	m.release, m.follow = m.record.spec.UniqueKey != "", true
	return m
}

// moveAll makes moves of jobs of one queue, each if the job still is what was
// read; outcomes say which were made. Then what follows is done, and whoever
// waits for work is woken.
func (b *Broker) moveAll(ctx context.Context, q queueKey, moves []*move) error {
	if len(moves) == 0 {
		return nil
	}
	for _, m := range moves {
		if m.record.run.state != m.to.state && !allowed(m.record.run.state, m.to.state) {
			return api.Errorf(api.CodeInternal, "a job cannot go from %s to %s", m.record.run.state, m.to.state)
		}
	}
	keys, args := b.moveArguments(q, moves)
	reply, err := b.store.ScriptThen(ctx, storage.ScriptJobMove, keys, args, func(pipe redis.Pipeliner) {
		b.announceMoves(ctx, pipe, q, moves)
	})
	if err != nil {
		return err
	}
	var follow []string
	wake := false
	for i, outcome := range texts(reply) {
		m := moves[i]
		m.outcome = outcome
		if outcome == movedAfter {
			follow = append(follow, m.record.id)
			m.outcome = moved
		}
		if m.outcome == moved {
			b.metrics.left(m.record.run.state, m.to.state)
			wake = wake || m.to.state == api.JobPending
		}
	}
	b.recordRetries(ctx, q.tenant, moves)
	if wake {
		b.wakes.wake(q)
	}
	b.followUp(ctx, q, follow)
	return nil
}

// moveArguments lays the moves out as job_move.lua reads them.
func (b *Broker) moveArguments(q queueKey, moves []*move) (keys []string, args []any) {
	k, tenant := b.keys(q), b.store.JobKeys(q.tenant)
	keys = []string{k.Cursor(), k.After()}
	places := map[string]int{}
	for _, m := range moves {
		for _, state := range []api.JobState{m.record.run.state, m.to.state} {
			if set := b.setOf(q, state, m.record.spec.Score); places[set] == 0 {
				keys = append(keys, set)
				places[set] = len(keys)
			}
		}
	}
	sets := len(keys) - 2
	for _, m := range moves {
		keys = append(keys, tenant.Run(m.record.id))
	}
	args = append(make([]any, 0, 3+16*len(moves)), sets, len(moves), b.store.NowMS())
	for _, m := range moves {
		meta, failures, unique, spec, rank, at := 0, 0, 0, 0, -1, scoreText(m.to.at)
		if m.field != "" {
			keys = append(keys, tenant.Meta(m.record.id))
			meta = len(keys)
		}
		if m.spec != "" {
			keys = append(keys, tenant.Spec(m.record.id))
			spec = len(keys)
		}
		if m.failure != "" {
			keys = append(keys, tenant.Errors(m.record.id))
			failures = len(keys)
		}
		if m.release && m.record.spec.UniqueKey != "" {
			keys = append(keys, tenant.Unique(q.namespace, q.queue, m.record.spec.UniqueKey))
			unique = len(keys)
		}
		if m.to.state == api.JobPending {
			rank, at = rankOf(m.record.spec.Score), scoreText(m.record.spec.Score)
		}
		follow := ""
		if m.follow {
			follow = "1"
		}
		args = append(args, m.record.id, m.record.text, m.to.String(),
			places[b.setOf(q, m.record.run.state, m.record.spec.Score)], places[b.setOf(q, m.to.state, m.record.spec.Score)],
			at, rank, m.field, m.value, meta, failures, m.failure, unique, m.spec, spec, follow)
	}
	return keys, args
}

// announceMoves tells, behind the moves, what they made due.
func (b *Broker) announceMoves(ctx context.Context, pipe redis.Pipeliner, q queueKey, moves []*move) {
	due, ready := int64(0), false
	for _, m := range moves {
		ready = ready || m.to.state == api.JobPending || m.record.run.state == api.JobActive
		at := int64(0)
		switch {
		case m.to.state == api.JobScheduled || m.to.state == api.JobRetrying || m.to.state == api.JobWaiting:
			at = m.to.at
		case m.follow:
			at = b.store.NowMS()
		}
		if m.record.run.state == api.JobActive && !m.to.state.Terminal() && m.record.spec.ExpireAtMS > 0 {
			// While it was active, its expiry may have been put off to its lease's end.
			expires := max(m.record.spec.ExpireAtMS, b.store.NowMS())
			pipe.ZAdd(ctx, b.keys(q).Expiry(), redis.Z{Score: float64(expires), Member: m.record.id})
			at = duework.Sooner(at, expires)
		}
		due = duework.Sooner(due, at)
	}
	if due > 0 {
		b.markDue(ctx, pipe, q, due)
	}
	if ready && isFunctionQueue(q.queue) {
		b.markReady(ctx, pipe, q, b.store.NowMS())
	}
}

// changeTries bounds how often a change is decided anew because somebody else
// changed the job meanwhile.
const changeTries = 20

// change decides on a job and makes the move, again on what it has become where
// somebody was faster. decide gives nil where there is nothing to be done.
// Errors: CodeJobNotFound, decide's, CodeStoreConflict, CodeStoreUnavailable.
func (b *Broker) change(ctx context.Context, tenant, id string, decide func(r *record) (*move, error)) (*record, error) {
	for range changeTries {
		r, err := b.find(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		m, err := decide(r)
		if err != nil || m == nil {
			return r, err
		}
		if err := b.moveAll(ctx, r.key(tenant), []*move{m}); err != nil {
			return nil, err
		}
		switch m.outcome {
		case moved:
			after := *r
			after.run, after.text = m.to, m.to.String()
			if m.field != "" {
				after.more[m.field] = m.value
			}
			if m.spec != "" {
				if after.spec, err = decodeSpec(m.spec); err != nil {
					return nil, err
				}
			}
			return &after, nil
		case missing:
			return nil, jobNotFound(id)
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "job %s keeps changing", id)
}

// stateConflict refuses what the job's state does not allow, and names it.
func stateConflict(r *record, what string) error {
	return api.Errorf(api.CodeJobState, "job %s is %s: it cannot be %s", r.id, r.run.state, what)
}

// failureRecord is an error as the store keeps it. It begins with the epoch, by
// which a repeated write knows its own.
func failureRecord(epoch int64, e api.JobError) (string, error) {
	raw, err := api.EncodeJSON(e)
	if err != nil {
		return "", fmt.Errorf("queue: encode an error: %w", err)
	}
	return fmt.Sprintf(`{"epoch":%d,%s`, epoch, raw[1:]), nil
}
