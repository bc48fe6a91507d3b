package jobstore

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// Run is the part of a job that changes with every step. It is stored under a key of its
// own, so that a script reads or writes the runs of all its jobs by one command, as one
// string of six words: state, attempt, epoch, at, settled, worker; and a seventh, follows,
// if the end of the job has consequences. For example,
//
//	active 1 3 1700000030000 2c w7@1700000000000 1
//
// is a job that w7 holds under epoch 3 since 1700000000000 until 1700000030000. Epoch 2 was settled by an ack with
// continue, after which attempts are counted from 1 again. The end of the job has consequences.
// lua/include/run.lua is the same format in Lua.
//
// Scripts compare the whole string. A decision that was made on an older run is therefore
// refused, no matter which word has changed since: the state, the epoch, or the end of a
// lease that a heartbeat extended.
type Run struct {
	State api.JobState
	// Attempt is how many attempts have started. An ack with continue or hold resets it to
	// 0, and a snooze takes its attempt back. A retry by an operator leaves it, and raises
	// the maximum of the spec if no attempt is left.
	Attempt int
	Epoch   int64 // of the last lease; it increases with every lease and is the fencing token
	// At is a Unix time in milliseconds: when the lease ends (active), when the job is
	// due (scheduled, retrying), when it ended (terminal states), or when it entered
	// its state (all others).
	At int64
	// settled is the last epoch that was settled, followed by how (a, f, c, h, p, d), for example
	// "3f". It identifies repeated calls: a worker whose reply was lost sends its call again,
	// and the job may by then be pending or have a new lease. "-" for none.
	settled string
	// Worker is the last worker, "-" for none. Started is the Unix time in milliseconds at
	// which it was given the job, stored behind the worker's id and an "@"; 0 in the runs of
	// older releases, which have none. Host is the host that the worker named, see HostOf, stored
	// behind the time and a "/", as in w7@1700000000000/mail-1; "" for none.
	Worker  string
	Started int64
	Host    string
	follows string // when the job's end has consequences: followsEnd, followsFailure, or "" for never
}

// The ways to settle a lease.
const (
	SettledAck      = "a"
	SettledFail     = "f"
	SettledContinue = "c"
	SettledHold     = "h"
	// SettledApproval is a hold that the run of a function asked for: a decision on it continues
	// the run, also a rejection. SettledDecision follows it.
	SettledApproval = "p"
	SettledDecision = "d"
)

// none stands for an empty word of a run.
const none = "-"

// String returns r as it is stored.
func (r Run) String() string {
	b := make([]byte, 0, 96)
	b = append(append(b, r.State...), ' ')
	b = append(strconv.AppendInt(b, int64(r.Attempt), 10), ' ')
	b = append(strconv.AppendInt(b, r.Epoch, 10), ' ')
	b = append(strconv.AppendInt(b, r.At, 10), ' ')
	b = append(append(b, r.settled...), ' ')
	b = append(b, r.Worker...)
	if r.Started > 0 {
		b = strconv.AppendInt(append(b, '@'), r.Started, 10)
		if r.Host != "" {
			b = append(append(b, '/'), r.Host...)
		}
	}
	if r.follows != "" {
		b = append(append(b, ' '), r.follows...)
	}
	return string(b)
}

// ParseRun parses a stored run. It does not check that the state exists.
func ParseRun(s string) (Run, error) {
	var words [7]string
	n, rest, more := 0, s, true
	for ; more && n < len(words); n++ {
		words[n], rest, more = strings.Cut(rest, " ")
	}
	if more || n < 6 {
		return Run{}, fmt.Errorf("queue: malformed run %q", s)
	}
	attempt, err1 := strconv.Atoi(words[1])
	epoch, err2 := strconv.ParseInt(words[2], 10, 64)
	at, err3 := strconv.ParseInt(words[3], 10, 64)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return Run{}, fmt.Errorf("queue: malformed run %q: %w", s, err)
	}
	r := Run{State: api.JobState(words[0]), Attempt: attempt, Epoch: epoch, At: at, settled: words[4], follows: words[6]}
	r.Worker, r.Started, r.Host = parseWorker(words[5])
	return r, nil
}

// parseWorker splits the sixth word of a run. An id may contain an "@", so the last one counts. A
// word whose last part is not as String writes it is the id of a worker alone.
func parseWorker(word string) (worker string, started int64, host string) {
	at := strings.LastIndexByte(word, '@')
	if at <= 0 {
		return word, 0, ""
	}
	text, host, hosted := strings.Cut(word[at+1:], "/")
	started, err := strconv.ParseInt(text, 10, 64)
	if err != nil || started <= 0 || strconv.FormatInt(started, 10) != text || hosted && host == "" {
		return word, 0, ""
	}
	return word[:at], started, host
}

// maxHost is the maximum length of a host in a run, in bytes: that of host names on Linux.
const maxHost = 64

// HostOf returns the first 64 bytes of a host name, as runs have it. It returns "" if name has other
// characters than letters, digits and "-._:".
func HostOf(name string) string {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-._:", rune(c)) {
			return ""
		}
	}
	return name[:min(len(name), maxHost)]
}

// Settle returns r after its lease was settled in the given way.
func (r Run) Settle(kind string) Run {
	r.settled = strconv.FormatInt(r.Epoch, 10) + kind
	return r
}

// settledBy reports whether epoch was settled in the given way before.
func (r Run) settledBy(epoch int64, kind string) bool {
	return r.settled == strconv.FormatInt(epoch, 10)+kind
}

// AwaitsApproval reports whether the run of a function has held its job for a decision. A vote that does
// not decide raises the epoch, but the lease that asked stays the last one that was settled.
func (r *Run) AwaitsApproval() bool {
	return r.State == api.JobHeld && strings.HasSuffix(r.settled, SettledApproval)
}

// WorkerID returns the last worker, "" for none.
func (r *Run) WorkerID() string {
	if r.Worker == none {
		return ""
	}
	return r.Worker
}

// To returns r in another state. at is Run.At of that state.
func (r Run) To(state api.JobState, at int64) Run {
	r.State, r.At = state, at
	return r
}

// When the end of a job has consequences. The word is computed from the spec when the job is
// made. job_depend.lua changes it to followsEnd when another job begins to wait for this one.
const (
	followsEnd     = "1" // always
	followsFailure = "2" // unless it completed
)

// NewRun returns the run with which a job of spec is stored when it is created at now, a
// Unix time in milliseconds.
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

// followsOf returns when the end of a job of spec has consequences.
func followsOf(spec *api.JobSpec) string {
	switch of := spec.Activation; {
	case spec.Chain != nil || spec.ChainID != "" || spec.BatchID != "" || of != nil && of.OnSuccess != nil,
		spec.Schedule != nil && spec.Schedule.Marked:
		return followsEnd
	case spec.Target != nil:
		return followsFailure // a worker that completes the job has ended its activation
	}
	return ""
}
