package jobstore

import (
	"slices"

	"github.com/codesous/sous/api"
)

// transitions is the whole state machine: the states that a job can go to from each state.
// Apply enforces it, so that a mistake in a caller cannot make a completed job run again. A
// move that keeps the state is no transition. Claims, acks and Requeue do not go through Apply:
// their scripts and conditions allow only transitions of this table.
//
//	waiting    for the jobs in DependsOn         scheduled  until JobSpec.RunAtMS, or while a run sleeps
//	held       until an operator approves it     pending    until a worker fetches it
//	active     under a lease                     retrying   until its backoff is over
//
// A dead or cancelled job that an operator retries becomes pending, or held if it was not approved.
var transitions = map[api.JobState][]api.JobState{
	api.JobWaiting:   {api.JobPending, api.JobScheduled, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobScheduled: {api.JobPending, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobHeld:      {api.JobPending, api.JobScheduled, api.JobDead, api.JobCancelled},
	api.JobPending:   {api.JobActive, api.JobScheduled, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobActive:    {api.JobCompleted, api.JobPending, api.JobScheduled, api.JobRetrying, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobRetrying:  {api.JobPending, api.JobHeld, api.JobDead, api.JobCancelled},
	api.JobDead:      {api.JobPending, api.JobHeld},
	api.JobCancelled: {api.JobPending, api.JobHeld},
	api.JobCompleted: {},
}

// allowed reports whether a job may go from one state to the other.
func allowed(from, to api.JobState) bool { return slices.Contains(transitions[from], to) }

// EndedStates are the states in which a job has ended. Their records are purged after the
// retention.
var EndedStates = []api.JobState{api.JobCompleted, api.JobDead, api.JobCancelled}

// LiveStates are the states in which a job has not ended. Together with EndedStates they are
// all states.
var LiveStates = []api.JobState{api.JobPending, api.JobScheduled, api.JobRetrying, api.JobActive, api.JobHeld, api.JobWaiting}
