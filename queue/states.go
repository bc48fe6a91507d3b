package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// transitions is the whole state machine: from each state, where a job can go.
// What an operator may bring back (dead, cancelled) goes to pending.
var transitions = map[api.JobState][]api.JobState{
	api.JobWaiting:   {api.JobPending, api.JobScheduled, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobScheduled: {api.JobPending, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobHeld:      {api.JobPending, api.JobScheduled, api.JobDead, api.JobCancelled},
	api.JobPending:   {api.JobActive, api.JobScheduled, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobActive:    {api.JobCompleted, api.JobPending, api.JobRetrying, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobRetrying:  {api.JobPending, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobDead:      {api.JobPending},
	api.JobCancelled: {api.JobPending},
	api.JobCompleted: {},
}

// allowed says whether a job may go from one state to the other.
func allowed(from, to api.JobState) bool { return slices.Contains(transitions[from], to) }

// run is what of a job changes with every step, stored as one string of six
// words: state, attempt, epoch, at, settled, worker; and a seventh, follows, if
// something follows its end. It has a key of its own, so that a script reads and
// writes those of all its jobs by one command each.
type run struct {
	state   api.JobState
	attempt int   // runs begun, from 1
	epoch   int64 // of the lease; grows with every lease
	// at is when the lease ends (active), the job is due (scheduled, retrying),
	// it ended (terminal states), or since when it is so; in milliseconds.
	at int64
	// settled is the last epoch that was settled and how (a, f, c, h), by which
	// a repeated call is recognised; "-" for none.
	settled string
	worker  string // the last one, "-" for none
	follows string // what happens when the job has ended: followsEnd, followsFailure, or "" for nothing
}

// The kinds of settling.
const (
	settledAck      = "a"
	settledFail     = "f"
	settledContinue = "c"
	settledHold     = "h"
)

const none = "-"

func (r run) String() string {
	b := make([]byte, 0, 96)
	b = append(append(b, r.state...), ' ')
	b = append(strconv.AppendInt(b, int64(r.attempt), 10), ' ')
	b = append(strconv.AppendInt(b, r.epoch, 10), ' ')
	b = append(strconv.AppendInt(b, r.at, 10), ' ')
	b = append(append(b, r.settled...), ' ')
	b = append(b, r.worker...)
	if r.follows != "" {
		b = append(append(b, ' '), r.follows...)
	}
	return string(b)
}

func parseRun(s string) (run, error) {
	var words [7]string
	n, rest, more := 0, s, true
	for ; more && n < len(words); n++ {
		words[n], rest, more = strings.Cut(rest, " ")
	}
	if more || n < 6 {
		return run{}, fmt.Errorf("queue: a job's run is %q", s)
	}
	attempt, err1 := strconv.Atoi(words[1])
	epoch, err2 := strconv.ParseInt(words[2], 10, 64)
	at, err3 := strconv.ParseInt(words[3], 10, 64)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return run{}, fmt.Errorf("queue: a job's run is %q: %w", s, err)
	}
	return run{api.JobState(words[0]), attempt, epoch, at, words[4], words[5], words[6]}, nil
}

// settle is r after its lease was settled in the given way.
func (r run) settle(kind string) run {
	r.settled = strconv.FormatInt(r.epoch, 10) + kind
	return r
}

// settledBy says whether epoch was settled in the given way before.
func (r run) settledBy(epoch int64, kind string) bool {
	return r.settled == strconv.FormatInt(epoch, 10)+kind
}

// to is r in another state since, or due at, the given time.
func (r run) to(state api.JobState, at int64) run {
	r.state, r.at = state, at
	return r
}
