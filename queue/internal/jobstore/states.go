package jobstore

import (
	"slices"

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

var EndedStates = []api.JobState{api.JobCompleted, api.JobDead, api.JobCancelled}

// LiveStates are those whose sets no purge empties.
var LiveStates = []api.JobState{api.JobPending, api.JobScheduled, api.JobRetrying, api.JobActive, api.JobHeld, api.JobWaiting}
