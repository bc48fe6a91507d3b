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
	// beatEvery is how often a task's heartbeats are sent at most.
	beatEvery = 500 * time.Millisecond
	// beatTimeout bounds one call.
	beatTimeout = 10 * time.Second
	// endPatience is how long the end waits for a call that is under way.
	endPatience = time.Second
	// silenceSlack is how much later than Cadence this side ends a task that is silent.
	silenceSlack = time.Second
)

// beats are the heartbeats of a task. What the function reports is sent at most twice
// a second, the last of it always: when the function has failed, the next attempt
// gets it. While the task waits for a place, what the attempt before recorded is
// repeated, since nobody else can say that it lives.
type beats struct {
	t       *task
	timeout time.Duration // of the activity's heartbeats; 0: none

	mu      sync.Mutex
	waiting bool   // for a place
	details []byte // the latest
	dirty   bool   // not sent yet
	closed  bool
	wake    chan struct{} // holds a token where there is something to do
	ended   chan struct{} // closed when the sender has returned

	// calls ends the sender's calls.
	calls context.Context
	cut   context.CancelFunc
}

func newBeats(t *task) *beats {
	return &beats{
		t: t, timeout: t.info.HeartbeatTimeout, waiting: true, details: t.last,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// start begins to send; end must follow.
func (b *beats) start() {
	b.calls, b.cut = context.WithCancel(b.t.w.b.s.life)
	go b.send()
}

// add takes what the function reports.
func (b *beats) add(details json.RawMessage) error {
	b.mu.Lock()
	b.details, b.dirty = append([]byte(nil), details...), true
	b.mu.Unlock()
	b.poke()
	return nil
}

// started notes that the function begins: from now on it speaks for itself.
func (b *beats) started() {
	b.mu.Lock()
	b.waiting = false
	b.mu.Unlock()
	b.poke()
}

// end sends no more, and returns when nothing is under way. What is left is flush's.
// A call that hangs does not keep the task's answer back.
func (b *beats) end() {
	defer b.cut()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.poke()
	patience := time.AfterFunc(endPatience, b.cut)
	defer patience.Stop()
	<-b.ended
}

func (b *beats) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// send is the loop that sends, until end.
func (b *beats) send() {
	defer close(b.ended)
	alive, sent := time.Now(), time.Time{} // when the server last heard of it; the last call
	waited := true
	for {
		now := time.Now()
		b.mu.Lock()
		if waited && !b.waiting {
			waited = false
			// The function gets a whole heartbeat timeout.
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
			// Not past the moment at which the task counts as silent.
			if b.record(b.calls, min(next, beatTimeout)) {
				alive = now
			}
			continue
		}
		if due {
			next = min(next, gap-now.Sub(sent))
		}
		b.rest(next)
	}
}

// idle is after how long something is due where nothing gets through: the next sign
// of life of a task that waits, or the end of one that is silent.
func (b *beats) idle(alive time.Time, waiting bool, now time.Time) time.Duration {
	switch {
	case b.timeout == 0:
		return time.Hour
	case waiting:
		return b.timeout/3 - now.Sub(alive)
	}
	return b.timeout + silenceSlack - now.Sub(alive)
}

func (b *beats) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.wake:
	}
}

// record sends the latest details within limit, and stops the task where the answer
// says so. It says whether the server has them.
func (b *beats) record(ctx context.Context, limit time.Duration) bool {
	b.mu.Lock()
	details := b.details
	b.dirty = false // in one with the reading: what comes from now on is sent, too
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var args []any
	if len(details) > 0 {
		args = []any{details} // bytes go as they are
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
	b.t.logger.Warn("a heartbeat was not recorded", zap.Error(err))
	b.mu.Lock()
	b.dirty = true
	b.mu.Unlock()
	return false
}

// sent counts a call, and tells the task's span.
func (b *beats) sent(outcome string) {
	b.t.w.b.s.metrics.heartbeats.WithLabelValues(outcome).Inc()
	b.t.traceBeat(outcome)
}

// flush sends what the function reported last, if that is not there yet; end comes
// before it.
func (b *beats) flush() {
	b.mu.Lock()
	dirty := b.dirty
	b.mu.Unlock()
	if dirty {
		b.record(b.t.w.b.s.life, beatTimeout)
	}
}

// gone says whether err is that the server does not wait for the task any more.
func gone(err error) bool {
	var absent *shared.EntityNotExistsError
	var completed *shared.WorkflowExecutionAlreadyCompletedError
	var inactive *shared.DomainNotActiveError
	return errors.As(err, &absent) || errors.As(err, &completed) || errors.As(err, &inactive)
}
