package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Schedule returns the record of the new schedule at nowMS, with its defaults.
func (n *NewSchedule) Schedule(nowMS int64) Schedule {
	s := Schedule{
		Name: n.Name, EverySeconds: n.EverySeconds, Cron: n.Cron, Timezone: n.Timezone,
		OverlapPolicy: n.OverlapPolicy, QueueLimit: n.QueueLimit, Catchup: n.Catchup, MaxCatchupTicks: n.MaxCatchupTicks,
		Ref: n.Ref, Queue: n.Queue, Payload: n.Payload, Enabled: n.Enabled == nil || *n.Enabled,
		Revision: 1, CreatedAtMS: nowMS, UpdatedAtMS: nowMS,
	}
	s.setDefaults()
	return s
}

// With returns s after the change c at nowMS. A field that depends on a removed one is
// removed too: Timezone with Cron, QueueLimit with OverlapQueue.
func (s Schedule) With(c *ScheduleChange, nowMS int64) Schedule {
	set(&s.EverySeconds, c.EverySeconds)
	set(&s.Cron, c.Cron)
	set(&s.OverlapPolicy, c.OverlapPolicy)
	set(&s.Catchup, c.Catchup)
	set(&s.MaxCatchupTicks, c.MaxCatchupTicks)
	set(&s.Payload, c.Payload)
	set(&s.Enabled, c.Enabled)
	if s.Cron == "" {
		s.Timezone = ""
	}
	set(&s.Timezone, c.Timezone)
	if s.OverlapPolicy != OverlapQueue {
		s.QueueLimit = 0
	}
	set(&s.QueueLimit, c.QueueLimit)
	if c.Ref != nil {
		s.Ref = nil
		if *c.Ref != (JobTarget{}) {
			s.Ref = c.Ref
		}
	}
	if c.Queue != nil {
		s.Queue = nil
		if *c.Queue != (ScheduleQueue{}) {
			s.Queue = c.Queue
		}
	}
	s.Revision++
	s.UpdatedAtMS = nowMS
	s.setDefaults()
	return s
}

func set[T any](to, value *T) {
	if value != nil {
		*to = *value
	}
}

func (s *Schedule) setDefaults() {
	if s.Cron != "" && s.Timezone == "" {
		s.Timezone = DefaultTimezone
	}
	if s.OverlapPolicy == "" {
		s.OverlapPolicy = OverlapSkip
	}
	if s.OverlapPolicy == OverlapQueue && s.QueueLimit == 0 {
		s.QueueLimit = DefaultQueueLimit
	}
	if s.Catchup == "" {
		s.Catchup = CatchupAll
	}
	if s.MaxCatchupTicks == 0 {
		s.MaxCatchupTicks = DefaultMaxCatchupTicks
	}
	if s.Ref != nil && s.Ref.Alias == "" && s.Ref.Version == 0 {
		target := *s.Ref
		target.Alias = DefaultAlias
		s.Ref = &target
	}
	if bytes.Equal(bytes.TrimSpace(s.Payload), []byte("null")) {
		s.Payload = nil
	}
}

// SameTiming reports whether s and other tick at the same times.
func (s *Schedule) SameTiming(other *Schedule) bool {
	return s.EverySeconds == other.EverySeconds && s.Cron == other.Cron && s.Timezone == other.Timezone
}

// Validate returns CodeInvalid, with the field's path, for an invalid schedule.
// Package scheduler validates the timing.
func (s *Schedule) Validate() error {
	if err := ValidateName("name", s.Name); err != nil {
		return err
	}
	switch s.OverlapPolicy {
	case OverlapSkip, OverlapQueue, OverlapParallel:
	default:
		return scheduleField("overlap_policy", "must be skip, queue or parallel")
	}
	switch s.Catchup {
	case CatchupAll, CatchupLatest, CatchupNone:
	default:
		return scheduleField("catchup", "must be all, latest or none")
	}
	switch {
	case s.EverySeconds != 0 && s.Cron != "":
		return scheduleField("cron", "cannot be combined with every_seconds: set one of them, and in a change set the other to null")
	case s.OverlapPolicy != OverlapQueue && s.QueueLimit != 0:
		return scheduleField("queue_limit", "must stand beside the overlap_policy queue")
	case s.OverlapPolicy == OverlapQueue && (s.QueueLimit < 1 || s.QueueLimit > MaxQueueLimit):
		return InvalidRange("queue_limit", 1, MaxQueueLimit)
	case s.MaxCatchupTicks < 1 || s.MaxCatchupTicks > MaxMaxCatchupTicks:
		return InvalidRange("max_catchup_ticks", 1, MaxMaxCatchupTicks)
	case len(s.Payload) > MaxSchedulePayload:
		return scheduleField("payload", "exceeds "+SizeText(MaxSchedulePayload))
	case len(s.Payload) > 0 && !json.Valid(s.Payload):
		return scheduleField("payload", "must be JSON")
	case s.Ref != nil && s.Queue != nil:
		return scheduleField("queue", "cannot be combined with ref: set one of them, and in a change set the other to null")
	case s.Ref != nil:
		return s.validateRef()
	case s.Queue != nil:
		return s.Queue.validate()
	}
	return scheduleField("ref", "must name a function, or queue a queue")
}

func scheduleField(path, rule string) error {
	return Errorf(CodeInvalid, "%s %s", path, rule).WithFields(FieldError{Path: path, Message: rule})
}

func (s *Schedule) validateRef() error {
	if ValidateName("function", s.Ref.Function) != nil {
		return scheduleField("ref.function", NameRule)
	}
	switch ref := s.Ref.Ref(); {
	case ref.Alias != "" && ref.Version != 0:
		return scheduleField("ref", "must have either an alias or a version")
	case ref.Validate() != nil:
		return scheduleField("ref", refRule)
	}
	return nil
}

func (q *ScheduleQueue) validate() error {
	switch {
	case ValidateQueue(q.Name) != nil:
		return scheduleField("queue.name", NameRule)
	case strings.HasPrefix(q.Name, FunctionQueuePrefix):
		return scheduleField("queue.name", "is reserved: name the function in ref")
	}
	options := JobOptions{UniqueKey: q.UniqueKey, MaxAttempts: q.MaxAttempts, Priority: q.Priority}
	var refused *Error
	if errors.As(options.validate(0, 0), &refused) {
		return scheduleField("queue."+refused.Fields[0].Path, refused.Fields[0].Message)
	}
	return nil
}
