package sandbox

import (
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// verdicts are the decisions of the handler about its jobs. They hold however the activation
// ends, also if its child is killed.
type verdicts struct {
	messages []api.MessageVerdict // nil until the first
	noRetry  bool
}

// verdict keeps the decision of a frame. Errors: wire.ErrFrame for one that must not come.
func (r *run) verdict(payload []byte) error {
	var v wire.Verdict
	if _, err := wire.ParseMessage(payload, &v); err != nil {
		return err
	}
	if v.NoRetry {
		r.decided.noRetry = true
		return nil
	}
	count := r.call.Messages
	if count == 0 && len(r.call.Head.Job) > 0 {
		count = 1
	}
	if v.Message < 0 || v.Message >= count || v.Acked == v.Retried || v.DelayMS < -1 || v.DelayMS > api.MaxMessageRetryMS ||
		len(v.Reason) > api.MaxRetryReasonBytes {
		return wire.ErrFrame
	}
	if r.decided.messages == nil {
		r.decided.messages = make([]api.MessageVerdict, count)
	}
	m := &r.decided.messages[v.Message]
	if m.Acked || m.Retried {
		return wire.ErrFrame
	}
	m.Acked, m.Retried, m.Reason = v.Acked, v.Retried, v.Reason
	if v.Retried && v.DelayMS >= 0 {
		m.DelayMS = &v.DelayMS
	}
	return nil
}

// judged returns the result of an activation as its verdicts have it. With Messages, each job
// is settled by its own verdict. Else the activation is the attempt of one job: a success whose
// job is to be retried becomes a failure. A failure whose job is complete becomes a success, and
// is logged. A cancelled activation stays cancelled.
func (r *run) judged(result Result) Result {
	d := &r.decided
	result.NoRetry = d.noRetry
	if r.call.Messages > 0 {
		result.Verdicts = d.messages
		return result
	}
	if result.Status == api.StatusCancelled || len(d.messages) == 0 {
		return result
	}
	switch m := &d.messages[0]; {
	case m.Retried:
		result.RetryAfterMS = m.DelayMS
		if result.Error == nil {
			failed := failure(api.ErrException, m.RetryText())
			result.Status, result.Error, result.Value = failed.Status, failed.Error, nil
		}
	case m.Acked && result.Error != nil:
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
