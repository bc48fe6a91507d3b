package duework

import "sync/atomic"

const (
	// IdleMS is the longest time between two readings of the due sets, in milliseconds. It
	// bounds how late the work is found that a replica left when it died.
	IdleMS = 5_000
	// RestMS is the shortest time between two readings, in milliseconds.
	RestMS = 100
)

// Alarm makes the loop of this process read the due sets before its time. It is safe for
// concurrent use.
type Alarm struct {
	loops atomic.Int64
	token chan struct{}
}

// NewAlarm returns an Alarm that no loop listens to.
func NewAlarm() *Alarm { return &Alarm{token: make(chan struct{}, 1)} }

// Listen returns a channel that receives after calls of Ring, until stop is called. Several
// calls of Ring can be one token, and a token may be from before Listen: it means only that
// the due sets should be read now.
func (a *Alarm) Listen() (rung <-chan struct{}, stop func()) {
	a.loops.Add(1)
	return a.token, func() { a.loops.Add(-1) }
}

// Ring wakes a loop of this process, and reports whether there is one; otherwise the caller
// notifies other processes. It does not block.
func (a *Alarm) Ring() bool {
	select {
	case a.token <- struct{}{}:
	default: // the loop has not taken the last one yet
	}
	return a.loops.Load() > 0
}
