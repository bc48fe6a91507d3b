package queue

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/queue/internal/account"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// messageLeaseLost is the message of CodeJobLeaseLost.
const messageLeaseLost = "the lease is no longer held: it expired, or the job was changed"

// maxHoldReason is the maximum length of the reason for which a job is held, in bytes.
const maxHoldReason = 1024

// Ack settles jobs whose attempts succeeded. Each has its own outcome, in order, whose code is
// CodeJobNotFound, CodeJobLeaseLost if its lease epoch does not hold the job, CodeJobResult,
// CodeBodyLimit or CodeInvalid. Repeating what the same epoch did before succeeds. After an
// error (CodeInvalid for more than api.MaxSettleJobs jobs, CodeTenantRate, CodeShuttingDown,
// CodeStoreUnavailable, ctx's) some jobs may have been settled: repeat the call.
//
// An ack completes the job, unless it has Continue or Hold. Those put the job back, as pending
// or held, with the checkpoint of the ack and with its attempts counted from 0 again: a job in
// several steps acks each of them, and only failures in a row use up its attempts.
func (b *Broker) Ack(ctx context.Context, tenant string, acks []api.JobAck) ([]api.JobOutcome, error) {
	if err := checkCount(len(acks)); err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(acks))
	ids, epochs, bytes, texts := make([]string, len(acks)), make([]int64, len(acks)), 0, 0
	for i := range acks {
		ids[i], epochs[i] = acks[i].ID, acks[i].LeaseEpoch
		bytes += len(acks[i].Result) + len(acks[i].Checkpoint) + len(acks[i].Trace)
		texts += len(acks[i].Hold)
	}
	if err := b.admission.Bytes(ctx, tenant, bytes); err != nil {
		return nil, err
	}
	most, err := b.admission.Texts(ctx, tenant, texts)
	if err != nil {
		return nil, err
	}
	summaries, err := b.jobs.Summaries(ctx, tenant, ids, epochs)
	if err != nil {
		return nil, err
	}
	budget := schema.NewBudget()
	// Completions of one queue share a script; putBack needs one for each job.
	items, positions := map[jobstore.Queue][]*jobstore.Completion{}, map[jobstore.Queue][]int{}
	for i := range acks {
		a := &acks[i]
		out[i].ID = a.ID
		known := summaries[a.ID]
		if known == nil {
			out[i] = refused(a.ID, jobstore.NotFound(a.ID))
			continue
		}
		if err := b.checkAck(a, known, budget); err != nil {
			out[i] = refused(a.ID, err)
			continue
		}
		if account.Changes(a, known) {
			out[i], err = b.ackAccounted(ctx, tenant, a, most)
			if err != nil {
				return nil, err
			}
			continue
		}
		if a.Continue || a.Hold != "" {
			out[i], err = b.putBack(ctx, tenant, a, most)
			if err != nil {
				return nil, err
			}
			continue
		}
		q := jobstore.Queue{Tenant: tenant, Namespace: known.Namespace, Name: known.Queue}
		items[q] = append(items[q], &jobstore.Completion{ID: a.ID, Epoch: a.LeaseEpoch, Result: string(a.Result), Unique: known.Unique, Run: known.Run})
		positions[q] = append(positions[q], i)
	}
	if err := b.completeAll(ctx, items, positions, out); err != nil {
		return nil, err
	}
	return out, nil
}

// completeAll completes jobs of several queues, and writes the outcome of each at its position in out.
func (b *Broker) completeAll(ctx context.Context, items map[jobstore.Queue][]*jobstore.Completion, positions map[jobstore.Queue][]int, out []api.JobOutcome) error {
	for q, list := range items {
		if err := b.acks.Do(ctx, q, list); err != nil {
			return err
		}
		for k, item := range list {
			if item.Err != nil {
				return item.Err
			}
			out[positions[q][k]] = b.settled(item.ID, item.Outcome, api.JobCompleted)
		}
	}
	return nil
}

// checkCount checks the number of jobs that one call settles.
func checkCount(n int) error {
	if n > api.MaxSettleJobs {
		return api.InvalidField("jobs", "must hold at most "+strconv.Itoa(api.MaxSettleJobs)+" jobs")
	}
	return nil
}

// checkAck checks the limits of an ack, and its result against the job's schema.
func (b *Broker) checkAck(a *api.JobAck, known *jobstore.Summary, budget *schema.Budget) error {
	if err := account.CheckAck(a, known); err != nil {
		return err
	}
	switch {
	case len(a.Result) > api.MaxJobResultBytes:
		return api.Errorf(api.CodeBodyLimit, "the result of job %s has %s, the limit is %s", a.ID, api.SizeText(len(a.Result)), api.SizeText(api.MaxJobResultBytes))
	case len(a.Checkpoint) > api.MaxCheckpointBytes:
		return api.Errorf(api.CodeBodyLimit, "the checkpoint of job %s has %s, the limit is %s", a.ID, api.SizeText(len(a.Checkpoint)), api.SizeText(api.MaxCheckpointBytes))
	case a.Continue && a.Hold != "":
		return api.InvalidField("hold", "cannot be combined with continue")
	case len(a.Hold) > maxHoldReason:
		return api.InvalidField("hold", "must have at most "+strconv.Itoa(maxHoldReason)+" bytes")
	case len(known.Schema) > 0 && !a.Continue && a.Hold == "":
		return b.results.CheckResult(known.Schema, a.Result, budget)
	}
	return nil
}

// putBack settles an ack with continue or hold: the job runs again, immediately or when it is
// approved. The reason of a hold is cut to most bytes.
func (b *Broker) putBack(ctx context.Context, tenant string, a *api.JobAck, most int) (api.JobOutcome, error) {
	kind := account.KindOf(a)
	return b.settleBy(ctx, tenant, a.ID, func(r *jobstore.Record) (*jobstore.Move, error) {
		return b.backMove(r, a, kind, most)
	})
}

// backMove returns the move of putBack.
func (b *Broker) backMove(r *jobstore.Record, a *api.JobAck, kind string, most int) (*jobstore.Move, error) {
	holds, done := r.Holds(a.LeaseEpoch, kind)
	if !holds {
		return nil, lostUnless(done, r)
	}
	m := &jobstore.Move{Record: r, To: r.Run.Settle(kind).To(api.JobPending, b.store.NowMS()), Checkpoint: string(a.Checkpoint)}
	m.To.Attempt = 0 // attempts count failures in a row
	if a.Hold != "" {
		m.To.State = api.JobHeld
		m.Field, m.Value = jobstore.FieldHoldReason, jobstore.Shorten(a.Hold, most)
	}
	return m, nil
}

// settleBy changes one job by decide and returns its outcome. Errors that concern only this
// job become part of the outcome; others are returned and end the call.
func (b *Broker) settleBy(ctx context.Context, tenant, id string, decide func(r *jobstore.Record) (*jobstore.Move, error)) (api.JobOutcome, error) {
	r, err := b.Change(ctx, tenant, id, decide)
	return b.outcomeOf(id, r, err)
}

// outcomeOf returns the outcome of a change that returned r and err, see settleBy.
func (b *Broker) outcomeOf(id string, r *jobstore.Record, err error) (api.JobOutcome, error) {
	if lost, ok := err.(leaseLost); ok { //nolint:errorlint // Change returns decide's error unwrapped
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

// leaseLost is the error of a decision whose lease epoch does not hold the job. run is the run
// that was found, whose state the outcome reports. It does not leave this file.
type leaseLost struct{ run jobstore.Run }

func (leaseLost) Error() string { return messageLeaseLost }

// lostUnless returns leaseLost, or nil if done, which marks a repeated call.
func lostUnless(done bool, r *jobstore.Record) error {
	if done {
		return nil
	}
	return leaseLost{r.Run}
}

// flushAcks completes the jobs of concurrent calls and stores an error in each item. It tries
// the short script first, which completes most jobs; the rest need the general one.
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

// complete completes the jobs that CompleteKnown did not, and handles the consequences of
// their ends.
func (b *Broker) complete(ctx context.Context, q jobstore.Queue, items []*jobstore.Completion) error {
	completed, follow, err := b.jobs.Complete(ctx, q, items)
	if err != nil {
		return err
	}
	b.metrics.completed(completed)
	b.follower.Follow(ctx, q, follow)
	return nil
}

// settled returns the outcome for a script's reply on a job: a known word, or the run of a job
// that the lease epoch does not hold. to is the state after success.
func (b *Broker) settled(id, word string, to api.JobState) api.JobOutcome {
	switch word {
	case jobstore.Moved, jobstore.MovedAfter, jobstore.Repeated, jobstore.RepeatedAfter:
		return api.JobOutcome{ID: id, OK: true, State: to}
	case jobstore.Missing:
		return refused(id, jobstore.NotFound(id))
	}
	b.metrics.lost.WithLabelValues("refused").Inc()
	lost := refused(id, api.Errorf(api.CodeJobLeaseLost, messageLeaseLost))
	if now, err := jobstore.ParseRun(word); err == nil {
		lost.State = now.State
	}
	return lost
}

// refused returns the outcome of a job whose settlement failed with err.
func refused(id string, err error) api.JobOutcome {
	return api.JobOutcome{ID: id, Code: api.ErrorCode(err), Message: jobstore.MessageOf(err)}
}

// Fail settles jobs whose attempts failed: they are retried after their backoff, or dead if no
// attempt is left. Outcomes are as of Ack, errors too, but for CodeTenantRate: beyond the quota of
// bytes, errors and stacks are cut to 256 bytes each. The first of these that applies decides:
//
//	SnoozeMS is set           retrying, due after SnoozeMS; no attempt and no error is counted
//	Fatal                     dead, api.DeadFatal
//	the job has expired       dead, api.DeadExpired
//	Attempt >= MaxAttempts    dead, api.DeadAttempts
//	RetryAfterMS is set       retrying, due after RetryAfterMS
//	otherwise                 retrying, due after the backoff of the attempt, with jitter
func (b *Broker) Fail(ctx context.Context, tenant string, fails []api.JobFail) ([]api.JobOutcome, error) {
	if err := checkCount(len(fails)); err != nil {
		return nil, err
	}
	bytes := 0
	for i := range fails {
		if fails[i].SnoozeMS == nil {
			bytes += min(len(fails[i].Error), api.MaxJobErrorBytes) + min(len(fails[i].Stack), api.MaxJobStackBytes)
		}
	}
	most, err := b.admission.Texts(ctx, tenant, bytes)
	if err != nil {
		return nil, err
	}
	out := make([]api.JobOutcome, len(fails))
	for i := range fails {
		f := &fails[i]
		if err := cmp.Or(jobstore.CheckFail(f), account.CheckUsage(f.Usage, false)); err != nil {
			out[i] = refused(f.ID, err)
			continue
		}
		out[i], err = b.failOne(ctx, tenant, f, most)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// failOne settles one job whose attempt failed.
func (b *Broker) failOne(ctx context.Context, tenant string, f *api.JobFail, most int) (api.JobOutcome, error) {
	decide := func(r *jobstore.Record) (*jobstore.Move, error) {
		holds, done := r.Holds(f.LeaseEpoch, jobstore.SettledFail)
		if !holds {
			return nil, lostUnless(done, r)
		}
		if r.Spec.Agent != nil && r.Ledger == nil {
			return nil, errNeedsLedger
		}
		return r.Failed(f, most, b.store.NowMS(), b.random()), nil
	}
	if len(f.Usage) == 0 {
		out, err := b.settleBy(ctx, tenant, f.ID, decide)
		if !errors.Is(err, errNeedsLedger) {
			return out, err
		}
	}
	return b.failAccounted(ctx, tenant, f, decide)
}
