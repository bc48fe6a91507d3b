package queue

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// maxHoldReason bounds why a job is held, in bytes.
const maxHoldReason = 1024

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
	briefs, err := b.jobs.Summaries(ctx, tenant, ids, epochs)
	if err != nil {
		return nil, err
	}
	items, places := map[jobstore.Queue][]*jobstore.Completion{}, map[jobstore.Queue][]int{}
	for i := range acks {
		a := &acks[i]
		out[i].ID = a.ID
		known := briefs[a.ID]
		if known == nil {
			out[i] = refused(a.ID, jobstore.NotFound(a.ID))
			continue
		}
		if err := b.checkAck(a, known); err != nil {
			out[i] = refused(a.ID, err)
			continue
		}
		if a.Continue || a.Hold != "" {
			out[i], err = b.putBack(ctx, tenant, a)
			if err != nil {
				return nil, err
			}
			continue
		}
		q := jobstore.Queue{Tenant: tenant, Namespace: known.Namespace, Name: known.Queue}
		items[q] = append(items[q], &jobstore.Completion{Id: a.ID, Epoch: a.LeaseEpoch, Result: string(a.Result), Unique: known.Unique, Run: known.Run})
		places[q] = append(places[q], i)
	}
	for q, list := range items {
		if err := b.acks.Do(ctx, q, list); err != nil {
			return nil, err
		}
		for k, item := range list {
			if item.Err != nil {
				return nil, item.Err
			}
			out[places[q][k]] = b.settled(item.Id, item.Outcome, api.JobCompleted)
		}
	}
	return out, nil
}

// checkAck refuses what no job can end with.
func (b *Broker) checkAck(a *api.JobAck, known *jobstore.Summary) error {
	switch {
	case len(a.Result) > api.MaxJobResultBytes:
		return api.Errorf(api.CodeBodyLimit, "the result exceeds %d bytes", api.MaxJobResultBytes)
	case len(a.Checkpoint) > api.MaxCheckpointBytes:
		return api.Errorf(api.CodeBodyLimit, "the checkpoint exceeds %d bytes", api.MaxCheckpointBytes)
	case a.Continue && a.Hold != "":
		return api.InvalidField("hold", "cannot stand beside continue")
	case len(a.Hold) > maxHoldReason:
		return api.InvalidField("hold", "is too long")
	case len(known.Schema) > 0 && !a.Continue && a.Hold == "":
		return b.checkResult(known.Schema, a.Result)
	}
	return nil
}

func (b *Broker) flushAcks(ctx context.Context, q jobstore.Queue, items []*jobstore.Completion) {
	rest, err := b.jobs.CompleteKnown(ctx, q, items)
	if err == nil {
		b.metrics.completed(len(items) - len(rest))
	}
	if err == nil && len(rest) > 0 {
		err = b.complete(ctx, q, rest)
	}
	if err != nil {
		for _, item := range items {
			item.Err = err
		}
	}
}

// complete completes the jobs that have to be judged one by one, and does what follows
// their ends.
func (b *Broker) complete(ctx context.Context, q jobstore.Queue, items []*jobstore.Completion) error {
	completed, follow, err := b.jobs.Complete(ctx, q, items)
	if err != nil {
		return err
	}
	b.metrics.completed(completed)
	b.followUp(ctx, q, follow)
	return nil
}

// settled turns a script's word into an outcome.
func (b *Broker) settled(id, word string, to api.JobState) api.JobOutcome {
	switch word {
	case jobstore.Moved, jobstore.MovedAfter, jobstore.Repeated, jobstore.RepeatedAfter:
		return api.JobOutcome{ID: id, OK: true, State: to}
	case jobstore.Missing:
		return refused(id, jobstore.NotFound(id))
	}
	b.metrics.lost.WithLabelValues("refused").Inc()
	lost := refused(id, api.Errorf(api.CodeJobLeaseLost, "the lease is not held any more"))
	if now, err := jobstore.ParseRun(word); err == nil {
		lost.State = now.State
	}
	return lost
}

func refused(id string, err error) api.JobOutcome {
	return api.JobOutcome{ID: id, Code: api.ErrorCode(err), Message: jobstore.MessageOf(err)}
}

// leaseLost is how decide says that the epoch is not the job's.
type leaseLost struct{ run jobstore.Run }

func (leaseLost) Error() string { return "the lease is not held any more" }

// putBack acknowledges with continue or hold: the job goes on later.
func (b *Broker) putBack(ctx context.Context, tenant string, a *api.JobAck) (api.JobOutcome, error) {
	kind := jobstore.SettledContinue
	if a.Hold != "" {
		kind = jobstore.SettledHold
	}
	return b.settleBy(ctx, tenant, a.ID, func(r *jobstore.Record) (*jobstore.Move, error) {
		holds, done := r.Holds(a.LeaseEpoch, kind)
		if !holds {
			return nil, lostUnless(done, r)
		}
		if len(a.Checkpoint) > 0 {
			var err error
			r, err = b.keepCheckpoint(ctx, tenant, r, a.LeaseEpoch, a.Checkpoint)
			if err != nil {
				return nil, err
			}
		}
		m := &jobstore.Move{Record: r, To: r.Run.Settle(kind).To(api.JobPending, b.store.NowMS())}
		m.To.Attempt = 0 // a round that went well is no failed attempt
		if a.Hold != "" {
			m.To.State = api.JobHeld
			m.Field, m.Value = jobstore.FieldHoldReason, a.Hold
		}
		return m, nil
	})
}

// lostUnless is nil where the same call was made before.
func lostUnless(done bool, r *jobstore.Record) error {
	if done {
		return nil
	}
	return leaseLost{r.Run}
}

// keepCheckpoint stores a checkpoint while the lease holds, and gives the job as it
// is then.
func (b *Broker) keepCheckpoint(ctx context.Context, tenant string, r *jobstore.Record, epoch int64, checkpoint json.RawMessage) (*jobstore.Record, error) {
	beat := api.JobHeartbeat{ID: r.Id, LeaseEpoch: epoch, Checkpoint: checkpoint}
	if _, err := b.beat(ctx, r.Queue(tenant), []*api.JobHeartbeat{&beat}); err != nil {
		return nil, err
	}
	fresh, err := b.jobs.Find(ctx, tenant, r.Id)
	if err != nil {
		return nil, err
	}
	if holds, _ := fresh.Holds(epoch, ""); !holds {
		return nil, leaseLost{fresh.Run} // it ran out meanwhile
	}
	return fresh, nil
}

// checkCount bounds how many jobs one call settles.
func checkCount(n int) error {
	if n > api.MaxSettleJobs {
		return api.InvalidField("jobs", "must be at most "+strconv.Itoa(api.MaxSettleJobs))
	}
	return nil
}

// settleBy changes one job and gives its outcome.
func (b *Broker) settleBy(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (api.JobOutcome, error) {
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
	return api.JobOutcome{ID: id, OK: true, State: r.Run.State}, nil
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
		out[i], err = b.settleBy(ctx, tenant, f.ID, func(r *jobstore.Record) (*jobstore.Move, error) {
			holds, done := r.Holds(f.LeaseEpoch, jobstore.SettledFail)
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
			return api.InvalidField(path, "must be from 0 to 30 days")
		}
	}
	if f.Fatal && (f.RetryAfterMS != nil || f.SnoozeMS != nil) || f.RetryAfterMS != nil && f.SnoozeMS != nil {
		return api.InvalidField("fatal", "stands alone, as do retry_after_ms and snooze_ms")
	}
	return nil
}

// failed decides what becomes of a job whose attempt failed.
func (b *Broker) failed(r *jobstore.Record, f *api.JobFail) (*jobstore.Move, error) {
	now := b.store.NowMS()
	m := &jobstore.Move{Record: r, To: r.Run.Settle(jobstore.SettledFail)}
	if f.SnoozeMS != nil {
		m.To.Attempt--
		m.To = m.To.To(api.JobRetrying, now+*f.SnoozeMS)
		return m, nil
	}
	var err error
	m.Failure, err = jobstore.FailureRecord(r.Run.Epoch, api.JobError{
		Attempt: r.Run.Attempt, Error: cut(f.Error, api.MaxJobErrorBytes), Stack: cut(f.Stack, api.MaxJobStackBytes), AtMS: now,
	})
	if err != nil {
		return nil, err
	}
	options := r.Spec.WithDefaults()
	reason := ""
	switch {
	case f.Fatal:
		reason = api.DeadFatal
	case r.Spec.ExpireAtMS > 0 && r.Spec.ExpireAtMS <= now:
		reason = api.DeadExpired
	case r.Run.Attempt >= options.MaxAttempts:
		reason = api.DeadAttempts
	}
	if reason != "" {
		return m.Dead(reason, now), nil
	}
	delay := options.Delay(r.Run.Attempt, b.random())
	if f.RetryAfterMS != nil {
		delay = time.Duration(*f.RetryAfterMS) * time.Millisecond
	}
	m.To = m.To.To(api.JobRetrying, now+delay.Milliseconds())
	return m, nil
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
