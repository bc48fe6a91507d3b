package invoker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// queueHost serves cs.queue. broker is nil where there are no queues.
type queueHost struct {
	broker *queue.Broker
	nowMS  func() int64
}

type enqueueArgs struct {
	Queue   string          `json:"queue"`
	Options json.RawMessage `json:"options"`

	options enqueueOptions // Options, read
}

// enqueueOptions are api.JobOptions as functions name them, without a target: the
// queues of functions are the platform's.
type enqueueOptions struct {
	stepOptions
	IdempotencyKey      string        `json:"idempotencyKey"`
	DependsOn           []string      `json:"dependsOn"`
	OnDependencyFailure string        `json:"onDependencyFailure"`
	BatchID             string        `json:"batchId"`
	Chain               *enqueueChain `json:"chain"`
}

// stepOptions are what the steps of a chain can be told too.
type stepOptions struct {
	Priority         api.Priority      `json:"priority"`
	DelaySeconds     float64           `json:"delaySeconds"`
	RunAtMS          int64             `json:"runAtMs"`
	ExpireAtMS       int64             `json:"expireAtMs"`
	UniqueKey        string            `json:"uniqueKey"`
	UniqueTTLSeconds float64           `json:"uniqueTtlSeconds"`
	MaxAttempts      int               `json:"maxAttempts"`
	Backoff          api.Backoff       `json:"backoff"`
	BaseDelayMS      *int64            `json:"baseDelayMs"`
	MaxDelayMS       int64             `json:"maxDelayMs"`
	Jitter           bool              `json:"jitter"`
	Tags             map[string]string `json:"tags"`
	Hold             bool              `json:"hold"`
	ResultSchema     json.RawMessage   `json:"resultSchema"`
}

type enqueueChain struct {
	Steps     []enqueueStep `json:"steps"`
	OnFailure *enqueueStep  `json:"onFailure"`
	OnExit    *enqueueStep  `json:"onExit"`
}

type enqueueStep struct {
	Queue   string          `json:"queue"`
	Payload json.RawMessage `json:"payload"`
	stepOptions
}

// UnmarshalJSON reads the call and its options; what is no option is refused.
func (a *enqueueArgs) UnmarshalJSON(raw []byte) error {
	type plain enqueueArgs
	for _, part := range []func() error{
		func() error { return strictly(raw, (*plain)(a)) },
		func() error { return strictly(a.Options, &a.options) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// strictly decodes one JSON object whose members are all known.
func strictly(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// queues are all that the jobs of the call may enter.
func (a *enqueueArgs) queues() []string {
	out := []string{a.Queue}
	if chain := a.options.Chain; chain != nil {
		for _, step := range chain.all() {
			if step.Queue != "" {
				out = append(out, step.Queue)
			}
		}
	}
	return out
}

func (c *enqueueChain) all() []*enqueueStep {
	var out []*enqueueStep
	for i := range c.Steps {
		out = append(out, &c.Steps[i])
	}
	for _, step := range []*enqueueStep{c.OnFailure, c.OnExit} {
		if step != nil {
			out = append(out, step)
		}
	}
	return out
}

func (h *queueHost) permit(s *scope, a enqueueArgs) string {
	for _, name := range a.queues() {
		if c := s.capabilities.Queue; c == nil || !allows(c.Publish, name) {
			return `{"queue": {"publish": [` + quoted(cutName(name)) + `]}}`
		}
	}
	return ""
}

type enqueueReply struct {
	ID        string       `json:"id"`
	State     api.JobState `json:"state"`
	Duplicate bool         `json:"duplicate"`
}

// enqueue adds a job to a queue of the function's own namespace. The broker checks
// what the REST API's jobs are checked for, and refuses with its codes.
func (h *queueHost) enqueue(ctx context.Context, s *scope, a enqueueArgs, payload []byte) (any, []byte, error) {
	if h.broker == nil {
		return nil, nil, api.Errorf(api.CodeInternal, "this replica has no queues")
	}
	for _, name := range a.queues() {
		if err := api.ValidateQueue(name); err != nil {
			return nil, nil, err
		}
		if strings.HasPrefix(name, api.FunctionQueuePrefix) {
			return nil, nil, api.Errorf(api.CodeQueueReserved, "queue %s is the platform's: call the function by cs.invoke", name)
		}
	}
	if key := a.options.IdempotencyKey; len(key) > api.MaxUniqueKeyLength || strings.ContainsAny(key, "\x00\r\n") {
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "idempotencyKey is at most %d bytes without line breaks", api.MaxUniqueKeyLength)
	}
	options, err := a.options.job(h.nowMS())
	if err != nil {
		return nil, nil, err
	}
	made, err := h.broker.Enqueue(ctx, queue.Enqueue{
		Tenant: s.tenant, Namespace: s.namespace, Queue: a.Queue, Confined: true,
		Jobs:           []api.NewJob{{Payload: payload, JobOptions: options}},
		IdempotencyKey: a.options.IdempotencyKey,
	})
	if err != nil {
		return nil, nil, err
	}
	return enqueueReply{ID: made[0].ID, State: made[0].State, Duplicate: made[0].Duplicate}, nil, nil
}

// job gives the options as the broker takes them.
func (o *enqueueOptions) job(nowMS int64) (api.JobOptions, error) {
	out, err := o.stepOptions.job(nowMS)
	out.DependsOn, out.OnDependencyFailure, out.BatchID = o.DependsOn, o.OnDependencyFailure, o.BatchID
	if o.Chain == nil || err != nil {
		return out, err
	}
	out.Chain = &api.Chain{}
	for i := range o.Chain.Steps {
		step, err := o.Chain.Steps[i].job(nowMS)
		if err != nil {
			return out, err
		}
		out.Chain.Steps = append(out.Chain.Steps, *step)
	}
	var failure, exit error
	out.Chain.OnFailure, failure = o.Chain.OnFailure.job(nowMS)
	out.Chain.OnExit, exit = o.Chain.OnExit.job(nowMS)
	return out, errors.Join(failure, exit)
}

// job gives the step as the broker takes it, nil for none.
func (s *enqueueStep) job(nowMS int64) (*api.ChainStep, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // documented
	}
	options, err := s.stepOptions.job(nowMS)
	return &api.ChainStep{Queue: s.Queue, NewJob: api.NewJob{Payload: s.Payload, JobOptions: options}}, err
}

func (o *stepOptions) job(nowMS int64) (api.JobOptions, error) {
	out := api.JobOptions{
		Priority: o.Priority, RunAtMS: o.RunAtMS, ExpireAtMS: o.ExpireAtMS, UniqueKey: o.UniqueKey,
		MaxAttempts: o.MaxAttempts, Backoff: o.Backoff, BaseDelayMS: o.BaseDelayMS, MaxDelayMS: o.MaxDelayMS,
		Jitter: o.Jitter, Tags: o.Tags, Hold: o.Hold, ResultSchema: o.ResultSchema,
	}
	switch most := float64(api.MaxJobScheduleAheadMS / 1000); {
	case o.DelaySeconds != 0 && o.RunAtMS != 0:
		return out, api.Errorf(api.CodeHostInvalidArgument, "delaySeconds and runAtMs: only one of them")
	case o.DelaySeconds < 0 || o.DelaySeconds > most:
		return out, api.Errorf(api.CodeHostInvalidArgument, "delaySeconds must be from 0 to %.0f", most)
	case o.UniqueTTLSeconds < 0 || o.UniqueTTLSeconds > api.MaxUniqueTTLMS/1000:
		return out, api.Errorf(api.CodeHostInvalidArgument, "uniqueTtlSeconds must be from 0 to %d", api.MaxUniqueTTLMS/1000)
	case o.DelaySeconds > 0:
		out.RunAtMS = nowMS + int64(math.Ceil(o.DelaySeconds*1000))
	}
	out.UniqueTTLMS = int64(math.Ceil(o.UniqueTTLSeconds * 1000))
	return out, nil
}
