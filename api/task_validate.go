package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidateTaskType returns CodeValidationName unless s matches NamePattern, so that a
// queue can have the name.
func ValidateTaskType(s string) error { return ValidateName("task_type", s) }

// ValidateTaskID returns CodeValidationName unless s has 1 to MaxTaskIDLength letters,
// digits, dots, underscores and dashes, and begins with a letter or a digit. None of
// these has a meaning in a store key.
func ValidateTaskID(s string) error {
	ok := s != "" && len(s) <= MaxTaskIDLength
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		ok = ok && (letter || i > 0 && strings.IndexByte("._-", c) >= 0)
	}
	if !ok {
		return nameError("task_id", s, fmt.Sprintf("must have 1 to %d %s", MaxTaskIDLength, idCharacters))
	}
	return nil
}

// Validate returns CodeInvalid, CodeValidationName, CodeBodyLimit or
// CodeQueueReserved, with the field's path, for an invalid request. Call WithDefaults
// first.
func (n *NewTask) Validate() error {
	if err := ValidateName("namespace", n.Namespace); err != nil {
		return err
	}
	if err := ValidateQueue(n.Queue); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(n.Queue, FunctionQueuePrefix):
		return Errorf(CodeQueueReserved, "queues %s… are the platform's: no task is announced there", FunctionQueuePrefix).
			WithFields(FieldError{Path: "queue", Message: "must not be one of the platform's"})
	case len(n.Payload) > MaxTaskPayloadBytes:
		return Errorf(CodeBodyLimit, "payload exceeds %s", SizeText(MaxTaskPayloadBytes)).
			WithFields(FieldError{Path: "payload", Message: "exceeds 64 KiB"})
	case len(n.Payload) > 0 && !json.Valid(n.Payload):
		return jobField("payload", "must be JSON")
	}
	if err := validateRef("params_ref", n.ParamsRef); err != nil {
		return err
	}
	return validateProgress(0, n.StepCount, n.TimeoutMS)
}

// Validate returns CodeInvalid or CodeValidationName for an invalid claim.
func (c *TaskClaim) Validate() error {
	if err := validateTaskWorker(c.Worker); err != nil {
		return err
	}
	return validateProgress(0, 0, c.TimeoutMS)
}

// Validate returns CodeInvalid or CodeValidationName for an invalid step.
func (s *TaskStep) Validate() error {
	if err := validateTaskWorker(s.Worker); err != nil {
		return err
	}
	return validateProgress(s.Step, s.StepCount, s.TimeoutMS)
}

// Validate returns CodeInvalid or CodeValidationName for an invalid completion.
func (c *TaskCompletion) Validate() error {
	if err := validateTaskWorker(c.Worker); err != nil {
		return err
	}
	return validateRef("result_ref", c.ResultRef)
}

// Validate returns CodeInvalid or CodeValidationName for an invalid failure.
func (f *TaskFailure) Validate() error {
	if err := validateTaskWorker(f.Worker); err != nil {
		return err
	}
	if f.Error == "" || len(f.Error) > MaxTaskErrorBytes || !utf8.ValidString(f.Error) {
		return jobField("error", "must say in 1 to 8192 bytes what went wrong")
	}
	return nil
}

func validateTaskWorker(s string) error {
	if ValidateWorkerID(s) != nil {
		return nameError("worker", s, "must be 1 to 128 printable characters without blanks")
	}
	return nil
}

func validateProgress(step, stepCount, timeoutMS int64) error {
	switch {
	case step < 0 || step > MaxTaskSteps:
		return InvalidRange("step", 0, MaxTaskSteps)
	case stepCount < 0 || stepCount > MaxTaskSteps:
		return InvalidRange("step_count", 0, MaxTaskSteps)
	case timeoutMS != 0 && (timeoutMS < MinTaskTimeoutMS || timeoutMS > MaxTaskTimeoutMS):
		return InvalidRange("timeout_ms", MinTaskTimeoutMS, MaxTaskTimeoutMS)
	}
	return nil
}

// validateRef returns CodeInvalid unless s is one line of text.
func validateRef(field, s string) error {
	if len(s) > MaxTaskRefBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return jobField(field, "must be at most 2048 bytes on one line")
	}
	return nil
}
