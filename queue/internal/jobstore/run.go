package jobstore

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// Run is what of a job changes with every step, stored as one string of six
// words: state, attempt, epoch, at, settled, worker; and a seventh, follows, if
// something follows its end. It has a key of its own, so that a script reads and
// writes those of all its jobs by one command each.
type Run struct {
	State   api.JobState
	Attempt int   // runs begun, from 1
	Epoch   int64 // of the lease; grows with every lease
	// At is when the lease ends (active), the job is due (scheduled, retrying),
	// it ended (terminal states), or since when it is so; in milliseconds.
	At int64
	// settled is the last epoch that was settled and how (a, f, c, h), by which
	// a repeated call is recognised; "-" for none.
	settled string
	Worker  string // the last one, "-" for none
	follows string // what happens when the job has ended: followsEnd, followsFailure, or "" for nothing
}

// The kinds of settling.
const (
	settledAck      = "a"
	SettledFail     = "f"
	SettledContinue = "c"
	SettledHold     = "h"
)

const none = "-"

func (r Run) String() string {
	b := make([]byte, 0, 96)
	b = append(append(b, r.State...), ' ')
	b = append(strconv.AppendInt(b, int64(r.Attempt), 10), ' ')
	b = append(strconv.AppendInt(b, r.Epoch, 10), ' ')
	b = append(strconv.AppendInt(b, r.At, 10), ' ')
	b = append(append(b, r.settled...), ' ')
	b = append(b, r.Worker...)
	if r.follows != "" {
		b = append(append(b, ' '), r.follows...)
	}
	return string(b)
}

func ParseRun(s string) (Run, error) {
	var words [7]string
	n, rest, more := 0, s, true
	for ; more && n < len(words); n++ {
		words[n], rest, more = strings.Cut(rest, " ")
	}
	if more || n < 6 {
		return Run{}, fmt.Errorf("queue: a job's run is %q", s)
	}
	attempt, err1 := strconv.Atoi(words[1])
	epoch, err2 := strconv.ParseInt(words[2], 10, 64)
	at, err3 := strconv.ParseInt(words[3], 10, 64)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return Run{}, fmt.Errorf("queue: a job's run is %q: %w", s, err)
	}
	return Run{api.JobState(words[0]), attempt, epoch, at, words[4], words[5], words[6]}, nil
}

// Settle is r after its lease was settled in the given way.
func (r Run) Settle(kind string) Run {
	r.settled = strconv.FormatInt(r.Epoch, 10) + kind
	return r
}

// settledBy says whether epoch was settled in the given way before.
func (r Run) settledBy(epoch int64, kind string) bool {
	return r.settled == strconv.FormatInt(epoch, 10)+kind
}

// To is r in another state since, or due at, the given time.
func (r Run) To(state api.JobState, at int64) Run {
	r.State, r.At = state, at
	return r
}

// What is to happen when a job has ended.
const (
	followsEnd     = "1" // something, however it ended
	followsFailure = "2" // something, unless it completed
)

// NewRun returns the run with which the job of spec is stored when it is made at now,
// in milliseconds.
func NewRun(spec *api.JobSpec, now int64) Run {
	r := Run{At: now, settled: none, Worker: none, follows: followsOf(spec)}
	switch {
	case len(spec.DependsOn) > 0:
		r.State = api.JobWaiting
	case spec.Hold:
		r.State = api.JobHeld
	case spec.RunAtMS > now:
		r.State, r.At = api.JobScheduled, spec.RunAtMS
	default:
		r.State = api.JobPending
	}
	return r
}

// followsOf reports whether the end of spec's job has consequences.
func followsOf(spec *api.JobSpec) string {
	switch of := spec.Activation; {
	case spec.Chain != nil || spec.ChainID != "" || spec.BatchID != "" || of != nil && of.OnSuccess != nil,
		spec.Schedule != nil && spec.Schedule.Marked:
		return followsEnd
	case spec.Target != nil:
		return followsFailure // its worker has ended the activation where it completes
	}
	return ""
}
