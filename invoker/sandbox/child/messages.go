package child

import (
	"encoding/json"
	"strconv"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// messageBatch is the argument of the handler queue. The first call of ack and retry decides
// about a message, be it one of the message or of the batch.
type messageBatch struct {
	activation *activation
	positions  map[string]int // by the ids of the messages
	decided    []bool
}

// isBatch reports whether the event is a batch of jobs.
func (a *activation) isBatch() bool { return a.head.Flags&wire.FlagBatch != 0 }

// messageBatch makes the argument of queue: the batch of the event, or one of the single message
// that the job of the activation is.
func (r *realm) messageBatch(a *activation, event []byte) goja.Value {
	var jobs api.MessageBatch
	if a.isBatch() {
		if err := json.Unmarshal(event, &jobs); err != nil {
			panic(r.newError(api.CodeInternal, "the batch of jobs cannot be read"))
		}
	} else {
		var job api.RunningJob
		if err := json.Unmarshal(a.head.Job, &job); err != nil {
			panic(r.newError(api.CodeInternal, "the description of the job cannot be read"))
		}
		jobs = api.MessageBatch{Queue: job.Queue, Messages: []api.QueueMessage{{ID: job.ID, CreatedAtMS: job.CreatedAtMS, Attempt: job.Attempt, Body: event}}}
	}
	b := &messageBatch{activation: a, positions: map[string]int{}, decided: make([]bool, len(jobs.Messages))}
	a.batch = b
	messages := make([]any, len(jobs.Messages))
	for i := range jobs.Messages {
		b.positions[jobs.Messages[i].ID] = i
		messages[i] = r.message(b, i, &jobs.Messages[i])
	}
	ackAll := func(goja.FunctionCall) goja.Value { return b.decideAll(wire.Verdict{Acked: true}) }
	retryAll := func(call goja.FunctionCall) goja.Value {
		return b.decideAll(r.retryVerdict(call.Argument(0)))
	}
	out := r.vm.NewObject()
	r.setAll(out, []property{
		{"queue", jobs.Queue}, {"messages", r.vm.NewArray(messages...)},
		{"ackAll", r.newFunction("ackAll", 0, ackAll)}, {"retryAll", r.newFunction("retryAll", 0, retryAll)},
	})
	return out
}

// message makes the object of a message.
func (r *realm) message(b *messageBatch, position int, m *api.QueueMessage) goja.Value {
	date, err := r.vm.New(orUndefined(r.vm.Get("Date")), r.vm.ToValue(m.CreatedAtMS))
	must(err)
	ack := func(goja.FunctionCall) goja.Value { return b.decide(wire.Verdict{Message: position, Acked: true}) }
	retry := func(call goja.FunctionCall) goja.Value {
		v := r.retryVerdict(call.Argument(0))
		v.Message = position
		return b.decide(v)
	}
	out := r.vm.NewObject()
	r.setAll(out, []property{
		{"id", m.ID}, {"timestamp", date}, {"body", r.parsed(m.Body)}, {"attempts", m.Attempt},
		{"ack", r.newFunction("ack", 0, ack)}, {"retry", r.newFunction("retry", 0, retry)},
	})
	return out
}

// decide sends the verdict on a message, unless there was one.
func (b *messageBatch) decide(v wire.Verdict) goja.Value {
	if !b.decided[v.Message] {
		b.decided[v.Message] = true
		b.activation.decide(v)
	}
	return goja.Undefined()
}

// decideAll sends the verdict on each message without one.
func (b *messageBatch) decideAll(v wire.Verdict) goja.Value {
	for i := range b.decided {
		v.Message = i
		b.decide(v)
	}
	return goja.Undefined()
}

// errItemFailures refuses the result of queue whose failures name no messages of the batch.
var errItemFailures = &refusedResult{
	api.ErrResultInvalid, "batchItemFailures must be an array of objects whose itemIdentifier is the id of a message",
}

// itemFailures reads the messages to be retried from the result of the handler, as consumers of
// Amazon SQS return them. null and an empty list are no failures; any other result is ignored.
//
//	{batchItemFailures: [{itemIdentifier: batch.messages[1].id}]}
func (b *messageBatch) itemFailures(result goja.Value) error {
	obj, ok := result.(*goja.Object)
	if !ok {
		return nil
	}
	var failed []int
	refused := false
	err := b.activation.realm.try(func() {
		list := given(obj, "batchItemFailures")
		if list == nil || goja.IsNull(list) {
			return
		}
		items, ok := list.(*goja.Object)
		if !ok || items.ClassName() != "Array" {
			refused = true
			return
		}
		length := items.Get("length").ToInteger()
		for i := int64(0); i < length && !refused; i++ {
			position, known := b.position(items.Get(strconv.FormatInt(i, 10)))
			failed = append(failed, position)
			refused = !known || len(failed) > api.MaxFetchJobs
		}
	})
	switch {
	case err != nil:
		return err
	case refused:
		return errItemFailures
	}
	for _, position := range failed {
		b.decide(wire.Verdict{Message: position, Retried: true, DelayMS: -1})
	}
	return nil
}

// position returns the position of the message that an item names.
func (b *messageBatch) position(item goja.Value) (position int, known bool) {
	obj, ok := item.(*goja.Object)
	if !ok {
		return 0, false
	}
	id := given(obj, "itemIdentifier")
	if id == nil {
		return 0, false
	}
	if _, ok := id.(goja.String); !ok {
		return 0, false
	}
	position, known = b.positions[id.String()]
	return position, known
}

// decide sends a verdict on a job of the activation. It does nothing once the activation has
// ended.
func (a *activation) decide(v wire.Verdict) {
	r := a.realm
	if !r.effect() || r.act != a {
		return
	}
	if err := a.server.link.send(func(dst []byte) ([]byte, error) { return wire.AppendMessage(dst, wire.KindVerdict, v, nil) }); err != nil {
		panic(r.newError(api.CodeInternal, "the host cannot be reached"))
	}
}

// retryVerdict returns the verdict of retry(options): {delaySeconds}, from 0 to 43,200 (12 hours),
// without which the job's backoff holds, and {reason}, a string of at most 1,024 bytes.
func (r *realm) retryVerdict(options goja.Value) wire.Verdict {
	verdict := wire.Verdict{Retried: true, DelayMS: -1}
	obj, ok := options.(*goja.Object)
	if !ok {
		return verdict
	}
	if v := given(obj, "delaySeconds"); v != nil {
		seconds := v.ToFloat()
		if !(seconds >= 0 && seconds <= api.MaxMessageRetryMS/1000) {
			panic(r.newNamedError("RangeError", "retry: delaySeconds must be from 0 to 43,200"))
		}
		verdict.DelayMS = int64(seconds * 1000)
	}
	if v := given(obj, "reason"); v != nil {
		text, ok := v.(goja.String)
		if !ok {
			panic(r.vm.NewTypeError("retry: reason must be a string"))
		}
		verdict.Reason = text.String()
		if len(verdict.Reason) > api.MaxRetryReasonBytes {
			panic(r.newNamedError("RangeError", "retry: reason must have at most 1,024 bytes"))
		}
	}
	return verdict
}
