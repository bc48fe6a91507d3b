package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// maxHoldReason bounds why a job is held, in bytes.
const maxHoldReason = 1024

// What the ack script answers, beside the words of a move, where the same epoch had
// completed the job before.
const (
	repeated      = "again"
	repeatedAfter = "again after" // and something is still to follow
)

// ackItem is one job to be completed.
type ackItem struct {
	id, result, unique string
	epoch              int64
	run                string // of the job, as this process knows it; may be out of date
	outcome            string // answer: moved, movedAfter, repeated, repeatedAfter, missing, or the job's run as it is
	err                error  // answer
}

// Ack settles jobs whose attempt went well. Each gets its own outcome, in order:
// CodeJobNotFound, CodeJobLeaseLost where another epoch holds the job or none
// does, CodeJobResult, CodeInvalid; a repeat of what the same epoch did is a
// success. An error means that nothing is known: ask again.
func (b *Broker) Ack(ctx context.Context, tenant string, acks []api.JobAck) ([]api.JobOutcome, error) {
	if err := checkCount(len(acks)); err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(acks))
	ids, epochs := make([]string, len(acks)), make([]int64, len(acks))
	for i := range acks {
		ids[i], epochs[i] = acks[i].ID, acks[i].LeaseEpoch
	}
	briefs, err := b.briefsOf(ctx, tenant, ids, epochs)
	if err != nil {
		return nil, err
	}
	items, places := map[queueKey][]*ackItem{}, map[queueKey][]int{}
	for i := range acks {
		a := &acks[i]
		out[i].ID = a.ID
		known := briefs[a.ID]
		if known == nil {
			out[i] = refused(a.ID, jobNotFound(a.ID))
			continue
		}
		if err := b.checkAck(a, known); err != nil {
			out[i] = refused(a.ID, err)
			continue
		}
		if a.Continue || a.Hold != "" {
			if out[i], err = b.putBack(ctx, tenant, a); err != nil {
				return nil, err
			}
			continue
		}
		q := queueKey{tenant, known.namespace, known.queue}
		items[q] = append(items[q], &ackItem{id: a.ID, epoch: a.LeaseEpoch, result: string(a.Result), unique: known.unique, run: known.run})
		places[q] = append(places[q], i)
	}
	for q, list := range items {
		if err := b.acks.do(ctx, q, list); err != nil {
			return nil, err
		}
		for k, item := range list {
			if item.err != nil {
				return nil, item.err
			}
			out[places[q][k]] = b.settled(item.id, item.outcome, api.JobCompleted)
		}
	}
	return out, nil
}

// checkAck refuses what no job can end with.
func (b *Broker) checkAck(a *api.JobAck, known *brief) error {
	switch {
	case len(a.Result) > api.MaxJobResultBytes:
		return api.Errorf(api.CodeBodyLimit, "the result exceeds %d bytes", api.MaxJobResultBytes)
	case len(a.Checkpoint) > api.MaxCheckpointBytes:
		return api.Errorf(api.CodeBodyLimit, "the checkpoint exceeds %d bytes", api.MaxCheckpointBytes)
	case a.Continue && a.Hold != "":
		return fieldError("hold", "cannot stand beside continue")
	case len(a.Hold) > maxHoldReason:
		return fieldError("hold", "is too long")
	case len(known.schema) > 0 && !a.Continue && a.Hold == "":
		return b.checkResult(known.schema, a.Result)
	}
	return nil
}

func (b *Broker) flushAcks(ctx context.Context, q queueKey, items []*ackItem) {
	rest, err := b.completePlain(ctx, q, items)
	if err == nil && len(rest) > 0 {
		err = b.complete(ctx, q, rest)
	}
	if err != nil {
		for _, item := range items {
			item.err = err
		}
	}
}

// completePlain completes jobs whose run is as this process knows it, and of which
// nothing else is to be written. It returns the others.
func (b *Broker) completePlain(ctx context.Context, q queueKey, items []*ackItem) (rest []*ackItem, err error) {
	now := b.store.NowMS()
	var plain []*ackItem
	groups := map[run][]*ackItem{}
	for _, item := range items {
		held, err := parseRun(item.run)
		if err != nil || item.result != "" || item.unique != "" || held.state != api.JobActive || held.epoch != item.epoch || held.follows == followsEnd {
			rest = append(rest, item)
			continue
		}
		groups[held] = append(groups[held], item)
	}
	if len(groups) == 0 {
		return rest, nil
	}
	k, tenant := b.keys(q), b.store.JobKeys(q.tenant)
	keys := append(make([]string, 0, 2+len(items)), k.Set(string(api.JobActive)), k.Set(string(api.JobCompleted)))
	args := append(make([]any, 0, 1+2*len(items)), now)
	for held, group := range groups {
		args = append(args, len(group), held.String(), held.settle(settledAck).to(api.JobCompleted, now).String())
		for _, item := range group {
			plain = append(plain, item)
			keys = append(keys, tenant.Run(item.id))
			args = append(args, item.id)
		}
	}
	reply, err := b.store.ScriptThen(ctx, storage.ScriptJobComplete, keys, args, func(pipe redis.Pipeliner) {
		b.placeFreed(ctx, pipe, q)
	})
	if err != nil {
		return nil, err
	}
	for _, item := range plain {
		item.outcome = moved
	}
	changed, err := placesOf(storage.ScriptJobComplete, texts(reply), len(plain))
	if err != nil {
		return nil, err
	}
	for _, at := range changed {
		rest = append(rest, plain[at])
	}
	b.metrics.completed(len(items) - len(rest))
	return rest, nil
}

// placeFreed marks a queue of the platform's own: a place under its limits may have
// become free.
func (b *Broker) placeFreed(ctx context.Context, pipe redis.Pipeliner, q queueKey) {
	if isFunctionQueue(q.queue) {
		b.markReady(ctx, pipe, q, b.store.NowMS())
	}
}

// complete runs the script on jobs of one queue.
func (b *Broker) complete(ctx context.Context, q queueKey, items []*ackItem) error {
	k, tenant := b.keys(q), b.store.JobKeys(q.tenant)
	keys := append(make([]string, 0, 3+len(items)), k.Set(string(api.JobActive)), k.Set(string(api.JobCompleted)), k.After())
	for _, item := range items {
		keys = append(keys, tenant.Run(item.id))
	}
	for _, item := range items {
		if item.result != "" {
			keys = append(keys, tenant.Meta(item.id))
		}
	}
	args := append(make([]any, 0, 2+4*len(items)), b.store.NowMS(), len(items))
	for _, item := range items {
		unique := ""
		if item.unique != "" {
			keys = append(keys, tenant.Unique(q.namespace, q.queue, item.unique))
			unique = strconv.Itoa(len(keys))
		}
		args = append(args, item.id, item.epoch, item.result, unique)
	}
	reply, err := b.store.ScriptThen(ctx, storage.ScriptJobAck, keys, args, func(pipe redis.Pipeliner) {
		b.placeFreed(ctx, pipe, q)
	})
	if err != nil {
		return err
	}
	var follow []string
	for i, outcome := range texts(reply) {
		switch items[i].outcome = outcome; outcome {
		case movedAfter, repeatedAfter:
			follow = append(follow, items[i].id)
		}
		switch outcome {
		case moved, movedAfter:
			b.metrics.left(api.JobActive, api.JobCompleted)
		}
	}
	b.followUp(ctx, q, follow)
	return nil
}

// settled turns a script's word into an outcome.
func (b *Broker) settled(id, word string, to api.JobState) api.JobOutcome {
	switch word {
	case moved, movedAfter, repeated, repeatedAfter:
		return api.JobOutcome{ID: id, OK: true, State: to}
	case missing:
		return refused(id, jobNotFound(id))
	}
	b.metrics.lost.WithLabelValues("refused").Inc()
	lost := refused(id, api.Errorf(api.CodeJobLeaseLost, "the lease is not held any more"))
	if now, err := parseRun(word); err == nil {
		lost.State = now.state
	}
	return lost
}

func refused(id string, err error) api.JobOutcome {
	return api.JobOutcome{ID: id, Code: api.ErrorCode(err), Message: messageOf(err)}
}

// holds says whether epoch holds r's lease; done, that it settled it in the given
// way before.
func (r *record) holds(epoch int64, kind string) (holds, done bool) {
	return r.run.state == api.JobActive && r.run.epoch == epoch, r.run.settledBy(epoch, kind)
}

// leaseLost is how decide says that the epoch is not the job's.
type leaseLost struct{ run run }

func (leaseLost) Error() string { return "the lease is not held any more" }

// putBack acknowledges with continue or hold: the job goes on later.
func (b *Broker) putBack(ctx context.Context, tenant string, a *api.JobAck) (api.JobOutcome, error) {
	kind := settledContinue
	if a.Hold != "" {
		kind = settledHold
	}
	return b.settleBy(ctx, tenant, a.ID, func(r *record) (*move, error) {
		holds, done := r.holds(a.LeaseEpoch, kind)
		if !holds {
			return nil, lostUnless(done, r)
		}
		if len(a.Checkpoint) > 0 {
			var err error
			if r, err = b.keepCheckpoint(ctx, tenant, r, a.LeaseEpoch, a.Checkpoint); err != nil {
				return nil, err
			}
		}
		m := &move{record: r, to: r.run.settle(kind).to(api.JobPending, b.store.NowMS())}
		m.to.attempt = 0 // a round that went well is no failed attempt
		if a.Hold != "" {
			m.to.state = api.JobHeld
			m.field, m.value = fieldHoldReason, a.Hold
		}
		return m, nil
	})
}

// lostUnless is nil where the same call was made before.
func lostUnless(done bool, r *record) error {
	if done {
		return nil
	}
	return leaseLost{r.run}
}

// keepCheckpoint stores a checkpoint while the lease holds, and gives the job as it
// is then.
func (b *Broker) keepCheckpoint(ctx context.Context, tenant string, r *record, epoch int64, checkpoint json.RawMessage) (*record, error) {
	beat := api.JobHeartbeat{ID: r.id, LeaseEpoch: epoch, Checkpoint: checkpoint}
	if _, err := b.beat(ctx, r.key(tenant), []*api.JobHeartbeat{&beat}); err != nil {
		return nil, err
	}
	fresh, err := b.find(ctx, tenant, r.id)
	if err != nil {
		return nil, err
	}
	if holds, _ := fresh.holds(epoch, ""); !holds {
		return nil, leaseLost{fresh.run} // it ran out meanwhile
	}
	return fresh, nil
}

// checkCount bounds how many jobs one call settles.
func checkCount(n int) error {
	if n > api.MaxSettleJobs {
		return fieldError("jobs", "must be at most "+strconv.Itoa(api.MaxSettleJobs))
	}
	return nil
}

// settleBy changes one job and gives its outcome.
func (b *Broker) settleBy(ctx context.Context, tenant, id string, decide func(r *record) (*move, error)) (api.JobOutcome, error) {
	r, err := b.change(ctx, tenant, id, decide)
	if lost, ok := err.(leaseLost); ok { //nolint:errorlint // decide's own, never wrapped
		return b.settled(id, lost.run.String(), ""), nil
	}
	if code := api.ErrorCode(err); code == api.CodeJobNotFound || code == api.CodeInvalid {
		return refused(id, err), nil
	}
	if err != nil {
		return api.JobOutcome{}, err
	}
	return api.JobOutcome{ID: id, OK: true, State: r.run.state}, nil
}

// Fail settles jobs whose attempt failed: they are retried after their backoff,
// or dead. Outcomes as with Ack.
func (b *Broker) Fail(ctx context.Context, tenant string, fails []api.JobFail) ([]api.JobOutcome, error) {
	if err := checkCount(len(fails)); err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(fails))
	for i := range fails {
		f := &fails[i]
		if err := checkFail(f); err != nil {
			out[i] = refused(f.ID, err)
			continue
		}
		var err error
		out[i], err = b.settleBy(ctx, tenant, f.ID, func(r *record) (*move, error) {
			holds, done := r.holds(f.LeaseEpoch, settledFail)
			if !holds {
				return nil, lostUnless(done, r)
			}
			return b.failed(r, f)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func checkFail(f *api.JobFail) error {
	for path, ms := range map[string]*int64{"retry_after_ms": f.RetryAfterMS, "snooze_ms": f.SnoozeMS} {
		if ms != nil && (*ms < 0 || *ms > api.MaxDelayMS) {
			return fieldError(path, "must be from 0 to 30 days")
		}
	}
	if f.Fatal && (f.RetryAfterMS != nil || f.SnoozeMS != nil) || f.RetryAfterMS != nil && f.SnoozeMS != nil {
		return fieldError("fatal", "stands alone, as do retry_after_ms and snooze_ms")
	}
	return nil
}

// failed decides what becomes of a job whose attempt failed.
func (b *Broker) failed(r *record, f *api.JobFail) (*move, error) {
	now := b.store.NowMS()
	m := &move{record: r, to: r.run.settle(settledFail)}
	if f.SnoozeMS != nil {
		m.to.attempt--
		m.to = m.to.to(api.JobRetrying, now+*f.SnoozeMS)
		return m, nil
	}
	var err error
	m.failure, err = failureRecord(r.run.epoch, api.JobError{
		Attempt: r.run.attempt, Error: cut(f.Error, api.MaxJobErrorBytes), Stack: cut(f.Stack, api.MaxJobStackBytes), AtMS: now,
	})
	if err != nil {
		return nil, err
	}
	options := r.spec.WithDefaults()
	reason := ""
	switch {
	case f.Fatal:
		reason = api.DeadFatal
	case r.spec.ExpireAtMS > 0 && r.spec.ExpireAtMS <= now:
		reason = api.DeadExpired
	case r.run.attempt >= options.MaxAttempts:
		reason = api.DeadAttempts
	}
	if reason != "" {
		return m.dead(reason, now), nil
	}
	delay := options.Delay(r.run.attempt, b.random())
	if f.RetryAfterMS != nil {
		delay = time.Duration(*f.RetryAfterMS) * time.Millisecond
	}
	m.to = m.to.to(api.JobRetrying, now+delay.Milliseconds())
	return m, nil
}

// dead makes m end the job.
func (m *move) dead(reason string, now int64) *move {
	m.to = m.to.to(api.JobDead, now)
	m.field, m.value = fieldDeadReason, reason
	ended := m.end()
	return &ended
}

// cut shortens a text to at most limit bytes of whole characters.
func cut(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for len(s) > 0 && !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) {
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func codedOf(err error) *api.Error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded
	}
	return nil
}

// messageOf is what callers may read of err.
func messageOf(err error) string {
	if coded := codedOf(err); coded != nil {
		return coded.Message
	}
	return err.Error()
}

func fieldsOf(err error) []api.FieldError {
	if coded := codedOf(err); coded != nil {
		return coded.Fields
	}
	return nil
}

func isFunctionQueue(q string) bool { return strings.HasPrefix(q, api.FunctionQueuePrefix) }
