package sandbox

import (
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// verdicts are the decisions of the handler about its job. They hold however the activation
// ends, also if its child is killed.
type verdicts struct {
	acked, retried, noRetry bool
	delayMS                 *int64 // of the retry; nil for the backoff
}

// verdict keeps the decision of a frame. Errors: wire.ErrFrame for one that must not come.
func (r *run) verdict(payload []byte) error {
	v, err := wire.ParseVerdict(payload)
	if err != nil {
		return err
	}
	if v.Kind == wire.VerdictNoRetry {
		r.decided.noRetry = true
		return nil
	}
	if len(r.call.Head.Job) == 0 || r.decided.acked || r.decided.retried || v.DelayMS < -1 || v.DelayMS > api.MaxMessageRetryMS {
		return wire.ErrFrame
	}
	r.decided.acked, r.decided.retried = v.Kind == wire.VerdictAck, v.Kind == wire.VerdictRetry
	if v.DelayMS >= 0 {
		r.decided.delayMS = &v.DelayMS
	}
	return nil
}

// judged returns the result of an activation as its verdicts have it. A success whose job is to
// be retried becomes a failure. A failure whose job is complete becomes a success, and is
// logged. A cancelled activation stays cancelled.
func (r *run) judged(result Result) Result {
	d := &r.decided
	result.NoRetry = d.noRetry
	switch {
	case result.Status == api.StatusCancelled:
	case d.retried:
		result.RetryAfterMS = d.delayMS
		if result.Error == nil {
			failed := failure(api.ErrException, "the handler asked for a retry of the message")
			result.Status, result.Error, result.Value = failed.Status, failed.Error, nil
		}
	case d.acked && result.Error != nil:
		text := string(result.Error.Type) + ": " + result.Error.Message
		if result.Error.Stack != "" {
			text = result.Error.Stack
		}
		text = api.TruncateText("queue: the message was acknowledged, and then the handler failed: "+text, api.MaxErrorMessageBytes)
		r.log(wire.LogRecord{TSMS: time.Now().UnixMilli(), Level: uint8(len(wire.Levels) - 1), Text: []byte(text)})
		result.Status, result.Error = api.StatusSuccess, nil
	}
	return result
}
