package api

import (
	"encoding/json"
	"math"
	"strings"
)

// Overlap policies: what happens to a tick while a run of an earlier one, or its
// retries, are not finished.
const (
	OverlapSkip     = "skip"     // it is skipped; the default
	OverlapQueue    = "queue"    // it waits for the previous run; QueueLimit bounds them
	OverlapParallel = "parallel" // it runs concurrently
)

// Catch-up policies: what happens to missed ticks, which are more than CatchupGraceMS
// late.
const (
	CatchupAll    = "all"    // the last MaxCatchupTicks are fired, in order; the default
	CatchupLatest = "latest" // the last one is fired
	CatchupNone   = "none"   // none is fired
)

// Defaults and bounds of schedules.
const (
	MinEverySeconds        = 1
	MaxEverySeconds        = 86_400
	MaxCronLength          = 256
	MaxTimezoneLength      = 64
	DefaultTimezone        = "UTC"
	DefaultQueueLimit      = 10
	MaxQueueLimit          = 100
	DefaultMaxCatchupTicks = 60
	MaxMaxCatchupTicks     = 1000
	CatchupGraceMS         = 10_000
	MaxSchedules           = 10_000   // of a namespace
	MaxSchedulePayload     = 64 << 10 // bytes
)

// Schedule enqueues a job or runs a function at regular times: every EverySeconds, at an
// offset that is derived from its name, or by Cron (five fields) in Timezone. Its
// target is either Ref, a function, or Queue.
type Schedule struct {
	Name            string          `json:"name"`
	EverySeconds    int64           `json:"every_seconds,omitempty"`
	Cron            string          `json:"cron,omitempty"`
	Timezone        string          `json:"timezone,omitempty"` // an IANA name; of Cron
	OverlapPolicy   string          `json:"overlap_policy"`
	QueueLimit      int             `json:"queue_limit,omitempty"` // for OverlapQueue: active and waiting runs
	Catchup         string          `json:"catchup"`
	MaxCatchupTicks int             `json:"max_catchup_ticks"`
	Ref             *JobTarget      `json:"ref,omitempty"`
	Queue           *ScheduleQueue  `json:"queue,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"`
	Enabled         bool            `json:"enabled"`
	Revision        int64           `json:"revision"` // grows with every change
	CreatedAtMS     int64           `json:"created_at_ms"`
	UpdatedAtMS     int64           `json:"updated_at_ms"`
}

// NewSchedule is the request that creates a schedule. Zero values mean the documented defaults.
type NewSchedule struct {
	Name            string          `json:"name"`
	EverySeconds    int64           `json:"every_seconds,omitempty"`
	Cron            string          `json:"cron,omitempty"`
	Timezone        string          `json:"timezone,omitempty"`
	OverlapPolicy   string          `json:"overlap_policy,omitempty"`
	QueueLimit      int             `json:"queue_limit,omitempty"`
	Catchup         string          `json:"catchup,omitempty"`
	MaxCatchupTicks int             `json:"max_catchup_ticks,omitempty"`
	Ref             *JobTarget      `json:"ref,omitempty"`
	Queue           *ScheduleQueue  `json:"queue,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"`
	Enabled         *bool           `json:"enabled,omitempty"` // nil is true
}

// ScheduleChange is a partial update of a schedule. A nil field is left unchanged, a zero
// value removes the field or sets its default.
type ScheduleChange struct {
	EverySeconds    *int64
	Cron            *string
	Timezone        *string
	OverlapPolicy   *string
	QueueLimit      *int
	Catchup         *string
	MaxCatchupTicks *int
	Ref             *JobTarget
	Queue           *ScheduleQueue
	Payload         *json.RawMessage
	Enabled         *bool
}

// BytesPerMinute returns the bytes that the schedule, of which the given number are stored, writes
// in a minute: at each tick a job and the state. A cron expression whose minute is a number ticks
// at most once an hour, any other at most once a minute.
func (s *Schedule) BytesPerMinute(stored int) int64 {
	const overhead = 512
	bytes := float64(stored + overhead)
	switch minute, _, _ := strings.Cut(strings.TrimSpace(s.Cron), " "); {
	case s.EverySeconds > 0:
		bytes *= 60 / float64(s.EverySeconds)
	case strings.Trim(minute, "0123456789") == "":
		bytes /= 60
	}
	return int64(math.Ceil(bytes))
}

// ScheduleQueue is the target queue of a schedule, in the schedule's namespace, and the
// options of the job of each tick.
type ScheduleQueue struct {
	Name        string   `json:"name"`
	UniqueKey   string   `json:"unique_key,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"`
	Priority    Priority `json:"priority,omitempty"`
}

// ScheduleStatus is a schedule with its runs and counts.
type ScheduleStatus struct {
	Schedule
	NextRunMS int64         `json:"next_run_ms,omitempty"` // absent: it does not fire again
	LastRun   *ScheduleRun  `json:"last_run,omitempty"`
	LastSkip  *ScheduleSkip `json:"last_skip,omitempty"`
	InFlight  []string      `json:"in_flight"` // unfinished jobs, if the overlap policy tracks them
	Fired     int64         `json:"fired"`
	Skipped   int64         `json:"skipped"`
	Missed    int64         `json:"missed"` // not fired because of the catch-up policy
}

// ScheduleRun is one run of a schedule. If it ran a function, the activation has the
// job's id.
type ScheduleRun struct {
	TickMS  int64  `json:"tick_ms"` // the tick that was fired; for a manual run its time
	FiredMS int64  `json:"fired_ms"`
	JobID   string `json:"job_id"`
	// State is the state of the job. It is set if a single schedule is read and the
	// job still exists.
	State JobState `json:"state,omitempty"`
}

// ScheduleSkip is the last tick that was skipped.
type ScheduleSkip struct {
	TickMS int64  `json:"tick_ms"`
	Reason string `json:"reason"`
}

// The reasons of a skipped tick.
const (
	SkipOverlap   = "overlap"    // another run was not finished
	SkipQueueFull = "queue_full" // QueueLimit was reached
	SkipDuplicate = "duplicate"  // another job had the unique key
	SkipDraining  = "draining"   // the queue was draining
)

// ScheduledTick identifies the tick that created a job.
type ScheduledTick struct {
	Schedule    string `json:"schedule"`
	Cron        string `json:"cron,omitempty"` // the expression that was due; "" if the schedule has an interval
	CreatedAtMS int64  `json:"created_at_ms"`  // of the schedule: its name can be reused
	TickMS      int64  `json:"tick_ms"`
	TickSeq     int64  `json:"tick_seq"` // number of the tick, fired or not; 0 for a manual run
	// Marked is set if the overlap policy tracks the job until it ends.
	Marked bool `json:"marked,omitempty"`
}

// ScheduleSource is the source of a trigger of type schedule.
type ScheduleSource struct {
	Schedule string `json:"schedule"`
	Cron     string `json:"cron,omitempty"` // "" if the schedule has an interval
	TickMS   int64  `json:"tick_ms"`
	TickSeq  int64  `json:"tick_seq"`
}
