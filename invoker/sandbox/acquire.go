package sandbox

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/maypok86/otter/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/invoker/sandbox/shares"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Sandbox is a child that has its program: acquired from a Pool, returned by Release. It
// runs one activation at a time. Between Acquire and Release only its user touches it;
// while it is idle, the pool's mutex guards it.
type Sandbox struct {
	pool   *Pool
	prog   *Program
	child  *process
	family *family
	memory int64 // its share of the pool's budget, in bytes
	cold   bool
	since  time.Time // of its acquisition
	spent  bool      // must not be used again
	// Kept is what the caller knows of the activations that the child has served. It has
	// the life of the child.
	Kept  any
	frame []byte // reused for Invoke frames
	// billed is the child's processor time that belongs to no activation to come:
	// its start, and what it has reported.
	billed time.Duration
	used   time.Duration // processor time of the activation; 0 before its end

	// While idle:
	idleAt    *list.Element // in Pool.idleOrder; nil while it is not idle
	idleSince time.Time
	seen      time.Time     // idleSince at the keeper's last check
	seenCPU   time.Duration // the child's processor time then
}

// ids name the function that s serves, in a log line.
func (s *Sandbox) ids() []zap.Field {
	return []zap.Field{
		zap.String("tenant", s.prog.Tenant), zap.String("namespace", s.prog.Namespace),
		zap.String("function", s.prog.Function), zap.Int64("version", s.prog.Version),
	}
}

// Instance reports whether the state of the child's modules persists between activations.
func (s *Sandbox) Instance() bool { return s.prog.Instance }

// Retire lets Release end the child. The caller holds the sandbox.
func (s *Sandbox) Retire() { s.spent = true }

// Cold reports whether this acquisition had to assign a child.
func (s *Sandbox) Cold() bool { return s.cold }

// waiter is an Acquire that found no room, or that waits for a warm child because enough of
// them serve its version. granted receives one sandbox, which may still need a child, or is
// closed by Close. The sender removes the waiter from the ledger in the same step, under the
// pool's mutex.
type waiter struct {
	shares.Waiter

	prog    *Program
	granted chan *Sandbox // holds one; closed by Close
	anyRoom bool          // takes any room, however many children its version has
}

// Acquire returns a sandbox that serves prog: a warm one, else a spare that is
// assigned, else a new one. Where enough children serve the version already, it first waits a
// moment for one of them (see family). Where there is no room, or none that the tenant may
// take (package shares), it waits, for no longer than Config.AcquireTimeout in all. Errors:
// CodeCapacityLimit, with the time after which to repeat the call; CodeShuttingDown;
// CodeValidationSource where a child could not use the source; ctx's; those of
// prog.Bundle; anything else is a failure to start a child.
//
// The caller must Release the sandbox. own is called before the call waits for other calls of
// its tenant, and may be nil: such a wait is no sign that the server is overloaded. Every version has children of its own: a warm one of
// another version is only ended, if that makes room. ctx applies to the wait and to the
// load; a sandbox that was acquired outlives it.
func (p *Pool) Acquire(ctx context.Context, prog *Program, own func()) (*Sandbox, error) {
	for {
		s, err := p.reserve(ctx, prog, own)
		if err != nil {
			return nil, err
		}
		if s.child == nil {
			return p.fill(ctx, s, prog)
		}
		if s.child.alive() {
			s.cold = false
			return s, nil
		}
		p.discard(s) // it died while idle: take another
	}
}

// Warm starts a child for prog and leaves it idle, where prog has no child and there is room
// without ending one. Errors: those of Acquire but CodeCapacityLimit.
func (p *Pool) Warm(ctx context.Context, prog *Program) error {
	p.mu.Lock()
	if p.closed || p.families[prog.Key] != nil || p.ledger.Waiters() > 0 || !p.fits(memory.BudgetBytes(prog.MemoryMB)) {
		p.mu.Unlock()
		return nil
	}
	f := p.family(prog)
	if !p.mayStart(f) || !p.ledger.Admits(f.line) || f.line.Tenant.Excess(f.line) {
		p.forget(f)
		p.mu.Unlock()
		return nil
	}
	s := p.start(f, prog)
	p.mu.Unlock()
	s, err := p.fill(ctx, s, prog)
	if err == nil {
		p.Release(s)
	}
	return err
}

// fits reports whether there is room for another child of that budget besides all that live.
// The caller holds p.mu.
func (p *Pool) fits(memory int64) bool {
	return p.assigned+1 <= p.cfg.MaxProcesses && p.reserved+memory <= p.cfg.MemoryBudgetBytes
}

// Room returns how many calls of Acquire would be served without waiting now, for a version of
// the tenant with that key and memory limit; "" is a version that is not known. The answer may
// be out of date when it arrives.
func (p *Pool) Room(tenant, key string, memoryMB int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0
	}
	room := p.ledger.Headroom(tenant, memory.BudgetBytes(memoryMB))
	if p.ledger.Starved(tenant) {
		warm := 0
		if f := p.families[key]; f != nil && f.line.First() == nil {
			warm = len(f.idle)
		}
		return min(room, warm)
	}
	return room
}

// MaxProcesses returns the largest number of sandboxes that serve a version at once.
func (p *Pool) MaxProcesses() int { return p.cfg.MaxProcesses }

// MaxOfTenant returns the largest number of sandboxes that the calls of one tenant use at once.
func (p *Pool) MaxOfTenant() int { return p.ledger.Most() }

// Release ends the use of s. It stays warm unless its child must retire. It must be called
// exactly once for each Acquire; s must not be used afterwards. A waiter for the same
// version gets s before any other waiter, unless the place is another's (shares.PassesOn).
func (p *Pool) Release(s *Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.spent || p.closed || s.child.worn.Load() || p.children[s.child] != s {
		p.drop(s, s.child.retirement())
		return
	}
	f := s.family
	if s.used > 0 {
		f.cpu = average(f.cpu, s.used)
		s.used = 0
	}
	now := time.Now()
	if next := f.line.First(); next != nil && !p.ledger.PassesOn(f.line, now) {
		p.ledger.Pass(next, now.Sub(s.since), now)
		s.since = now
		p.counts.Warm++
		next.Value.(*waiter).granted <- s
		return
	}
	s.idleSince = now
	s.idleAt = p.idleOrder.PushBack(s)
	f.idle = append(f.idle, s)
	p.ledger.Free(f.line, now.Sub(s.since), now)
	p.grant(now)
}

// reserve returns an idle sandbox of prog, or a new one without a child, for which room in
// the pool is reserved.
//
// A caller whose program has no warm child does not overtake the waiters. Errors:
// CodeShuttingDown, CodeCapacityLimit, ctx's.
func (p *Pool) reserve(ctx context.Context, prog *Program, own func()) (*Sandbox, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	if !p.ledger.Possible(memory.BudgetBytes(prog.MemoryMB)) {
		p.counts.Refused++
		p.mu.Unlock()
		return nil, api.Errorf(api.CodeCapacityLimit,
			"a memory limit of %d MB is more than the sandboxes of one tenant may use together on this server (%d MB, sandbox-memory-budget without sandbox-reserve)",
			prog.MemoryMB, p.largest())
	}
	f := p.family(prog)
	if warm := len(f.idle) > 0; p.ledger.Direct(f.line, warm) && (warm || p.mayStart(f)) {
		if s := p.take(f, prog); s != nil {
			p.mu.Unlock()
			return s, nil
		}
	}
	now := time.Now()
	if !p.ledger.MayWait(f.line, now) {
		err := p.refusal(f, now, "too many calls of this tenant wait for a sandbox already")
		p.forget(f)
		p.mu.Unlock()
		return nil, err
	}
	w := &waiter{prog: prog, granted: make(chan *Sandbox, 1)}
	w.Waiter = shares.Waiter{Line: f.line, Since: now, Value: w}
	p.ledger.Wait(&w.Waiter)
	warmWait := p.warmWait(f)
	bound := own != nil && p.ledger.OwnBound(f.line)
	p.grant(now) // those before it may all wait for warm children
	p.mu.Unlock()
	if bound {
		own()
	}
	return p.wait(ctx, f, w, warmWait)
}

// largest returns the largest memory limit, in MB, of a version that can run.
func (p *Pool) largest() int64 {
	return (p.cfg.MemoryBudgetBytes - p.cfg.reservedBytes()) * 10 / 22 / megabyte
}

// refusal counts a call that gets no room, and returns its error. The caller holds p.mu.
func (p *Pool) refusal(f *family, now time.Time, why string) error {
	p.counts.Refused++
	err := api.Errorf(api.CodeCapacityLimit, "%s", why)
	err.RetryAfter = p.ledger.RetryAfter(f.line, now)
	return err
}

// wait returns the sandbox that w is granted. After warmWait, w takes any room. After the
// timeout or the end of ctx, wait looks once more, under the mutex: a sandbox that was granted
// meanwhile would be lost otherwise.
func (p *Pool) wait(ctx context.Context, f *family, w *waiter, warmWait time.Duration) (*Sandbox, error) {
	defer p.metrics.wait(w.prog.Tenant, w.Since)
	timeout := time.NewTimer(p.cfg.AcquireTimeout)
	defer timeout.Stop()
	warm := time.NewTimer(warmWait)
	defer warm.Stop()
	for {
		select {
		case s, ok := <-w.granted:
			if !ok {
				return nil, errClosed()
			}
			return s, nil
		case now := <-warm.C:
			p.mu.Lock()
			w.anyRoom = true
			p.grant(now)
			p.mu.Unlock()
		case <-ctx.Done():
			return p.giveUp(f, w, ctx.Err())
		case now := <-timeout.C:
			if extra := p.starting(f, w, now); extra > 0 {
				timeout.Reset(extra)
				continue
			}
			return p.giveUp(f, w, nil)
		}
	}
}

// starting returns how much longer w waits, 0 if it is refused now. It is not refused while
// only the tenant's other starts keep it from one, because then it is about as far as a call
// whose child loads: LoadTimeout bounds both.
func (p *Pool) starting(f *family, w *waiter, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.mayFill(f) || !p.ledger.Admits(f.line) {
		return 0
	}
	return max(0, min(p.cfg.AcquireTimeout, p.cfg.LoadTimeout-now.Sub(w.Since)))
}

// giveUp ends a wait with err, or as a refusal if that is nil, unless w was granted a sandbox
// in the last moment.
func (p *Pool) giveUp(f *family, w *waiter, err error) (*Sandbox, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case s, ok := <-w.granted:
		if ok {
			return s, nil
		}
		return nil, errClosed()
	default:
	}
	now := time.Now()
	p.ledger.Remove(&w.Waiter)
	if err != nil {
		p.counts.Refused++
	} else {
		why := "all sandboxes of this server are busy"
		if p.ledger.Busy() < p.cfg.MaxProcesses {
			why = "the calls of this tenant use all sandboxes that are its share of this server"
		}
		err = p.refusal(f, now, why)
	}
	p.forget(f)
	p.grant(now) // room may have been held back for it
	return nil, err
}

// take returns a sandbox for a call that begins, nil where there is no room that the tenant
// may take; the caller holds p.mu. It ends idle children only where that makes room.
//
// With a budget of 300 MB, a busy child of 141 MB and an idle one of 141 MB, a new child of
// 141 MB takes the place of the idle one; a new child of 282 MB does not fit beside the
// busy one, so nothing is ended and take returns nil.
func (p *Pool) take(f *family, prog *Program) *Sandbox {
	if !p.ledger.Admits(f.line) {
		return nil
	}
	if n := len(f.idle); n > 0 {
		s := f.idle[n-1]
		p.removeIdle(s)
		p.ledger.Use(f.line)
		s.since = time.Now()
		p.counts.Warm++
		return s
	}
	p.makeRoom(f)
	p.counts.Cold++
	return p.start(f, prog)
}

// start returns a sandbox without a child, for which there is room. The caller holds p.mu, and
// fills it.
func (p *Pool) start(f *family, prog *Program) *Sandbox {
	s := &Sandbox{pool: p, prog: prog, family: f, memory: memory.BudgetBytes(prog.MemoryMB), cold: true, since: time.Now()}
	p.ledger.Use(f.line)
	p.join(s)
	return s
}

// grant serves waiters after a change, as far as there is room, in the order of package shares.
// The caller holds p.mu.
func (p *Pool) grant(now time.Time) {
	for {
		next := p.ledger.Next(now)
		if next == nil {
			break
		}
		w := next.Value.(*waiter)
		p.ledger.Remove(next)
		w.granted <- p.take(p.families[w.prog.Key], w.prog) // not nil: Next saw the room
	}
	if at := p.ledger.Recheck(); !at.IsZero() && !p.closed {
		p.recheck.Reset(at.Sub(now))
	}
}

// grantAgain serves waiters for whom room was held back in vain for another.
func (p *Pool) grantAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grant(time.Now())
}

// fill loads the program into a child for s, for which room is reserved.
//
// On an error the room is free again and the child, if there is one, is killed. The start
// of a child and the loading of its program are each bounded by Config.LoadTimeout.
func (p *Pool) fill(ctx context.Context, s *Sandbox, prog *Program) (*Sandbox, error) {
	began := time.Now()
	err := p.load(ctx, s, prog)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.filled(s, 0)
		p.drop(s, endUnusable)
		return nil, err
	}
	took := time.Since(began)
	p.filled(s, took)
	if _, alive := p.children[s.child]; !alive {
		p.drop(s, endCrash)
		return nil, errors.New("sandbox: the child died before its first activation")
	}
	p.children[s.child] = s
	s.billed = s.child.cpuTime()
	p.metrics.coldStarts.Observe(took.Seconds())
	p.grant(time.Now()) // another may start now
	return s, nil
}

// load finds or makes the script and assigns it. The script is in this process's cache, in
// the store, or made from the bundle. Of concurrent loads of one bundle, the first compiles
// it in the child that then serves, and the others wait for its script.
//
// The script is bound to tenant, digest, entry and handler, so the next version with the
// same bundle, or the same version after all of its children have ended, compiles nothing.
func (p *Pool) load(ctx context.Context, s *Sandbox, prog *Program) error {
	compile := func(ctx context.Context, _ scriptKey) ([]byte, error) {
		if script := p.storedScript(ctx, prog); script != nil {
			return script, nil
		}
		source, err := prog.Bundle(ctx)
		if err != nil {
			return nil, err
		}
		script, err := p.assign(ctx, s, prog, source, false)
		if err == nil {
			p.saveScript(ctx, prog, script)
		}
		return script, err
	}
	if prog.Digest == "" {
		_, err := compile(ctx, scriptKey{})
		return err
	}
	script, err := p.scripts.Get(ctx, prog.scriptKey(), otter.LoaderFunc[scriptKey, []byte](compile))
	if err != nil || s.child != nil {
		return err
	}
	_, err = p.assign(ctx, s, prog, script, true)
	if api.ErrorCode(err) != api.CodeValidationSource {
		return err
	}
	// The publish accepted the source, so the kept script is at fault.
	p.scripts.Invalidate(prog.scriptKey())
	source, err := prog.Bundle(ctx)
	if err != nil {
		return err
	}
	script, err = p.assign(ctx, s, prog, source, false)
	if err == nil {
		p.scripts.Set(prog.scriptKey(), script)
		p.saveScript(ctx, prog, script)
	}
	return err
}

// assign takes a child for s and loads the program into it.
//
// source is a bundle tar, or a script if compiled is true; the result is the script that
// was compiled, nil if compiled is true.
func (p *Pool) assign(ctx context.Context, s *Sandbox, prog *Program, source []byte, compiled bool) ([]byte, error) {
	child := p.takeSpare()
	if child == nil {
		var err error
		child, err = p.spawn(ctx)
		if err != nil {
			return nil, err
		}
	}
	if s.child != nil {
		s.child.end(endUnusable) // the cache asked for a second load
	}
	s.child = child
	p.confine(child, prog.Tenant)
	script, err := child.assign(ctx, prog.assignment(compiled), source)
	if err == nil {
		p.tightenBox(child, prog.MemoryMB)
	}
	return script, err
}

// Bounds of an instance's life. They limit what a slow leak, or a state that has gone wrong
// without an error, can do; evaluating the modules again is cheap beside them.
const (
	instanceActivations = 100_000
	instanceAge         = 30 * time.Minute
)

// assignment returns the head of the Assign frame for p.
func (p *Program) assignment(compiled bool) wire.Assign {
	var instance *wire.Instance
	if p.Instance {
		instance = &wire.Instance{Activations: instanceActivations, AgeMS: instanceAge.Milliseconds()}
	}
	return wire.Assign{
		Instance: instance,
		Entry:    p.Entry, Handler: p.Handler, MemoryMB: p.MemoryMB, Env: p.Env,
		Tenant: p.Tenant, Namespace: p.Namespace, Function: p.Function, Version: p.Version,
		Compiled: compiled,
	}
}

func errClosed() error { return api.Errorf(api.CodeShuttingDown, "this server is shutting down") }
