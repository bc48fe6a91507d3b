package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
)

// Job is a job that a handler runs. Its methods are safe for concurrent use. Progress and
// Keep are reports: they return immediately, and are sent with the next heartbeat. Return,
// Continue and Hold select how the job is settled once the handler returns nil.
type Job struct {
	api.FetchedJob

	mu         sync.Mutex
	cancel     context.CancelCauseFunc // of the handler's context, once it runs
	lost       error                   // why the lease was lost
	progress   *api.JobProgress        // not sent yet
	checkpoint json.RawMessage         // not sent yet
	latest     json.RawMessage         // the last argument of Keep
	kept       json.RawMessage         // the last checkpoint that the queue has taken
	result     json.RawMessage
	goOn       bool
	hold       string
	trace      json.RawMessage
	usage      []agent.Usage // not confirmed yet
	sequence   int64         // of the last entry of usage
}

// Decode reads the payload into v. Its error is Fatal: a payload that cannot be read now
// cannot be read by a retry either.
func (j *Job) Decode(v any) error {
	if err := json.Unmarshal(j.Payload, v); err != nil {
		return Fatal(fmt.Errorf("the payload of job %s: %w", j.ID, err))
	}
	return nil
}

// Progress reports the progress of the job with the next heartbeat; only the last report in
// between is sent. A message over api.MaxProgressMessage bytes is truncated.
func (j *Job) Progress(current, total int64, message string) {
	if len(message) > api.MaxProgressMessage {
		message = strings.ToValidUTF8(message[:api.MaxProgressMessage], "")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = &api.JobProgress{Current: current, Total: total, Message: message}
}

// Keep stores v, as JSON of at most api.MaxCheckpointBytes, as the checkpoint from which a
// later attempt may continue. It is sent with the next heartbeat, or before the job fails
// or is returned, and the next attempt finds it in Checkpoint. A killed process loses the
// checkpoints since its last heartbeat. It returns an error if v cannot be encoded or is too
// large.
//
//	var done int
//	if len(j.Checkpoint) > 0 {
//		err := json.Unmarshal(j.Checkpoint, &done)
//		…
//	}
//	for ; done < len(rows); done++ {
//		…
//		err := j.Keep(done + 1)
//		…
//	}
func (j *Job) Keep(v any) error {
	raw, err := marshal("checkpoint", v, api.MaxCheckpointBytes)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.checkpoint, j.latest = raw, raw
	return nil
}

// Return sets the result of the job, as JSON of at most api.MaxJobResultBytes. It is stored
// only if the job completes.
func (j *Job) Return(v any) error {
	raw, err := marshal("result", v, api.MaxJobResultBytes)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.result = raw
	return nil
}

// marshal encodes v and returns an error if the queue would reject it.
func marshal(what string, v any, limit int) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err == nil && len(raw) > limit {
		err = fmt.Errorf("%d bytes, over %d", len(raw), limit)
	}
	if err != nil {
		return nil, fmt.Errorf("worker: %s: %w", what, err)
	}
	return raw, nil
}

// Continue makes the job pending again with its checkpoint, instead of completed, when the
// handler returns nil. A long job can so run in parts, between which others run.
func (j *Job) Continue() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.goOn = true
}

// Hold holds the job for approval, instead of completing it, when the handler returns nil.
// The approved job runs again, with its checkpoint. Hold wins over Continue; an empty reason
// has no effect.
func (j *Job) Hold(reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hold = reason
}

// Trace sets the trace that is kept with the iteration that Continue or Hold ends, as JSON of at most
// agent.MaxTraceBytes. Only jobs with agent have iterations: the attempt of another job fails.
func (j *Job) Trace(v any) error {
	raw, err := marshal("trace", v, agent.MaxTraceBytes)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trace = raw
	return nil
}

// Spend reports the usage of a call of a model. It returns immediately: the entry is sent with the next
// heartbeat or with the settlement, again until one of them succeeds, and is counted once. Spend sets
// Seq. A killed process loses the entries since its last heartbeat. It returns an error for an entry
// that the queue would refuse.
func (j *Job) Spend(u agent.Usage) error {
	u.Seq = 0
	if path, rule := agent.CheckReport([]agent.Usage{u}, false); rule != "" {
		return fmt.Errorf("worker: %s %s", path, rule)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sequence++
	u.Seq = j.sequence
	j.usage = append(j.usage, u)
	return nil
}

// unconfirmed returns the first entries of usage that one call may have. j.mu is held.
func (j *Job) unconfirmed() []agent.Usage {
	return slices.Clone(j.usage[:min(len(j.usage), agent.MaxEntries)])
}

// report returns the usage that the settlement has, and the heartbeats with those before, for which it
// has no room.
func (j *Job) report(lease time.Duration) (before []api.JobHeartbeat, last []agent.Usage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for part := range slices.Chunk(slices.Clone(j.usage), agent.MaxEntries) {
		if last != nil {
			before = append(before, api.JobHeartbeat{ID: j.ID, LeaseEpoch: j.LeaseEpoch, LeaseMS: lease.Milliseconds(), Usage: last})
		}
		last = part
	}
	return before, last
}

// begin sets the cancel function of the handler's context. It returns false if the lease
// is lost already, so that the handler is not called.
func (j *Job) begin(cancel context.CancelCauseFunc) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cancel = cancel
	return j.lost == nil
}

// lose ends the handler's context after the lease was lost.
func (j *Job) lose(cause error) {
	j.mu.Lock()
	j.lost = cause
	cancel := j.cancel
	j.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

func (j *Job) isLost() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost != nil
}

// heartbeat returns the next heartbeat, with the progress and checkpoint that are not sent
// yet. It takes them from j; unsent puts them back.
func (j *Job) heartbeat(lease time.Duration) api.JobHeartbeat {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := api.JobHeartbeat{
		ID: j.ID, LeaseEpoch: j.LeaseEpoch, LeaseMS: lease.Milliseconds(), Progress: j.progress, Checkpoint: j.checkpoint, Usage: j.unconfirmed(),
	}
	j.progress, j.checkpoint = nil, nil
	return h
}

// unsent restores the progress and checkpoint of a heartbeat that failed, unless there are
// newer ones.
func (j *Job) unsent(h api.JobHeartbeat) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.progress == nil {
		j.progress = h.Progress
	}
	if j.checkpoint == nil {
		j.checkpoint = h.Checkpoint
	}
}

// sent records that the queue has accepted h.
func (j *Job) sent(h api.JobHeartbeat) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h.Checkpoint != nil {
		j.kept = h.Checkpoint
	}
	if len(h.Usage) > 0 {
		last := h.Usage[len(h.Usage)-1].Seq
		j.usage = slices.DeleteFunc(j.usage, func(u agent.Usage) bool { return u.Seq <= last })
	}
}

// unsaved returns the heartbeat with the last checkpoint that must be sent before the job is
// settled, nil if the queue has it. A fail has no field for a checkpoint, an ack has one.
func (j *Job) unsaved(lease time.Duration) *api.JobHeartbeat {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.latest == nil || bytes.Equal(j.latest, j.kept) {
		return nil
	}
	return &api.JobHeartbeat{ID: j.ID, LeaseEpoch: j.LeaseEpoch, LeaseMS: lease.Milliseconds(), Progress: j.progress, Checkpoint: j.latest}
}

// outcome returns the settlement for the handler's result.
func (j *Job) outcome(err error, lease time.Duration) settlement {
	if err != nil {
		return j.failed(err, lease)
	}
	beats, usage := j.report(lease)
	j.mu.Lock()
	defer j.mu.Unlock()
	ack := &api.JobAck{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Result: j.result, Trace: j.trace, Usage: usage}
	if j.goOn || j.hold != "" {
		ack.Result, ack.Hold, ack.Continue, ack.Checkpoint = nil, j.hold, j.hold == "", j.latest
	}
	return settlement{job: j, ack: ack, beats: beats}
}

// failed returns the settlement for an attempt that failed with err.
func (j *Job) failed(err error, lease time.Duration) settlement {
	fail := &api.JobFail{ID: j.ID, LeaseEpoch: j.LeaseEpoch, Error: err.Error()}
	var crash *panicError
	if errors.As(err, &crash) {
		fail.Stack = crash.stack
	}
	var how *failure
	if errors.As(err, &how) {
		fail.Fatal, fail.RetryAfterMS, fail.SnoozeMS = how.fatal, how.retryAfterMS, how.snoozeMS
		if how.provider != nil && j.Provider != "" {
			e := *how.provider
			e.Provider, fail.ProviderError = j.Provider, &e
		}
	}
	return j.failing(fail, lease)
}

// failing returns the settlement by fail, before which the last checkpoint is sent.
func (j *Job) failing(fail *api.JobFail, lease time.Duration) settlement {
	how := settlement{job: j, fail: fail}
	how.beats, fail.Usage = j.report(lease)
	if beat := j.unsaved(lease); beat != nil {
		how.beats = append(how.beats, *beat)
	}
	return how
}

// failure is an error with the way in which the job continues. At most one of its fields is
// set.
type failure struct {
	error
	fatal        bool
	retryAfterMS *int64
	snoozeMS     *int64
	provider     *agent.ProviderError
}

// Unwrap returns the wrapped error.
func (f *failure) Unwrap() error { return f.error }

// Fatal wraps err so that the job is not retried: it is dead, with the reason
// api.DeadFatal. Like RetryAfter it may itself be wrapped; the outermost of them counts.
func Fatal(err error) error { return &failure{error: err, fatal: true} }

// RetryAfter wraps err so that the job is retried after d (at most 30 days) instead of its
// backoff.
func RetryAfter(err error, d time.Duration) error {
	ms := delayMS(d)
	return &failure{error: err, retryAfterMS: &ms}
}

// Snooze returns an error that retries the job after d (at most 30 days) without counting
// the attempt.
func Snooze(d time.Duration) error {
	ms := delayMS(d)
	return &failure{error: fmt.Errorf("snoozed for %s", d), snoozeMS: &ms}
}

// ProviderFailed wraps err, a failure of the provider of the job: kind is one of the kinds of package
// agent, and after is how long the provider asks to wait. The job is retried at another target of its
// routing, without counting the attempt. For a job without a provider, it is err.
func ProviderFailed(err error, kind string, after time.Duration) error {
	return &failure{error: err, provider: &agent.ProviderError{Kind: kind, RetryAfterMS: min(delayMS(after), agent.MaxRetryAfterMS)}}
}

func delayMS(d time.Duration) int64 { return min(max(0, d.Milliseconds()), api.MaxDelayMS) }

// panicError is the panic of a handler.
type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func panicked(p any) error { return &panicError{p, string(debug.Stack())} }
