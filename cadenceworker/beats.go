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
}

func newBeats(t *task) *beats {
	return &beats{
		t: t, timeout: t.info.HeartbeatTimeout, waiting: true, details: t.last,
		wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

// start begins to send.
func (b *beats) start() { go b.send() }

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
func (b *beats) end() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.poke()
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
		details, dirty, waiting, closed := b.details, b.dirty, b.waiting, b.closed
		b.mu.Unlock()
		if closed {
			return
		}
		next := b.idle(alive, waiting, now)
		due, gap := dirty, beatEvery
		if waiting && b.timeout > 0 {
			gap = b.timeout / 3
			due = now.Sub(alive) >= gap
		}
		switch {
		case due && now.Sub(sent) >= gap:
			sent = now
			if b.record(details) {
				alive = now
			}
			continue
		case due:
			next = gap - now.Sub(sent)
		case !waiting && next <= 0:
			b.t.stop(errSilent)
			next = beatTimeout
		}
		b.rest(next)
	}
}

// idle is after how long something is due where nobody reports: the next sign of life
// of a task that waits, or the end of one that is silent.
func (b *beats) idle(alive time.Time, waiting bool, now time.Time) time.Duration {
	switch {
	case b.timeout == 0:
		return time.Hour
	case waiting:
		return max(0, b.timeout/3-now.Sub(alive))
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

// record sends one heartbeat, and stops the task where the answer says so. It says
// whether the server has it.
func (b *beats) record(details []byte) bool {
	b.mu.Lock()
	b.dirty = false
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(b.t.w.b.s.life, beatTimeout)
	defer cancel()
	var args []any
	if len(details) > 0 {
		args = []any{details} // bytes go as they are
	}
	err := b.t.w.client.RecordActivityHeartbeat(ctx, b.t.info.TaskToken, args...)
	counts := b.t.w.b.s.metrics.heartbeats
	switch {
	case err == nil:
		counts.WithLabelValues(beatOK).Inc()
		return true
	case cadence.IsCanceledError(err):
		counts.WithLabelValues(beatCancel).Inc()
		b.t.stop(errCancelRequested)
		return true
	case gone(err):
		counts.WithLabelValues(beatGone).Inc()
		b.t.stop(errGone)
		return false
	}
	counts.WithLabelValues(beatError).Inc()
	b.t.logger.Warn("a heartbeat was not recorded", zap.Error(err))
	b.mu.Lock()
	b.dirty = true
	b.mu.Unlock()
	return false
}

// flush sends what the function reported last, if that is not there yet; end comes
// before it.
func (b *beats) flush() {
	b.mu.Lock()
	details, dirty := b.details, b.dirty
	b.mu.Unlock()
	if dirty {
		b.record(details)
	}
}

// gone says whether err is that the server does not wait for the task any more.
func gone(err error) bool {
	var absent *shared.EntityNotExistsError
	var completed *shared.WorkflowExecutionAlreadyCompletedError
	var inactive *shared.DomainNotActiveError
	return errors.As(err, &absent) || errors.As(err, &completed) || errors.As(err, &inactive)
}
