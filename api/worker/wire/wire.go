// Package wire converts between the values of the API and the messages of the stream of workers
// (api/worker/v1), for the server and the Go client.
package wire

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	workerv1 "github.com/codesous/sous/api/worker/v1"
)

// convert converts each element of a list.
func convert[From, To any](list []From, one func(From) To) []To {
	if list == nil {
		return nil
	}
	out := make([]To, len(list))
	for i := range list {
		out[i] = one(list[i])
	}
	return out
}

// FromJobs converts the jobs of a fetch. Messages do not have their namespace.
func FromJobs(jobs []api.FetchedJob) []*workerv1.Job {
	out := make([]*workerv1.Job, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		out[i] = &workerv1.Job{
			Id: j.ID, Queue: j.Queue, Payload: j.Payload, Attempt: int32(j.Attempt), MaxAttempts: int32(j.MaxAttempts), //nolint:gosec // at most api.MaxMaxAttempts, but for snoozes, which count none
			LeaseEpoch: j.LeaseEpoch, LeaseExpiresMs: j.LeaseExpiresMS, Checkpoint: j.Checkpoint, Tags: j.Tags,
			ParentId: j.ParentID, CallbackOf: j.CallbackOf, CreatedAtMs: j.CreatedAtMS, Provider: j.Provider, Model: j.Model,
		}
	}
	return out
}

// ToJobs converts the jobs of a fetch, which are of namespace.
func ToJobs(namespace string, jobs []*workerv1.Job) []api.FetchedJob {
	return convert(jobs, func(j *workerv1.Job) api.FetchedJob {
		return api.FetchedJob{
			ID: j.GetId(), Namespace: namespace, Queue: j.GetQueue(), Payload: j.GetPayload(), Attempt: int(j.GetAttempt()), MaxAttempts: int(j.GetMaxAttempts()),
			LeaseEpoch: j.GetLeaseEpoch(), LeaseExpiresMS: j.GetLeaseExpiresMs(), Checkpoint: j.GetCheckpoint(), Tags: j.GetTags(),
			ParentID: j.GetParentId(), CallbackOf: j.GetCallbackOf(), CreatedAtMS: j.GetCreatedAtMs(), Provider: j.GetProvider(), Model: j.GetModel(),
		}
	})
}

// FromAcks converts acks.
func FromAcks(acks []api.JobAck) []*workerv1.Ack {
	return convert(acks, func(a api.JobAck) *workerv1.Ack {
		return &workerv1.Ack{Id: a.ID, LeaseEpoch: a.LeaseEpoch, Result: a.Result, Continue: a.Continue, Hold: text(a.Hold), Checkpoint: a.Checkpoint, Trace: a.Trace, Usage: fromUsage(a.Usage)}
	})
}

// ToAcks converts acks.
func ToAcks(acks []*workerv1.Ack) []api.JobAck {
	return convert(acks, func(a *workerv1.Ack) api.JobAck {
		return api.JobAck{ID: a.GetId(), LeaseEpoch: a.GetLeaseEpoch(), Result: raw(a.GetResult()), Continue: a.GetContinue(), Hold: a.GetHold(), Checkpoint: raw(a.GetCheckpoint()), Trace: raw(a.GetTrace()), Usage: toUsage(a.GetUsage())}
	})
}

// FromFails converts fails.
func FromFails(fails []api.JobFail) []*workerv1.Fail {
	return convert(fails, func(f api.JobFail) *workerv1.Fail {
		return &workerv1.Fail{Id: f.ID, LeaseEpoch: f.LeaseEpoch, Error: text(f.Error), Stack: text(f.Stack), RetryAfterMs: f.RetryAfterMS, SnoozeMs: f.SnoozeMS, Fatal: f.Fatal, Usage: fromUsage(f.Usage), ProviderError: fromProviderError(f.ProviderError)}
	})
}

// ToFails converts fails.
func ToFails(fails []*workerv1.Fail) []api.JobFail {
	return convert(fails, func(f *workerv1.Fail) api.JobFail {
		return api.JobFail{ID: f.GetId(), LeaseEpoch: f.GetLeaseEpoch(), Error: f.GetError(), Stack: f.GetStack(), RetryAfterMS: f.RetryAfterMs, SnoozeMS: f.SnoozeMs, Fatal: f.GetFatal(), Usage: toUsage(f.GetUsage()), ProviderError: toProviderError(f.GetProviderError())}
	})
}

// FromHeartbeats converts heartbeats.
func FromHeartbeats(beats []api.JobHeartbeat) []*workerv1.Heartbeat {
	return convert(beats, func(b api.JobHeartbeat) *workerv1.Heartbeat {
		out := &workerv1.Heartbeat{Id: b.ID, LeaseEpoch: b.LeaseEpoch, LeaseMs: b.LeaseMS, Checkpoint: b.Checkpoint, Usage: fromUsage(b.Usage)}
		if p := b.Progress; p != nil {
			out.Progress = &workerv1.Progress{Current: p.Current, Total: p.Total, Message: text(p.Message)}
		}
		return out
	})
}

// ToHeartbeats converts heartbeats.
func ToHeartbeats(beats []*workerv1.Heartbeat) []api.JobHeartbeat {
	return convert(beats, func(b *workerv1.Heartbeat) api.JobHeartbeat {
		out := api.JobHeartbeat{ID: b.GetId(), LeaseEpoch: b.GetLeaseEpoch(), LeaseMS: b.GetLeaseMs(), Checkpoint: raw(b.GetCheckpoint()), Usage: toUsage(b.GetUsage())}
		if p := b.GetProgress(); p != nil {
			out.Progress = &api.JobProgress{Current: p.GetCurrent(), Total: p.GetTotal(), Message: p.GetMessage()}
		}
		return out
	})
}

// FromOutcomes converts outcomes.
func FromOutcomes(outcomes []api.JobOutcome) []*workerv1.Outcome {
	return convert(outcomes, func(o api.JobOutcome) *workerv1.Outcome {
		return &workerv1.Outcome{Id: o.ID, Ok: o.OK, Code: string(o.Code), Message: o.Message, State: string(o.State), LeaseExpiresMs: o.LeaseExpiresMS}
	})
}

// ToOutcomes converts outcomes.
func ToOutcomes(outcomes []*workerv1.Outcome) []api.JobOutcome {
	return convert(outcomes, func(o *workerv1.Outcome) api.JobOutcome {
		return api.JobOutcome{ID: o.GetId(), OK: o.GetOk(), Code: api.Code(o.GetCode()), Message: o.GetMessage(), State: api.JobState(o.GetState()), LeaseExpiresMS: o.GetLeaseExpiresMs()}
	})
}

// text returns a text in UTF-8, as messages have it: the encoder of JSON replaces other bytes, too.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// raw returns JSON, nil for none.
func raw(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}

// FromError converts an error, nil for none.
func FromError(err *api.Error) *workerv1.Error {
	if err == nil {
		return nil
	}
	return &workerv1.Error{
		Code: string(err.Code), Message: err.Message, RetryAfterMs: err.RetryAfter.Milliseconds(),
		Fields: convert(err.Fields, func(f api.FieldError) *workerv1.FieldError {
			return &workerv1.FieldError{Path: f.Path, Message: f.Message}
		}),
	}
}

// ToError converts an error, nil for none.
func ToError(e *workerv1.Error) error {
	if e == nil {
		return nil
	}
	err := api.Errorf(api.Code(e.GetCode()), "%s", e.GetMessage()).WithFields(convert(e.GetFields(), func(f *workerv1.FieldError) api.FieldError {
		return api.FieldError{Path: f.GetPath(), Message: f.GetMessage()}
	})...)
	err.RetryAfter = time.Duration(e.GetRetryAfterMs()) * time.Millisecond
	return err
}
