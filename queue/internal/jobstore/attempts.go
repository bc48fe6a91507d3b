package jobstore

import (
	"encoding/json"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// attemptRecord is an attempt of a job that has ended without completing it, as the list of the
// job's errors stores it. Epoch is the first field, by which the script detects that a repeated call
// has already stored the record. The attempt that completed a job, and the one that runs, are in
// the job's run only.
//
//	{"epoch":3,"attempt":2,"error":"connection refused","at_ms":1700000000000,
//	 "worker_id":"w7","host":"mail-1","started_at_ms":1699999999000,"outcome":"failed"}
//
// Records of older releases end with at_ms, and are all of attempts that failed.
type attemptRecord struct {
	Epoch int64 `json:"epoch"`
	api.JobError
	WorkerID    string `json:"worker_id,omitempty"`
	Host        string `json:"host,omitempty"`
	StartedAtMS int64  `json:"started_at_ms,omitempty"`
	Outcome     string `json:"outcome,omitempty"`
}

// attempt returns the record of the attempt that m, made at now, ends; "" if it ends none. A job
// that expired before its claim was not attempted, and ends without a failure.
func (m *Move) attempt(now int64) string {
	r := &m.Record.Run
	outcome := m.ending(now)
	if r.State != api.JobActive || outcome == "" {
		return ""
	}
	a := attemptRecord{
		Epoch: r.Epoch, JobError: api.JobError{Attempt: r.Attempt, AtMS: now},
		Host: r.Host, StartedAtMS: r.Started, Outcome: outcome,
	}
	if r.Worker != none {
		a.WorkerID = r.Worker
	}
	if m.Failure != nil {
		a.JobError = *m.Failure
	}
	raw, err := api.EncodeJSON(a)
	if err != nil { // it has no value that cannot be encoded
		return ""
	}
	return string(raw)
}

// ending returns the outcome of the attempt that m, made at now, ends; "" for none.
func (m *Move) ending(now int64) string {
	switch {
	case m.Failure != nil && m.Lost:
		return api.AttemptLost
	case m.Failure != nil:
		return api.AttemptFailed
	}
	switch m.To.State {
	case api.JobRetrying:
		if m.To.At <= now {
			return api.AttemptReleased
		}
		return api.AttemptSnoozed
	case api.JobPending, api.JobScheduled:
		return api.AttemptContinued
	case api.JobHeld:
		return api.AttemptHeld
	case api.JobCancelled:
		return api.AttemptCancelled
	case api.JobDead:
		if m.Ledger != nil && m.Ledger.Ended != nil { // by the last of the iterations that it may have
			return api.AttemptContinued
		}
	}
	return ""
}

// AddAttempts adds to j, the view of r, its attempts and its errors, of which stored are the
// records, oldest first.
func (r *Record) AddAttempts(j *api.Job, stored []string) error {
	recorded := false
	for _, raw := range stored {
		var a attemptRecord
		if err := json.Unmarshal([]byte(raw), &a); err != nil {
			return fmt.Errorf("queue: decode an error of a job: %w", err)
		}
		out := api.JobAttempt{
			Attempt: a.Attempt, LeaseEpoch: a.Epoch, WorkerID: a.WorkerID, Host: a.Host, StartedAtMS: a.StartedAtMS, EndedAtMS: a.AtMS,
			Outcome: a.Outcome, Error: Shorten(a.Error, event.MaxText),
		}
		switch a.Outcome {
		case "":
			out.Outcome = api.AttemptFailed
		case api.AttemptLost:
			out.Code = api.CodeJobLeaseLost
		}
		switch out.Outcome {
		case api.AttemptFailed, api.AttemptLost:
			j.Errors = append(j.Errors, a.JobError)
		}
		j.Attempts = append(j.Attempts, out)
		recorded = a.Epoch == r.Run.Epoch
	}
	last := api.JobAttempt{Attempt: r.Run.Attempt, LeaseEpoch: r.Run.Epoch, WorkerID: j.WorkerID, Host: r.Run.Host, StartedAtMS: r.Run.Started}
	switch {
	case r.Run.State == api.JobCompleted:
		if recorded { // the store died before it made the change of that record
			j.Attempts = j.Attempts[:len(j.Attempts)-1]
		}
		last.Outcome, last.EndedAtMS = api.AttemptCompleted, r.Run.At
		j.Attempts = append(j.Attempts, last)
	case r.Run.State == api.JobActive && !recorded: // else by a change that is newer than the run that was read
		last.Outcome = api.AttemptRunning
		j.Attempts = append(j.Attempts, last)
	}
	return nil
}

// MayHaveAttempts reports whether the list of r's errors may have records: not if no attempt or only
// the one that completed it began.
func (r *Record) MayHaveAttempts() bool {
	switch r.Run.State {
	case api.JobCompleted:
		return r.Run.Epoch > 1
	case api.JobPending, api.JobScheduled, api.JobWaiting:
		return r.Run.Epoch > 0
	}
	return true
}
