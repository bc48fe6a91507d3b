package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// done turns the child's Done into a Result, and checks everything in it. A Done that is
// malformed ends the activation as SandboxCrash.
func (r *run) done(d wire.Done) Result {
	result, err := outcome(d)
	if err != nil {
		return r.failed(err)
	}
	if d.Flags&wire.FlagRetire != 0 {
		r.spent = true
		r.child.expected.Store(int32(result.retires()))
	}
	result.CPU = r.processorTime(d.CPUNanos)
	r.billed += result.CPU
	r.used = result.CPU
	result.MemoryPeakBytes = int64(min(d.MemoryPeak, r.child.limit, math.MaxInt64))
	result.LogsTruncated = d.Flags&wire.FlagLogsTruncated != 0
	return result
}

// retires returns the reason for which a child asks to be replaced after an activation with
// this result.
func (r Result) retires() endReason {
	switch {
	case r.Status == api.StatusTimeout:
		return endTimeout
	case r.Error != nil && r.Error.Type == api.ErrMemoryLimit:
		return endMemory
	}
	return endRetired
}

// processorTime returns the processor time of the activation: the child's claim, at most
// what the kernel counts for the child beyond r.billed. Asking the kernel costs as much as
// a tenth of a small call, so only claims above 20 ms are verified.
func (r *run) processorTime(claimed uint64) time.Duration {
	const doubtful = 20 * time.Millisecond
	if claimed <= uint64(doubtful) {
		return time.Duration(claimed)
	}
	return time.Duration(min(claimed, uint64(max(r.child.cpuTime()-r.billed, 0))))
}

// outcome returns the result that d describes, without its figures. Errors: wire.ErrFrame.
func outcome(d wire.Done) (Result, error) {
	switch d.Outcome {
	case wire.OutcomeValue:
		return value(d.Body)
	case wire.OutcomeUndefined:
		return Result{Status: api.StatusSuccess}, nil
	case wire.OutcomeError:
		return thrown(d.Body)
	case wire.OutcomeTimeout:
		return timedOut(), nil
	}
	return Result{}, fmt.Errorf("%w: outcome %d", wire.ErrFrame, d.Outcome)
}

// value returns a successful result. A child refuses a result that is too large by itself;
// the check here is for one that does not.
func value(body []byte) (Result, error) {
	if len(body) > api.MaxResultBytes {
		return failure(api.ErrResultTooLarge,
			"the result is larger than "+api.SizeText(api.MaxResultBytes)), nil
	}
	if !json.Valid(body) {
		return Result{}, fmt.Errorf("%w: a result that is not JSON", wire.ErrFrame)
	}
	return Result{Status: api.StatusSuccess, Value: body}, nil
}

// thrown reads the error of a function, cut to what a record keeps. It accepts only the
// types that a child can know: Timeout, SandboxCrash, Lost and Refused are the parent's to
// decide.
func thrown(body []byte) (Result, error) {
	var e api.ActivationError
	if err := json.Unmarshal(body, &e); err != nil {
		return Result{}, fmt.Errorf("%w: error: %w", wire.ErrFrame, err)
	}
	switch e.Type {
	case api.ErrException, api.ErrMemoryLimit, api.ErrUnsettled, api.ErrResultInvalid, api.ErrResultTooLarge:
	default:
		return Result{}, fmt.Errorf("%w: error type %.40q", wire.ErrFrame, string(e.Type))
	}
	e.Message = api.TruncateText(e.Message, api.MaxErrorMessageBytes)
	e.Stack = api.TruncateText(e.Stack, api.MaxErrorStackBytes)
	e.Code = api.TruncateText(e.Code, api.MaxErrorCodeBytes)
	return Result{Status: api.StatusError, Error: &e}, nil
}

// timedOut is the result of an activation that did not end before its deadline.
func timedOut() Result {
	return Result{
		Status: api.StatusTimeout,
		Error:  &api.ActivationError{Type: api.ErrTimeout, Message: "the function did not finish before its deadline"},
	}
}

// failure is the result of an activation that failed with an error of the platform.
func failure(t api.ErrorType, message string) Result {
	return Result{Status: api.StatusError, Error: &api.ActivationError{Type: t, Message: message}}
}

// isDisconnect reports whether err means that the other end of a socket has gone.
func isDisconnect(err error) bool {
	return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}
