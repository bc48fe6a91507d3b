package cadenceworker

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"go.uber.org/cadence"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/zap"
)

const (
	// beatEvery is the minimum interval between two heartbeats of a task.
	beatEvery = 500 * time.Millisecond
	// beatTimeout bounds one call.
	beatTimeout = 10 * time.Second
	// endTimeout bounds the wait for an unfinished call at the end of a task.
	endTimeout = time.Second
	// silenceSlack is how much later than Cadence this side stops a task without heartbeats.
	silenceSlack = time.Second
)

// beats sends the heartbeats of a task. The function's reports are sent at most every
// beatEvery. The last one is always sent: if the function fails, the next attempt reads
// it. While the task waits for a slot, the details of the previous attempt are sent
// again, so that the task does not time out. For an activity with a heartbeat timeout of 30 s:
//
//	t       event                           call to Cadence          alive
//	0 s     the task waits for a slot                                0 s
//	10 s    a third of the timeout passed   previous details         10 s
//	20 s    another third                   previous details         20 s
//	26 s    the function starts             previous details         26 s
//	30 s    it reports A                    A                        30 s
//	30.2 s  it reports B                    (500 ms not passed)
//	30.3 s  it reports C, in place of B
//	30.5 s                                  C                        30.5 s
//	61.5 s  no report for 30 s + 1 s        none: the task is stopped with errSilent
//
// Cadence gave the attempt up at 60.5 s, and silenceSlack later the task is stopped, so that the
// next attempt does not run beside it. The heartbeat at 26 s is sent because more than an eighth
// of the timeout had passed since the last one.
//
// A call that fails keeps its report dirty, and is repeated after beatEvery. A call that succeeds
// may return the request to cancel the activity: that is the only way in which the cancellation
// of a workflow reaches the function. Without a heartbeat timeout no heartbeat is sent for a
// waiting task, and no task counts as silent.
type beats struct {
	t       *task
	timeout time.Duration // of the activity's heartbeats; 0: none

	mu      sync.Mutex
	waiting bool   // for a slot
	details []byte // the last report
	dirty   bool   // the last report is not sent yet
	closed  bool
	wake    chan struct{} // has a token if the sender has something to do
	ended   chan struct{} // closed when the sender has returned

	// calls is the context of the sender's calls; cancelCalls ends it.
	calls       context.Context
	cancelCalls context.CancelFunc
}

func newBeats(t *task) *beats {
	return &beats{
		t: t, timeout: t.info.HeartbeatTimeout, waiting: true, details: t.last,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// start starts the sender; end must follow.
func (b *beats) start() {
	b.calls, b.cancelCalls = context.WithCancel(b.t.w.b.s.life)
	go b.send()
}

// add stores a report of the function, to be sent. It never fails.
func (b *beats) add(details json.RawMessage) error {
	b.mu.Lock()
	b.details, b.dirty = append([]byte(nil), details...), true
	b.mu.Unlock()
	b.wakeSender()
	return nil
}

// started ends the heartbeats for a waiting task: from now on only the function's reports count.
func (b *beats) started() {
	b.mu.Lock()
	b.waiting = false
	b.mu.Unlock()
	b.wakeSender()
}

// end stops the sender and waits until it has returned. flush sends the last unsent
// details. A call that hangs is cancelled after endTimeout, so that it does not delay the
// response.
func (b *beats) end() {
	defer b.cancelCalls()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wakeSender()
	timer := time.AfterFunc(endTimeout, b.cancelCalls)
	defer timer.Stop()
	<-b.ended
}

func (b *beats) wakeSender() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// send is the loop of the sender.
func (b *beats) send() {
	defer close(b.ended)
	alive, sent := time.Now(), time.Time{} // time of the last recorded heartbeat; of the last call
	waited := true
	for {
		now := time.Now()
		b.mu.Lock()
		if waited && !b.waiting {
			waited = false
			// The function gets a full heartbeat timeout for its first report.
			if b.timeout > 0 && now.Sub(alive) > b.timeout/8 {
				b.dirty, sent = true, time.Time{}
			}
		}
		dirty, waiting, closed := b.dirty, b.waiting, b.closed
		b.mu.Unlock()
		if closed {
			return
		}
		next := b.idle(alive, waiting, now)
		if next <= 0 {
			if !waiting {
				b.t.stop(errSilent)
			}
			next = beatTimeout
		}
		due, gap := dirty, beatEvery
		if waiting && b.timeout > 0 {
			gap = b.timeout / 3
			due = now.Sub(alive) >= gap
		}
		if due && now.Sub(sent) >= gap {
			sent = now
			// The call must not outlast the time at which the task counts as silent.
			if b.record(b.calls, min(next, beatTimeout)) {
				alive = now
			}
			continue
		}
		if due {
			next = min(next, gap-now.Sub(sent))
		}
		b.wait(next)
	}
}

// idle returns the time until the next action without any report: the next heartbeat for
// a waiting task, or the stop of a silent one. 0 or less means that it is due. alive is the time
// of the last recorded heartbeat, or the start of the sender.
func (b *beats) idle(alive time.Time, waiting bool, now time.Time) time.Duration {
	switch {
	case b.timeout == 0:
		return time.Hour
	case waiting:
		return b.timeout/3 - now.Sub(alive)
	}
	return b.timeout + silenceSlack - now.Sub(alive)
}

// wait returns after d, or when the sender is woken.
func (b *beats) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.wake:
	}
}

// record sends the last report within limit and stops the task if the response requires
// it: with errCancelRequested or errGone. It reports whether the server recorded it.
func (b *beats) record(ctx context.Context, limit time.Duration) bool {
	b.mu.Lock()
	details := b.details
	b.dirty = false // under the same lock as the read, so that a later report is sent too
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var args []any
	if len(details) > 0 {
		args = []any{details} // the client encodes bytes unchanged
	}
	err := b.t.w.client.RecordActivityHeartbeat(ctx, b.t.info.TaskToken, args...)
	switch {
	case err == nil:
		b.sent(beatOK)
		return true
	case cadence.IsCanceledError(err):
		b.sent(beatCancel)
		b.t.stop(errCancelRequested)
		return true
	case gone(err):
		b.sent(beatGone)
		b.t.stop(errGone)
		return false
	}
	b.sent(beatError)
	b.t.logger.Warn("heartbeat not recorded", zap.Error(err))
	b.mu.Lock()
	b.dirty = true
	b.mu.Unlock()
	return false
}

// sent records the outcome of a call in the metrics and in the task's span.
func (b *beats) sent(outcome string) {
	b.t.w.b.s.metrics.heartbeats.WithLabelValues(outcome).Inc()
	b.t.traceBeat(outcome)
}

// flush sends the last report if it was not sent yet. Call end first.
func (b *beats) flush() {
	b.mu.Lock()
	dirty := b.dirty
	b.mu.Unlock()
	if dirty {
		b.record(b.t.w.b.s.life, beatTimeout)
	}
}

// gone reports whether err means that the server does not wait for the task any more.
func gone(err error) bool {
	var absent *shared.EntityNotExistsError
	var completed *shared.WorkflowExecutionAlreadyCompletedError
	var inactive *shared.DomainNotActiveError
	return errors.As(err, &absent) || errors.As(err, &completed) || errors.As(err, &inactive)
}
