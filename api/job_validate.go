package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ValidateBatchID returns CodeValidationName unless s is a UUID in canonical lower case.
func ValidateBatchID(s string) error {
	if id, err := uuid.Parse(s); err != nil || id.String() != s {
		return nameError("batch_id", s, "must be a UUID in lower case")
	}
	return nil
}

// ValidateQueue returns CodeValidationName unless s is a name, or fn. and the name of a
// function.
func ValidateQueue(s string) error {
	if !isName(strings.TrimPrefix(s, FunctionQueuePrefix), 63) {
		return nameError("queue", s, "must be "+FunctionQueuePrefix+" and the name of a function, or have 1 to 64 "+nameCharacters)
	}
	return nil
}

// ValidateWorkerID returns CodeValidationName unless s has 1 to MaxWorkerIDLength
// printable ASCII characters and no blanks.
func ValidateWorkerID(s string) error {
	ok := s != "" && len(s) <= MaxWorkerIDLength
	for i := range len(s) {
		ok = ok && s[i] > ' ' && s[i] < 0x7f
	}
	if !ok {
		return nameError("worker_id", s, "must be 1 to 128 printable characters without blanks")
	}
	return nil
}

// Validate returns CodeInvalid or CodeBodyLimit, with the path of the field, for a
// job that cannot be enqueued at nowMS.
func (j *NewJob) Validate(nowMS int64) error {
	switch {
	case len(j.Payload) > MaxJobPayloadBytes:
		return Errorf(CodeBodyLimit, "payload exceeds %s", SizeText(MaxJobPayloadBytes)).
			WithFields(FieldError{Path: "payload", Message: "exceeds 1 MiB"})
	case len(j.Payload) > 0 && !json.Valid(j.Payload):
		return jobField("payload", "must be JSON")
	}
	return j.JobOptions.validate(nowMS, 0)
}

func jobField(path, rule string) error {
	return Errorf(CodeInvalid, "%s %s", path, rule).WithFields(FieldError{Path: path, Message: rule})
}

func (o *JobOptions) validate(nowMS int64, depth int) error {
	base := int64(DefaultBaseDelayMS)
	if o.BaseDelayMS != nil {
		base = *o.BaseDelayMS
	}
	switch {
	case o.Priority != "" && o.Priority.Rank() < 0:
		return jobField("priority", "must be critical, high, normal or low")
	case o.RunAtMS < 0 || o.RunAtMS > nowMS+MaxJobScheduleAheadMS:
		return jobField("run_at_ms", "must be a time of the next ten years")
	case o.ExpireAtMS < 0 || o.ExpireAtMS != 0 && o.ExpireAtMS <= max(nowMS, o.RunAtMS):
		return jobField("expire_at_ms", "must be in the future and after run_at_ms")
	case o.ExpireAtMS > nowMS+MaxJobScheduleAheadMS:
		return jobField("expire_at_ms", "must be a time of the next ten years")
	case len(o.UniqueKey) > MaxUniqueKeyLength || !utf8.ValidString(o.UniqueKey) || strings.ContainsAny(o.UniqueKey, "\x00\n{}"):
		return jobField("unique_key", "must be at most 255 bytes without braces or line breaks")
	case o.UniqueTTLMS < 0 || o.UniqueTTLMS > MaxUniqueTTLMS || o.UniqueTTLMS > 0 && o.UniqueKey == "":
		return jobField("unique_ttl_ms", "must be at most 30 days and stand beside unique_key")
	case o.MaxAttempts < 0 || o.MaxAttempts > MaxMaxAttempts:
		return InvalidRange("max_attempts", 1, MaxMaxAttempts)
	case base < 0 || base > MaxDelayMS:
		return InvalidRange("base_delay_ms", 0, MaxDelayMS)
	case o.MaxDelayMS < 0 || o.MaxDelayMS > MaxDelayMS:
		return InvalidRange("max_delay_ms", 0, MaxDelayMS)
	}
	switch o.Backoff {
	case "", BackoffNone, BackoffFixed, BackoffLinear, BackoffExponential:
	default:
		return jobField("backoff", "must be none, fixed, linear or exponential")
	}
	if err := o.validateRelations(depth); err != nil {
		return err
	}
	return o.Chain.validate(nowMS, depth)
}

func (o *JobOptions) validateRelations(depth int) error {
	if len(o.Tags) > MaxTags {
		return jobField("tags", "must be at most 32")
	}
	for name, value := range o.Tags {
		if name == "" || len(name) > MaxTagLength || len(value) > MaxTagLength {
			return jobField("tags."+name, "must have a name and a value of at most 128 bytes")
		}
	}
	if len(o.DependsOn) > MaxDependencies {
		return jobField("depends_on", "must be at most 100")
	}
	for _, id := range o.DependsOn {
		if ValidateJobID(id) != nil {
			return jobField("depends_on", "must be ids of jobs")
		}
	}
	switch o.OnDependencyFailure {
	case "", DependencyFail, DependencyContinue, DependencyHold:
	default:
		return jobField("on_dependency_failure", "must be fail, continue or hold")
	}
	if o.BatchID != "" && ValidateJobID(o.BatchID) != nil {
		return jobField("batch_id", "must be the id of a batch")
	}
	if len(o.ResultSchema) > MaxSchemaBytes {
		return jobField("result_schema", "exceeds 64 KiB")
	}
	if depth > 0 && (len(o.DependsOn) > 0 || o.BatchID != "" || o.Chain != nil) {
		return jobField("chain", "steps cannot have depends_on, batch_id or chains of their own")
	}
	if path, rule := o.Agent.Check(); rule != "" {
		return jobField(path, rule)
	}
	if o.Routing != "" && ValidateName("routing", o.Routing) != nil {
		return jobField("routing", NameRule)
	}
	if o.Target != nil {
		return o.Target.validate()
	}
	return nil
}

func (t *JobTarget) validate() error {
	if ValidateName("function", t.Function) != nil {
		return jobField("target.function", NameRule)
	}
	if (Ref{Alias: t.Alias, Version: t.Version}).Validate() != nil {
		return jobField("target", "must have either an alias or a version")
	}
	return nil
}

func (c *Chain) validate(nowMS int64, depth int) error {
	if c == nil {
		return nil
	}
	if len(c.Steps) > MaxChainSteps {
		return jobField("chain.steps", "must be at most 100")
	}
	steps := append([]ChainStep{}, c.Steps...)
	for _, more := range []*ChainStep{c.OnFailure, c.OnExit} {
		if more != nil {
			steps = append(steps, *more)
		}
	}
	total := 0 // each job of a chain stores the remaining steps
	for i := range steps {
		s := &steps[i]
		total += len(s.Payload) + len(s.ResultSchema)
		if s.Queue != "" && ValidateQueue(s.Queue) != nil {
			return jobField("chain", "must name queues that can exist")
		}
		if total > MaxJobPayloadBytes {
			return jobField("chain", "has payloads that together exceed 1 MiB")
		}
		if err := s.JobOptions.validate(nowMS, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the limits of a heartbeat. CodeInvalid, CodeBodyLimit.
func (h *JobHeartbeat) Validate() error {
	switch {
	case h.LeaseMS != 0 && (h.LeaseMS < MinLeaseMS || h.LeaseMS > MaxLeaseMS):
		return InvalidRange("lease_ms", MinLeaseMS, MaxLeaseMS)
	case len(h.Checkpoint) > MaxCheckpointBytes:
		return Errorf(CodeBodyLimit, "the checkpoint of job %s has %s, the limit is %s", h.ID, SizeText(len(h.Checkpoint)), SizeText(MaxCheckpointBytes))
	case h.Progress != nil && len(h.Progress.Message) > MaxProgressMessage:
		return InvalidField("progress.message", "must have at most "+strconv.Itoa(MaxProgressMessage)+" bytes")
	}
	return nil
}
