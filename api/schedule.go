package api

import "encoding/json"

// What becomes of a tick while a run of an earlier one is under way, its retries
// included.
const (
	OverlapSkip     = "skip"     // it is passed over; the default
	OverlapQueue    = "queue"    // it waits for the one before it, up to QueueLimit
	OverlapParallel = "parallel" // it runs beside it
)

// What becomes of the ticks that nobody fired in time: those that are more than
// CatchupGraceMS late.
const (
	CatchupAll    = "all"    // the last MaxCatchupTicks are fired, in order; the default
	CatchupLatest = "latest" // the last is fired
	CatchupNone   = "none"   // none is
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

// Schedule is when what is to be run: every EverySeconds, at moments of its own
// that follow from its name, or by Cron (five fields) in Timezone. Either Ref, a
// function, or Queue is its target.
type Schedule struct {
	Name            string          `json:"name"`
	EverySeconds    int64           `json:"every_seconds,omitempty"`
	Cron            string          `json:"cron,omitempty"`
	Timezone        string          `json:"timezone,omitempty"` // an IANA name; of Cron
	OverlapPolicy   string          `json:"overlap_policy"`
	QueueLimit      int             `json:"queue_limit,omitempty"` // of OverlapQueue: runs under way and waiting
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

// NewSchedule is a schedule to be made; zero values mean the documented defaults.
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

// ScheduleChange is what of a schedule is to be another: nil leaves it, a zero value
// removes it or gives it its default.
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

// ScheduleQueue is a queue of the schedule's namespace as a target, and with which
// options each tick's job is made.
type ScheduleQueue struct {
	Name        string   `json:"name"`
	UniqueKey   string   `json:"unique_key,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"`
	Priority    Priority `json:"priority,omitempty"`
}

// ScheduleStatus is a schedule and how it stands.
type ScheduleStatus struct {
	Schedule
	NextRunMS int64         `json:"next_run_ms,omitempty"` // absent: it fires no more
	LastRun   *ScheduleRun  `json:"last_run,omitempty"`
	LastSkip  *ScheduleSkip `json:"last_skip,omitempty"`
	InFlight  []string      `json:"in_flight"` // jobs under way, as far as the overlap policy asks
	Fired     int64         `json:"fired"`
	Skipped   int64         `json:"skipped"`
	Missed    int64         `json:"missed"` // left out by the catch-up policy
}

// ScheduleRun is one firing of a schedule. Where it ran a function, the
// activation's id is the job's.
type ScheduleRun struct {
	TickMS  int64  `json:"tick_ms"` // for which it was fired; of a run by hand the moment of that
	FiredMS int64  `json:"fired_ms"`
	JobID   string `json:"job_id"`
	// State is the job's where a single schedule is read and the job is still kept.
	State JobState `json:"state,omitempty"`
}

// ScheduleSkip is the last tick that was passed over, and why.
type ScheduleSkip struct {
	TickMS int64  `json:"tick_ms"`
	Reason string `json:"reason"`
}

// Why a tick was passed over.
const (
	SkipOverlap   = "overlap"    // a run was under way
	SkipQueueFull = "queue_full" // as many runs waited as may
	SkipDuplicate = "duplicate"  // the unique key was held
	SkipDraining  = "draining"   // the queue takes no new jobs
)

// ScheduledTick is what made a job, where a schedule did.
type ScheduledTick struct {
	Schedule    string `json:"schedule"`
	CreatedAtMS int64  `json:"created_at_ms"` // the schedule's: a name may be used again
	TickMS      int64  `json:"tick_ms"`
	TickSeq     int64  `json:"tick_seq"` // counts the schedule's ticks, fired or not; 0 for a run by hand
	// Marked: the schedule's overlap policy keeps the job among those in flight.
	Marked bool `json:"marked,omitempty"`
}

// ScheduleSource is the source of a trigger of type schedule.
type ScheduleSource struct {
	Schedule string `json:"schedule"`
	TickMS   int64  `json:"tick_ms"`
	TickSeq  int64  `json:"tick_seq"`
}
