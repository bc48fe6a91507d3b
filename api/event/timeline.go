package event

import "github.com/codesous/sous/api"

// JobHistory is a job with its timeline, nil unless it was asked for.
type JobHistory struct {
	api.Job
	Timeline *Timeline `json:"timeline,omitempty" doc:"with include=timeline"`
}

// Timeline lists the changes of a job that are known, oldest first.
type Timeline struct {
	Entries  []TimelineEntry `json:"entries"`
	Complete bool            `json:"complete" doc:"whether no change is missing"`
	Missing  []TimelineGap   `json:"missing,omitempty" doc:"why changes may be missing"`
}

// The sources of the entries of a timeline.
const (
	SourceLog    = "log"    // the tenant's log of events
	SourceRecord = "record" // the record of the job: the log has no such event any more, or never had one
)

// TimelineEntry is one change of a job. Type is that of its event.
type TimelineEntry struct {
	AtMS     int64  `json:"at_ms"`
	Type     string `json:"type" doc:"such as job.started"`
	Source   string `json:"source" enum:"log,record" doc:"the log of events, or the record of the job"`
	EventID  string `json:"event_id,omitempty" doc:"of an entry of the log"`
	Actor    string `json:"actor,omitempty" doc:"who made the change: the id of an API key, or a part of the server"`
	Attempt  int    `json:"attempt,omitempty"`
	WorkerID string `json:"worker_id,omitempty"`
	Host     string `json:"host,omitempty"`
	Error    string `json:"error,omitempty" doc:"of the attempt, at most 256 bytes of it"`
	Reason   string `json:"reason,omitempty" doc:"why the job is dead or held"`
}

// Why changes may be missing in a timeline.
const (
	MissingSetting    = "setting"    // the queue does not record all events
	MissingUnrecorded = "unrecorded" // the record has changes that the log should have, and has not
	MissingTrimmed    = "trimmed"    // the log does not reach back to the enqueue
	MissingBound      = "bound"      // there are more events than are read, or entries than are shown
	MissingDamaged    = "damaged"    // an entry of the log cannot be decoded
	MissingAttempts   = "attempts"   // the record keeps the last 100 attempts
)

// TimelineGap is a reason why changes may be missing.
type TimelineGap struct {
	Reason string `json:"reason" enum:"setting,unrecorded,trimmed,bound,damaged,attempts"`
	Detail string `json:"detail" doc:"the reason in words"`
}
