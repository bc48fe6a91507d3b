package feed

import "time"

// budget limits commands to a rate. A round that sends many of them is followed by a pause, so that the
// rate holds over some time.
type budget struct {
	debt float64   // commands that were sent too early
	at   time.Time // when debt was computed
}

// spend notes commands that were sent.
func (b *budget) spend(commands int) { b.debt += float64(commands) }

// wait returns how long to wait from now on until the next command may be sent, 0 for not at all.
func (b *budget) wait(now time.Time, rate float64) time.Duration {
	if !b.at.IsZero() {
		b.debt = max(0, b.debt-now.Sub(b.at).Seconds()*rate)
	}
	b.at = now
	return time.Duration(b.debt / rate * float64(time.Second))
}
