package invoker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/logsink"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/slots"
	"github.com/codesous/sous/invoker/vault"
	"github.com/codesous/sous/invoker/visibility"
	"github.com/codesous/sous/storage/activations"
)

// Invoke runs a function to its end and answers with the terminal activation. With inv.Early
// the answer may come before the end: the activation in it is then that of the answer, without
// the figures of the run, and the end of ctx stops the function no more, unless the answer is
// a stream.
//
// An error means that no activation of this call reached a terminal status
// here: CodeInvalid… for a malformed invocation, Code…NotFound for what does
// not exist, CodeAuthnRequired and CodeAuthzDenied (see Authorize),
// CodeConcurrencyLimit, CodeCapacityLimit and CodeTenantRate (nothing ran),
// CodeIdempotency… for a key in use, CodeStoreUnavailable (it may have run),
// CodeShuttingDown. With the error comes an outcome if the function ran and its end could not
// be recorded. When ctx ends, the function is stopped and the activation
// is recorded as cancelled.
func (i *Invoker) Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error) {
	if i.tracer != nil {
		return i.traceInvoke(ctx, &inv)
	}
	return i.invoke(ctx, &inv)
}

// invoke takes an invocation through its steps: resolution, authorization, the rate of the tenant,
// replay of an idempotent repeat, a slot, a sandbox, execution. Each error up to the sandbox is a refusal,
// which leaves no record. The rate is taken after the resolution, so that callers of functions that do
// not exist leave no state of their tenants.
func (i *Invoker) invoke(ctx context.Context, inv *api.Invocation) (*api.Outcome, error) {
	if err := i.begin(inv); err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	i.metrics.inFlight.Inc()
	detached := false // the activation outlives this call, which returns its answer
	defer func() {
		if !detached {
			i.leave()
		}
	}()
	if err := i.runnable(inv); err != nil {
		return nil, i.metrics.refuse(inv, false, err)
	}
	res, err := i.resolver.Resolve(ctx, resolve.Target{Tenant: inv.Tenant, Namespace: inv.Namespace, Function: inv.Function, Ref: inv.Ref})
	if err != nil {
		if out, err := i.replayGone(ctx, inv); out != nil || err != nil {
			return i.replayed(inv, false, out, err)
		}
		return nil, i.metrics.refuse(inv, false, err)
	}
	if err := inv.Permit(res.Version.Config.Authz); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	if err := i.admit(ctx, inv.Tenant); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	if out, err := i.replay(ctx, inv); out != nil || err != nil {
		return i.replayed(inv, true, out, err)
	}
	if err := i.admitRecord(ctx, inv); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	if err := i.checkHeld(inv, res); err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	program := i.program(inv, res)
	if inv.WaitForSlot { // it can be cancelled like a running one
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		defer i.running.Add(inv.Tenant, inv.ActivationID, stop)()
	}
	release, err := i.acquireSlot(ctx, inv, program, res.Version.Config.MaxConcurrency)
	if err != nil {
		return nil, i.metrics.refuse(inv, true, err)
	}
	defer func() {
		if !detached {
			release()
		}
	}()
	begin, began := i.store.NowMS(), time.Now()
	box, err := i.acquireSandbox(ctx, inv, program)
	switch {
	case api.ErrorCode(err) == api.CodeValidationSource:
		return i.execute(ctx, inv, res, begin, unusable(err, began, release), &detached)
	case err != nil:
		return nil, i.metrics.refuse(inv, true, err)
	}
	return i.execute(ctx, inv, res, begin, i.attemptIn(box, began, release), &detached)
}

// leave ends what begin and the gauge of running invocations count.
func (i *Invoker) leave() {
	i.metrics.inFlight.Dec()
	i.active.Done()
}

// acquireSlot takes a slot under the version's concurrency limit.
func (i *Invoker) acquireSlot(ctx context.Context, inv *api.Invocation, program *sandbox.Program, limit int) (release func(), err error) {
	if inv.WaitForSlot {
		return i.limits.Await(ctx, program.Key, limit)
	}
	return i.limits.Acquire(ctx, program.Key, limit, inv.OwnWait)
}

// acquireSandbox takes a sandbox for program. An invocation with WaitForSlot asks
// again while the pool is full.
func (i *Invoker) acquireSandbox(ctx context.Context, inv *api.Invocation, program *sandbox.Program) (*sandbox.Sandbox, error) {
	for {
		box, err := i.pool.Acquire(ctx, program, inv.OwnWait)
		if !inv.WaitForSlot || api.ErrorCode(err) != api.CodeCapacityLimit {
			return box, err
		}
		if err := sleep.For(ctx, slots.RetryInterval); err != nil {
			return nil, err
		}
	}
}

func (i *Invoker) runnable(inv *api.Invocation) error {
	if i.pool == nil {
		return errNoPool()
	}
	if inv.Messages > 0 {
		return nil // the worker has resolved the trigger: the ref has alias and version
	}
	return inv.Ref.Validate()
}

func errNoPool() error { return api.Errorf(api.CodeInternal, "this replica runs no functions") }

// attempt is one run of an activation, with the resources that it holds.
type attempt struct {
	began   time.Time
	box     *sandbox.Sandbox // nil where the function cannot run
	run     func(context.Context, sandbox.Call) sandbox.Result
	cold    bool
	release func() // frees the slot and the sandbox
	final   bool   // a failure is not retried
}

// attemptIn returns an attempt in box. It frees the sandbox before the slot: the next
// caller with the slot then finds the sandbox warm.
func (i *Invoker) attemptIn(box *sandbox.Sandbox, began time.Time, release func()) attempt {
	return attempt{
		began: began, box: box, run: box.Run, cold: box.Cold(),
		release: func() { i.pool.Release(box); release() },
	}
}

// unusable returns an attempt that fails with a sandbox's refusal of published source.
// That is a failure of the function, and is recorded as one.
func unusable(source error, began time.Time, release func()) attempt {
	message := messageOf(source)
	result := sandbox.Result{
		Status: api.StatusError,
		Error:  &api.ActivationError{Type: api.ErrException, Message: message, Code: string(api.CodeValidationSource)},
	}
	return attempt{
		began:   began,
		run:     func(context.Context, sandbox.Call) sandbox.Result { return result },
		cold:    true,
		release: release,
	}
}

// execute runs inv and records it. The attempt's resources are freed as soon as the
// sandbox has answered. detached is set if the activation goes on when execute returns; it
// then calls leave when it has ended.
func (i *Invoker) execute(ctx context.Context, inv *api.Invocation, res *resolve.Resolution, begin int64, a attempt, detached *bool) (*api.Outcome, error) {
	deadline := i.deadline(inv, res)
	e := execution{i: i, inv: inv, begin: begin, attempt: a, rec: newRecord(inv, res, begin, deadline.UnixMilli(), a.cold)}
	rec := e.rec
	derived := inv.IdempotencyKey != "" || inv.ActivationID != ""
	if derived {
		// The id is derived: only the caller that writes the record first may run.
		existing, err := i.recorder.claim(ctx, rec)
		if err != nil || existing != nil {
			a.release()
			out, err := taken(existing, rec.EventSHA256, err)
			return i.replayed(inv, true, out, err)
		}
	}
	runCtx, stop, unlink := e.runContext(ctx)
	// Registered before the record is visible, where possible, so that no cancel is missed.
	remove := i.running.Add(rec.Tenant, rec.ActivationID, stop)
	defer func() {
		if !*detached {
			remove()
			stop()
		}
	}()
	e.logs = i.logsOf(rec)
	e.logs.Runs = runCtx
	if !derived {
		// The id is random: no other call can hold it, so the record can wait.
		open := visibility.New
		if res.Version.Config.Skips(inv.Trigger.Type, rand.Float64()) {
			open = visibility.NewSilent
		}
		e.visible = open(func() error { return i.recorder.start(ctx, rec) })
		e.logs.Ready = e.visible.Visible
	}
	if inv.Started != nil {
		inv.Started()
	}
	var call sandbox.Call
	call, e.scope = i.call(inv, res, rec, deadline, e.logs, a.box)
	e.scope.Record = e.visible
	result := a.run(runCtx, call)
	if result.Rest == nil {
		return e.finish(ctx, result)
	}
	answer, err := e.answer(ctx, result)
	*detached = true
	if result.Stream == nil {
		unlink()
	} else {
		answer, err = streaming(answer, err, result.Stream, unlink, stop)
	}
	after := context.WithoutCancel(ctx)
	go func() {
		defer i.leave()
		defer stop()
		defer remove()
		_, _ = e.finish(after, result.Rest()) // finish has logged the error
	}()
	return answer, err
}

// deadline returns when an activation that begins now must have ended.
func (i *Invoker) deadline(inv *api.Invocation, res *resolve.Resolution) time.Time {
	timeout := time.Duration(res.Version.Config.TimeoutMS) * time.Millisecond
	if inv.MaxTimeout > 0 {
		timeout = min(timeout, inv.MaxTimeout)
	}
	deadline := i.store.Now().Add(timeout)
	if !inv.Deadline.IsZero() && inv.Deadline.Before(deadline) {
		deadline = inv.Deadline
	}
	return deadline
}

// execution is the run of an invocation, from its record to its end.
type execution struct {
	attempt

	i       *Invoker
	inv     *api.Invocation
	rec     *activations.Record
	begin   int64
	logs    *logsink.Sink
	visible *visibility.Visibility // nil for a derived id, whose record exists
	scope   *scope

	streamed  bool                 // the answer was streamed, so there is no result to check
	isChecked bool                 // the result was checked, as that of an early answer
	malformed *api.ActivationError // what the check found; nil if the result is well formed
}

// runContext returns the context of the run, which ends with ctx and by stop. After unlink it
// ends by stop alone: an answer that comes before the end lets the activation outlive ctx.
func (e *execution) runContext(ctx context.Context) (runCtx context.Context, stop context.CancelFunc, unlink func() bool) {
	if !e.inv.Early {
		runCtx, stop = context.WithCancel(ctx)
		return runCtx, stop, func() bool { return true }
	}
	runCtx, stop = context.WithCancel(context.WithoutCancel(ctx))
	return runCtx, stop, context.AfterFunc(ctx, stop)
}

// answer returns the outcome for an answer that comes before the end: a success, or a failure
// if the answer is malformed. It is returned when the activation's record is visible, as every
// answer is.
func (e *execution) answer(ctx context.Context, result sandbox.Result) (*api.Outcome, error) {
	if e.visible != nil {
		if err := e.visible.Ensure(ctx); err != nil {
			return nil, err
		}
	}
	result = e.checked(result)
	return &api.Outcome{Activation: e.i.terminal(e.rec, e.begin, result).Activation}, nil
}

// streaming adds the stream to an answer. Until the stream has ended, the end of the caller's
// ctx stops the function; without an answer the stream has no reader.
func streaming(answer *api.Outcome, err error, s *sandbox.Stream, unlink func() bool, stop func()) (*api.Outcome, error) {
	if err != nil {
		stop()
		return nil, err
	}
	answer.Stream = &linkedStream{s, unlink}
	return answer, nil
}

// linkedStream is a stream whose end lets its activation outlive the caller.
type linkedStream struct {
	*sandbox.Stream

	unlink func() bool
}

// Next implements api.Stream.
func (s *linkedStream) Next(ctx context.Context) ([]byte, bool, error) {
	chunk, more, err := s.Stream.Next(ctx)
	if errors.Is(err, io.EOF) {
		s.unlink()
	}
	return chunk, more, err
}

// checked turns a malformed result into a failure. The answer and the end of one run have the
// same result, which is checked once.
func (e *execution) checked(result sandbox.Result) sandbox.Result {
	e.streamed = e.streamed || result.Stream != nil
	if e.inv.CheckResult == nil || e.streamed || result.Status != api.StatusSuccess {
		return result
	}
	if !e.isChecked {
		e.isChecked = true
		if err := e.inv.CheckResult(result.Value); err != nil {
			e.malformed = &api.ActivationError{Type: api.ErrResultInvalid, Message: messageOf(err)}
		}
	}
	if e.malformed != nil {
		result.Status, result.Value, result.Error = api.StatusError, nil, e.malformed
	}
	return result
}

// messageOf returns the text of an error without its code.
func messageOf(err error) string {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded.Message
	}
	return err.Error()
}

// finish records the end of the run.
func (e *execution) finish(ctx context.Context, result sandbox.Result) (*api.Outcome, error) {
	i := e.i
	result = i.withoutSecrets(e.scope, result)
	e.scope.keepSecrets(e.box)
	e.scope.Nested.End()
	e.release()

	final, took := i.terminal(e.rec, e.begin, e.checked(result)), time.Since(e.began)
	final.EgressBytes = e.scope.EgressBytes()
	e.logs.Fail(final.Error, final.EndMS)
	current, err := i.recorder.finish(ctx, e.rec, final, e.logs, e.visible)
	if err != nil {
		i.ended(final, took, e.began.Add(took), i.traceID(ctx))
		return &api.Outcome{Activation: final.Activation, Verdicts: result.Verdicts}, err
	}
	i.ended(current, took, e.began.Add(took), i.traceID(ctx))
	return &api.Outcome{Activation: current.Activation, Verdicts: result.Verdicts}, nil
}

// scope is the Scope of one attempt's host calls, and the secrets that its logs and its
// error must not show.
type scope struct {
	hostcall.Scope
	secrets *vault.Run
}

// keepSecrets lets the next activation in box find the secrets that this one may have
// read. It ends an instance that may keep a value which has changed: its modules would go
// on using it.
func (sc *scope) keepSecrets(box *sandbox.Sandbox) {
	seen, changed := sc.secrets.End()
	if seen == nil || box == nil || !box.Instance() {
		return
	}
	box.Kept = seen
	if changed {
		box.Retire()
	}
}

// call returns the sandbox's view of the activation, and the scope of its host calls.
func (i *Invoker) call(inv *api.Invocation, res *resolve.Resolution, rec *activations.Record, deadline time.Time, logs *logsink.Sink, box *sandbox.Sandbox) (sandbox.Call, *scope) {
	var seen *vault.Seen
	if box != nil {
		seen, _ = box.Kept.(*vault.Seen)
	}
	self := api.Caller{Namespace: inv.Namespace, Function: inv.Function, Version: rec.Ref.Version, ActivationID: rec.ActivationID}
	config := &res.Version.Config
	sc := &scope{
		Scope: hostcall.Scope{
			Tenant: inv.Tenant, Namespace: inv.Namespace, Function: inv.Function, Capabilities: config.Capabilities,
			Heartbeat: inv.Heartbeat, Nested: hostcall.NewNestedCalls(inv, self, deadline),
		},
		secrets: i.vault.Begin(vault.Version{Tenant: inv.Tenant, Namespace: inv.Namespace, Function: inv.Function, Version: res.Version.Version},
			config.Capabilities.Secrets, rec.ActivationID, rec.RequestID, seen),
	}
	if sc.secrets != nil {
		sc.Secrets = sc.secrets
	}
	logs.Secrets = sc.secrets
	sc.Models = i.asCaller(inv, rec, logs)
	head := invokeHead(inv, rec)
	if inv.Messages > 0 {
		handles(inv, &head, sc)
	}
	return sandbox.Call{
		Head:     head,
		Event:    inv.Event,
		Messages: inv.Messages,
		Deadline: deadline,
		CPULimit: sandbox.CPULimit(config),
		Early:    inv.Early,
		Stream:   inv.Early && inv.Stream,
		Log:      logs.Add,
		Host: func(ctx context.Context, name string, head, blob []byte) ([]byte, []byte, error) {
			if i.tracer != nil {
				return i.traceHost(ctx, &sc.Scope, name, head, blob)
			}
			return i.host.Call(ctx, &sc.Scope, name, head, blob)
		},
	}, sc
}

// invokeHead returns the description of its activation that the function receives.
func invokeHead(inv *api.Invocation, rec *activations.Record) wire.InvokeHead {
	trigger, err := rec.Trigger.AppendJSON(nil)
	if err != nil {
		panic(fmt.Sprintf("invoker: encode trigger: %v", err)) // its source is our own JSON
	}
	return wire.InvokeHead{
		ActivationID: rec.ActivationID,
		DeadlineMS:   rec.DeadlineMS,
		Ref:          rec.Ref.AppendJSON(nil),
		Trigger:      trigger,
		Principal:    inv.Principal.AppendJSON(nil),
		Attempt:      rec.Attempt,
		RequestID:    rec.RequestID,

		LastHeartbeat: inv.LastHeartbeat,
	}
}

// program returns the sandbox's view of the version, made at the resolution's first call.
func (i *Invoker) program(inv *api.Invocation, res *resolve.Resolution) *sandbox.Program {
	return res.Program(func() *sandbox.Program { return i.newProgram(inv.Tenant, inv.Namespace, inv.Function, &res.Version) })
}

func (i *Invoker) newProgram(tenant, namespace, function string, v *api.Version) *sandbox.Program {
	return &sandbox.Program{
		Key:    fmt.Sprintf("%s/%s/%s/%d", tenant, namespace, function, v.Version),
		Digest: v.SHA256,
		Entry:  v.Config.Entry, Handler: v.Config.Handler,
		MemoryMB: v.Config.MemoryMB,
		Instance: v.Config.Isolation == api.IsolationInstance,
		Env:      v.Config.Env,
		Tenant:   tenant, Namespace: namespace, Function: function, Version: v.Version,
		Bundle: func(ctx context.Context) ([]byte, error) {
			tar, err := i.versions.Bundle(ctx, tenant, namespace, function, v.Version)
			if err != nil {
				return nil, err
			}
			if bundle.Digest(tar) != v.SHA256 {
				return nil, api.Errorf(api.CodeInternal, "the stored bundle of version %d does not match its digest", v.Version)
			}
			return tar, nil
		},
	}
}

// begin counts inv among the running work. A call by cs.invoke begins also while the
// engine shuts down: its caller is counted as long as it waits for the call.
func (i *Invoker) begin(inv *api.Invocation) error {
	if len(inv.Callers) == 0 {
		return i.enter()
	}
	i.active.Add(1)
	return nil
}

// enter counts a piece of work that Close waits for; the caller ends it with i.active.Done.
// It fails with CodeShuttingDown once Close has begun. Errors carry a RetryAfter of a
// second: another replica can serve the call.
func (i *Invoker) enter() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		err := api.Errorf(api.CodeShuttingDown, "this replica is shutting down")
		err.RetryAfter = time.Second
		return err
	}
	i.active.Add(1)
	return nil
}
