package child

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/dop251/goja"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/durable"
)

// Durable steps. The function runs from its beginning in each activation of its run. A step is
// identified by its kind, its name, and the number of steps of both that the function has asked for
// before it, so that steps may run in parallel. A step that the run has recorded resolves with the
// recorded result; others run, and resolve when they are recorded.
//
//	ask       cs.step is called. The first call asks the server for the steps of the run
//	place     the run has the step's end: it is replayed; else it is fresh
//	advance   called when no script can continue: replays one step, in the order in which the
//	          steps ended; or begins the fresh ones; or parks
//	end       the step has ended: its record is sent, and the step is delivered in the order of
//	          the records
//
// The order of ends is the order in which the function gets results, now and in each replay.
// Therefore, when the replay of a function that depends on nothing else has no result left to
// deliver, the function has asked for every recorded step. If one is left, and the function asks
// for a new one while it waits for nothing else, it does not do what it did before: CodeHostStepOrder.
//
// An activation in which the function waits for nothing but sleeps, events, approvals and long
// backoffs parks: it ends, and the server continues the run later.
type steps struct {
	sent     bool // step.load
	loaded   bool
	at       time.Time // at which the time of the server was nowMS
	nowMS    int64
	recorded map[string]*step.Step
	unasked  map[string]*step.Step // of recorded, with an end
	counts   map[string]int

	asked  []*stepCall // before the steps were loaded
	replay []*stepCall
	fresh  []*stepCall
	ending []*stepCall // their records were sent, in the order of seq
	open   []*stepCall // they wait for what the server knows
	seq    int

	parking, parked bool
	// fault ends the activation as an error, whatever the function makes of it.
	fault goja.Value
}

// inPlace is the longest time that an activation waits itself.
const inPlace = time.Second

// errParked ends an activation whose run continues later.
var errParked = errors.New("parked")

// stepCall is a step that the function has asked for.
type stepCall struct {
	step.Step

	promise *deferred
	taken   string
	settled bool // of ending: its record was answered
	failure goja.Value

	fn                  goja.Callable
	ok                  bool
	most                int
	backoff, maxBackoff time.Duration
	timeout             time.Duration
	wait                time.Duration
	late                []byte // the result when the wait is over; nil for undefined
}

// askStep makes the promise of a step. It throws where the activation has no steps.
func (r *realm) askStep(c *stepCall) *deferred {
	c.promise = r.newDeferred()
	if !r.effect() {
		return c.promise
	}
	a := r.act
	if len(a.head.Job) == 0 || a.isBatch() || a.batch != nil {
		panic(r.newError(api.CodeHostStepUnavailable, "steps are for asynchronous runs of one job: invoke the function with the mode async, "+
			"or by a job, a schedule or a queue trigger; an object's handler queue gets batches, so export a function instead"))
	}
	if a.steps == nil {
		a.steps = &steps{counts: map[string]int{}, unasked: map[string]*step.Step{}}
	}
	s := a.steps
	of := string(c.Kind) + ":" + c.Name
	s.counts[of]++
	c.N = s.counts[of]
	if s.loaded {
		s.place(c)
		return c.promise
	}
	s.asked = append(s.asked, c)
	if !s.sent {
		s.sent = true
		loading := send(r, durable.Load, wire.None{}, nil, func(clock durable.Clock, list []byte) goja.Value {
			return s.load(r, clock, list)
		})
		a.onFailure(loading, func(why goja.Value) { s.refuse(why) })
	}
	return c.promise
}

// onFailure calls f when a promise of the platform's own is rejected.
func (a *activation) onFailure(d *deferred, f func(why goja.Value)) {
	a.realm.follow(d.promise, func(goja.Value) {}, f)
}

// follow calls one of two functions when a promise is settled.
func (r *realm) follow(p *goja.Promise, fulfilled, rejected func(goja.Value)) {
	promise := r.vm.ToValue(p).(*goja.Object)
	then, ok := goja.AssertFunction(promise.Get("then"))
	if !ok {
		panic(r.vm.NewTypeError("Promise.prototype.then is not a function"))
	}
	reaction := func(f func(goja.Value)) goja.Value {
		return r.vm.ToValue(func(call goja.FunctionCall) goja.Value {
			f(call.Argument(0))
			return goja.Undefined()
		})
	}
	_, err := then(promise, reaction(fulfilled), reaction(rejected))
	must(err)
}

// load takes the steps of the run.
func (s *steps) load(r *realm, clock durable.Clock, list []byte) goja.Value {
	var known []step.Step
	if err := json.Unmarshal(list, &known); err != nil {
		panic(r.newError(api.CodeInternal, "the host's answer cannot be read"))
	}
	s.loaded, s.at, s.nowMS = true, time.Now(), clock.NowMS
	s.recorded = make(map[string]*step.Step, len(known))
	for i := range known {
		k := &known[i]
		s.recorded[k.Key()] = k
		if k.Status.Final() {
			s.unasked[k.Key()] = k
			s.seq = max(s.seq, k.Seq)
		}
	}
	for _, c := range s.asked {
		s.place(c)
	}
	s.asked = nil
	return goja.Undefined()
}

// refuse rejects the steps that wait for those of the run, which cannot be read.
func (s *steps) refuse(why goja.Value) {
	s.fault = why
	for _, c := range s.asked {
		must(c.promise.reject(why))
	}
	s.asked = nil
}

// now returns the time of the server, in milliseconds.
func (s *steps) now() int64 { return s.nowMS + time.Since(s.at).Milliseconds() }

// place puts a step that the function asks for into one of the lists.
func (s *steps) place(c *stepCall) {
	key := c.Key()
	known := s.recorded[key]
	if known == nil {
		s.fresh = append(s.fresh, c)
		return
	}
	message := c.Message
	c.Step = *known
	c.Message = cmp.Or(c.Message, message)
	if !known.Status.Final() {
		s.fresh = append(s.fresh, c)
		return
	}
	delete(s.unasked, key)
	s.replay = append(s.replay, c)
}

// waiting reports whether a step can still continue the function.
func (s *steps) waiting() bool {
	return s != nil && len(s.asked)+len(s.replay)+len(s.fresh)+len(s.ending)+len(s.open) > 0
}

// advance continues the steps, see steps. moved is false if there is nothing to do but to wait.
func (a *activation) advance() (moved bool, err error) {
	s := a.steps
	if s == nil {
		return false, nil
	}
	switch {
	case s.parked:
		return false, errParked
	case len(s.ending) > 0 && s.ending[0].settled:
		c := s.ending[0]
		s.ending = s.ending[1:]
		return true, a.deliver(c)
	case len(s.replay) > 0:
		first := 0
		for i, c := range s.replay {
			if c.Seq < s.replay[first].Seq {
				first = i
			}
		}
		c := s.replay[first]
		s.replay = slices.Delete(s.replay, first, first+1)
		return true, a.deliver(c)
	case len(s.fresh) > 0 && s.fault != nil:
		c := s.fresh[0]
		s.fresh = s.fresh[1:]
		return true, c.promise.reject(s.fault)
	case len(s.fresh) > 0 && len(s.unasked) > 0 && a.loop.empty() && len(s.ending) == 0:
		c := s.fresh[0]
		s.fresh = s.fresh[1:]
		s.fault = a.realm.newError(api.CodeHostStepOrder, "the run recorded the "+described(s.left())+" where the function now asks for the "+
			described(&c.Step)+": a function must ask for the same steps in each activation of a run")
		return true, c.promise.reject(s.fault)
	case len(s.fresh) > 0:
		fresh := s.fresh
		s.fresh = nil
		for _, c := range fresh {
			if err := a.begin(c); err != nil {
				return true, err
			}
		}
		return true, nil
	case len(s.open) > 0 && !s.parking && len(s.ending) == 0 && a.loop.empty():
		return true, a.realm.run(a.park)
	}
	return false, nil
}

// left returns the first recorded step that the function has not asked for.
func (s *steps) left() *step.Step {
	var first *step.Step
	for _, k := range s.unasked {
		if first == nil || k.Seq < first.Seq {
			first = k
		}
	}
	return first
}

// described names a step in a message.
func described(s *step.Step) string {
	quoted, err := json.Marshal(s.Label())
	if err != nil {
		return string(s.Kind)
	}
	return string(s.Kind) + " " + string(quoted)
}

// deliver settles the promise of a step that has ended and is recorded.
func (a *activation) deliver(c *stepCall) error {
	r := a.realm
	if c.failure != nil {
		return c.promise.reject(c.failure)
	}
	return c.promise.settle(r, func() goja.Value {
		if c.Status == step.StatusFailed {
			panic(r.stepError(c))
		}
		if len(c.Result) == 0 {
			return goja.Undefined()
		}
		return r.parsed(c.Result)
	})
}

// stepError makes the error of a step that failed, the same now and in each replay: with the message
// and the name of what the step threw, and its code as cause.
func (r *realm) stepError(c *stepCall) goja.Value {
	e := c.Error
	if e == nil {
		e = &step.Failure{Message: "the step failed"}
	}
	code := api.CodeHostStepFailed
	made := r.newError(code, e.Message)
	if e.Name != "" && e.Name != "Error" {
		must(made.DefineDataProperty("name", r.vm.ToValue(e.Name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE))
	}
	must(made.DefineDataProperty("step", r.vm.ToValue(c.Label()), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	must(made.DefineDataProperty("attempts", r.vm.ToValue(c.Attempts), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	if e.Code != "" {
		must(made.DefineDataProperty("causeCode", r.vm.ToValue(e.Code), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE))
	}
	return made
}

// begin begins or continues a step that has not ended.
func (a *activation) begin(c *stepCall) error {
	s := a.steps
	known := c.Status != ""
	if c.StartedAtMS == 0 {
		c.StartedAtMS = s.now()
	}
	switch {
	case c.Kind == step.KindStep && !known:
		return a.execute(c)
	case known:
		return a.realm.run(func() { a.waitFor(c) })
	case c.Kind == step.KindSleep && c.wait <= inPlace:
		c.DueAtMS = s.now() + c.wait.Milliseconds()
		return a.realm.run(func() { a.waitFor(c) })
	}
	c.Status, c.DueAtMS = step.StatusWaiting, s.now()+c.wait.Milliseconds()
	return a.realm.run(func() { a.note(c) })
}

// waitFor waits until a step is due: in place if that is soon, and the activation need not know more.
func (a *activation) waitFor(c *stepCall) {
	left := time.Duration(c.DueAtMS-a.steps.now()) * time.Millisecond
	if left > inPlace || c.Kind == step.KindEvent || c.Kind == step.KindApproval {
		a.steps.open = append(a.steps.open, c)
		return
	}
	a.realm.after("cs.sleep", max(0, left), 0, func() error { return a.due(c) })
}

// due continues a step whose time has come.
func (a *activation) due(c *stepCall) error {
	if c.Kind == step.KindStep {
		return a.execute(c)
	}
	return a.realm.run(func() { a.end(c, step.StatusCompleted, c.late) })
}

// note records a step that has not ended, and then waits for it.
func (a *activation) note(c *stepCall) {
	record := sendOnly(a.realm, durable.Record, durable.Entry{Step: c.Step}, nil)
	a.realm.follow(record.promise, func(goja.Value) { a.waitFor(c) }, func(why goja.Value) {
		a.steps.fault = why
		must(c.promise.reject(why))
	})
}

// end records the end of a step, and lets it be delivered in its turn.
func (a *activation) end(c *stepCall, status step.Status, result []byte) {
	s := a.steps
	s.seq++
	c.Seq, c.Status, c.EndedAtMS, c.DueAtMS, c.Result = s.seq, status, s.now(), 0, nil
	if status == step.StatusCompleted {
		c.Error = nil
	}
	s.ending = append(s.ending, c)
	record := sendOnly(a.realm, durable.Record, durable.Entry{Step: c.Step, Taken: c.taken}, result)
	a.realm.follow(record.promise, func(goja.Value) { c.settled, c.Result = true, result }, func(why goja.Value) {
		c.settled, c.failure, s.fault = true, why, why
	})
}

// checkSteps returns how a function ended that returned or threw err: with the fault of its steps, if
// there is one, also if the function caught it. A function that returned without having asked for a
// recorded step is one.
func (a *activation) checkSteps(err error) error {
	s := a.steps
	if s == nil || errors.Is(err, errParked) || errors.Is(err, errStopped) || uncatchable(err) {
		return err
	}
	if s.fault == nil && err == nil && len(s.unasked) > 0 {
		s.fault = a.realm.newError(api.CodeHostStepOrder, "the run recorded the "+described(s.left())+
			", which the function no longer asks for: a function must ask for the same steps in each activation of a run")
	}
	if s.fault == nil {
		return err
	}
	return &thrown{value: s.fault}
}
