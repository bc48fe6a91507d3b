package hostcall

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/queue"
)

// Queue takes jobs: the queue.Broker.
type Queue interface {
	// Enqueue adds jobs, all or none.
	Enqueue(ctx context.Context, e queue.Enqueue) ([]api.EnqueuedJob, error)
}

// queueCalls serves cs.queue. queue is nil where the replica has none.
type queueCalls struct {
	queue Queue
	nowMS func() int64
}

// calls returns the call. Its arguments are decoded into another type than the declared
// one, under the same name.
func (c *queueCalls) calls() map[string]call {
	declared := wire.Call[enqueueArgs, wire.EnqueueReply](wire.EnqueueJob)
	return map[string]call{wire.EnqueueJob.Name: handle(declared, c.permit, c.enqueue)}
}

// enqueueArgs is an EnqueueTarget whose options are decoded. An unknown option is refused,
// so that a misspelt one is not ignored: {delaySecond: 5} is CodeHostInvalidArgument.
type enqueueArgs struct {
	queue   string
	options enqueueOptions
}

// enqueueOptions are api.JobOptions under the names of JavaScript, in seconds where scripts
// count in seconds. They have no target: only the platform uses the queues of functions.
type enqueueOptions struct {
	stepOptions
	IdempotencyKey      string        `json:"idempotencyKey"`
	DependsOn           []string      `json:"dependsOn"`
	OnDependencyFailure string        `json:"onDependencyFailure"`
	BatchID             string        `json:"batchId"`
	Chain               *enqueueChain `json:"chain"`
}

// stepOptions are the options that the steps of a chain have too.
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

// enqueueChain is the chain option: the steps that follow the job, and the jobs for a
// failure and for any end.
type enqueueChain struct {
	Steps     []enqueueStep `json:"steps"`
	OnFailure *enqueueStep  `json:"onFailure"`
	OnExit    *enqueueStep  `json:"onExit"`
}

// enqueueStep is a job of a chain. An empty queue stands for that of the previous job.
type enqueueStep struct {
	Queue   string          `json:"queue"`
	Payload json.RawMessage `json:"payload"`
	stepOptions
}

// UnmarshalJSON decodes the call and its options, and refuses unknown members of both.
func (a *enqueueArgs) UnmarshalJSON(raw []byte) error {
	var target wire.EnqueueTarget
	if err := decodeStrict(raw, &target); err != nil {
		return err
	}
	a.queue = target.Queue
	return decodeStrict(target.Options, &a.options)
}

// queues returns all queues that jobs of the call may enter. The capability must admit each
// of them: a chain must not reach a queue that a direct call would not.
func (a *enqueueArgs) queues() []string {
	out := []string{a.queue}
	if chain := a.options.Chain; chain != nil {
		for _, step := range chain.all() {
			if step.Queue != "" {
				out = append(out, step.Queue)
			}
		}
	}
	return out
}

// all returns the steps and, if they are set, the jobs for failure and exit.
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

// permit compares each queue with the declared ones; "*" admits all of the namespace. The
// refusal names the first that is missing.
func (c *queueCalls) permit(s *Scope, a enqueueArgs) string {
	for _, name := range a.queues() {
		if allowed := s.Capabilities.Queue; allowed == nil || !allows(allowed.Publish, name) {
			return `{"queue": {"publish": [` + quoted(shortened(name)) + `]}}`
		}
	}
	return ""
}

// enqueue adds a job to a queue of the function's own namespace. The broker checks it as it
// checks the jobs of the REST API, and refuses with the same codes. Without an
// idempotencyKey or a uniqueKey, a repeat makes another job. Queues of functions (fn.) are
// refused with CodeQueueReserved: cs.invoke calls a function.
func (c *queueCalls) enqueue(ctx context.Context, s *Scope, a enqueueArgs, payload []byte) (out wire.EnqueueReply, _ []byte, err error) {
	if c.queue == nil {
		return out, nil, api.Errorf(api.CodeInternal, "this replica has no queues")
	}
	for _, name := range a.queues() {
		if err := api.ValidateQueue(name); err != nil {
			return out, nil, err
		}
		if strings.HasPrefix(name, api.FunctionQueuePrefix) {
			return out, nil, api.Errorf(api.CodeQueueReserved, "queue %s is the platform's: call the function by cs.invoke", name)
		}
	}
	if key := a.options.IdempotencyKey; len(key) > api.MaxUniqueKeyLength || strings.ContainsAny(key, "\x00\r\n") {
		return out, nil, invalid("idempotencyKey is at most %s without line breaks", api.SizeText(api.MaxUniqueKeyLength))
	}
	options, err := a.options.job(c.nowMS())
	if err != nil {
		return out, nil, err
	}
	made, err := c.queue.Enqueue(ctx, queue.Enqueue{
		Tenant: s.Tenant, Namespace: s.Namespace, Queue: a.queue, Confined: true,
		Jobs:           []api.NewJob{{Payload: payload, JobOptions: options}},
		IdempotencyKey: a.options.IdempotencyKey,
	})
	if err != nil {
		return out, nil, err
	}
	return wire.EnqueueReply{ID: made[0].ID, State: string(made[0].State), Duplicate: made[0].Duplicate}, nil, nil
}

// job returns the options in the form of the broker.
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

// job returns the step in the form of the broker, nil for none.
func (s *enqueueStep) job(nowMS int64) (*api.ChainStep, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // documented
	}
	options, err := s.stepOptions.job(nowMS)
	return &api.ChainStep{Queue: s.Queue, NewJob: api.NewJob{Payload: s.Payload, JobOptions: options}}, err
}

// job returns the options of one job in the form of the broker: milliseconds, and a moment
// for a delay. Fractions of a millisecond are rounded up, so that a job is never early.
// Errors: CodeHostInvalidArgument; the broker checks the options that pass as they are.
func (o *stepOptions) job(nowMS int64) (api.JobOptions, error) {
	out := api.JobOptions{
		Priority: o.Priority, RunAtMS: o.RunAtMS, ExpireAtMS: o.ExpireAtMS, UniqueKey: o.UniqueKey,
		MaxAttempts: o.MaxAttempts, Backoff: o.Backoff, BaseDelayMS: o.BaseDelayMS, MaxDelayMS: o.MaxDelayMS,
		Jitter: o.Jitter, Tags: o.Tags, Hold: o.Hold, ResultSchema: o.ResultSchema,
	}
	switch most := float64(api.MaxJobScheduleAheadMS / 1000); {
	case o.DelaySeconds != 0 && o.RunAtMS != 0:
		return out, invalid("delaySeconds and runAtMs: only one of them")
	case o.DelaySeconds < 0 || o.DelaySeconds > most:
		return out, invalid("delaySeconds must be from 0 to %.0f", most)
	case o.UniqueTTLSeconds < 0 || o.UniqueTTLSeconds > api.MaxUniqueTTLMS/1000:
		return out, invalid("uniqueTtlSeconds must be from 0 to %d", api.MaxUniqueTTLMS/1000)
	case o.DelaySeconds > 0:
		out.RunAtMS = nowMS + int64(math.Ceil(o.DelaySeconds*1000))
	}
	out.UniqueTTLMS = int64(math.Ceil(o.UniqueTTLSeconds * 1000))
	return out, nil
}
