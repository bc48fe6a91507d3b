package sandbox

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/maypok86/otter/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Sandbox is a child that has its program: acquired from a Pool, returned by Release. It
// runs one activation at a time. Between Acquire and Release only its user touches it;
// while it is idle, the pool's mutex guards it.
type Sandbox struct {
	pool   *Pool
	prog   *Program
	child  *process
	key    string
	memory int64 // its share of the pool's budget, in bytes
	cold   bool
	spent  bool // must not be used again
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
// closed by Close. The sender removes the waiter from the list in the same step, under the
// pool's mutex.
type waiter struct {
	prog      *Program
	granted   chan *Sandbox // holds one; closed by Close
	impatient bool          // takes any room, however many children its version has
}

// Acquire returns a sandbox that serves prog: a warm one, else a spare that is
// assigned, else a new one. Where enough children serve the version already, it first waits a
// moment for one of them (see family). Where there is no room it waits, for no longer than
// Config.AcquireTimeout in all. Errors: CodeCapacityLimit; CodeShuttingDown;
// CodeValidationSource where a child could not use the source; ctx's; those of
// prog.Bundle; anything else is a failure to start a child.
//
// The caller must Release the sandbox. Every version has children of its own: a warm one of
// another version is only ended, if that makes room. ctx applies to the wait and to the
// load; a sandbox that was acquired outlives it.
func (p *Pool) Acquire(ctx context.Context, prog *Program) (*Sandbox, error) {
	for {
		s, err := p.reserve(ctx, prog)
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
	if p.closed || p.families[prog.Key] != nil || p.starved() || !p.fits(BudgetBytes(prog.MemoryMB)) {
		p.mu.Unlock()
		return nil
	}
	s := p.start(prog)
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

// Room returns how many calls of Acquire would be served without waiting now, for a version
// of that key and memory limit. The answer may be out of date when it arrives.
func (p *Pool) Room(key string, memoryMB int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0
	}
	if p.starved() {
		return len(p.idle[key])
	}
	byProcesses := p.cfg.MaxProcesses - (p.assigned - p.idleOrder.Len())
	byMemory := (p.cfg.MemoryBudgetBytes - (p.reserved - p.idleBytes)) / BudgetBytes(memoryMB)
	return max(0, min(byProcesses, int(byMemory)))
}

// MaxProcesses returns the largest number of sandboxes that serve a version at once.
func (p *Pool) MaxProcesses() int { return p.cfg.MaxProcesses }

// Release ends the use of s. It stays warm unless its child must retire. It must be called
// exactly once for each Acquire; s must not be used afterwards. A waiter for the same
// program gets s before any other waiter.
func (p *Pool) Release(s *Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.spent || p.closed || p.children[s.child] != s {
		p.drop(s, s.child.retirement())
		return
	}
	if s.used > 0 {
		f := p.families[s.key]
		f.cpu = average(f.cpu, s.used)
		s.used = 0
	}
	s.idleSince = time.Now()
	s.idleAt = p.idleOrder.PushBack(s)
	p.idle[s.key] = append(p.idle[s.key], s)
	p.idleBytes += s.memory
	p.grant(s.key)
}

// reserve returns an idle sandbox of prog, or a new one without a child, for which room in
// the pool is reserved.
//
// A caller whose program has no warm child does not overtake the waiters. Errors:
// CodeShuttingDown, CodeCapacityLimit, ctx's.
func (p *Pool) reserve(ctx context.Context, prog *Program) (*Sandbox, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	if need := BudgetBytes(prog.MemoryMB); need > p.cfg.MemoryBudgetBytes {
		p.counts.Refused++
		p.mu.Unlock()
		return nil, api.Errorf(api.CodeCapacityLimit,
			"a memory limit of %d MB is more than this server's sandboxes may use together", prog.MemoryMB)
	}
	start := p.mayStart(prog.Key)
	if start && p.waiters.Len() == 0 || len(p.idle[prog.Key]) > 0 {
		if s := p.take(prog); s != nil {
			p.mu.Unlock()
			return s, nil
		}
	}
	w := &waiter{prog: prog, granted: make(chan *Sandbox, 1)}
	e := p.waiters.PushBack(w)
	patience := p.patience(prog.Key)
	if start {
		p.grant("") // those before it may all wait for warm children
	}
	p.mu.Unlock()
	return p.wait(ctx, e, w, patience)
}

// wait returns the sandbox that w is granted. After the timeout or the end of ctx it looks
// once more, under the mutex: a sandbox that was granted meanwhile would be lost otherwise.
func (p *Pool) wait(ctx context.Context, e *list.Element, w *waiter, patience time.Duration) (*Sandbox, error) {
	timeout := time.NewTimer(p.cfg.AcquireTimeout)
	defer timeout.Stop()
	patient := time.NewTimer(patience)
	defer patient.Stop()
	for {
		select {
		case s, ok := <-w.granted:
			if !ok {
				return nil, errClosed()
			}
			return s, nil
		case <-patient.C:
			p.mu.Lock()
			w.impatient = true
			p.grant("")
			p.mu.Unlock()
		case <-ctx.Done():
			return p.giveUp(e, w, ctx.Err())
		case <-timeout.C:
			busy := api.Errorf(api.CodeCapacityLimit, "all sandboxes of this server are busy")
			busy.RetryAfter = time.Second
			return p.giveUp(e, w, busy)
		}
	}
}

// giveUp ends a wait with err, unless w was granted a sandbox in the last moment.
func (p *Pool) giveUp(e *list.Element, w *waiter, err error) (*Sandbox, error) {
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
	p.waiters.Remove(e)
	p.counts.Refused++
	return nil, err
}

// take is reserve without waiting; the caller holds p.mu. It ends idle children, the least
// recently used first, only where that makes room.
//
// With a budget of 300 MB, a busy child of 141 MB and an idle one of 141 MB, a new child of
// 141 MB takes the place of the idle one; a new child of 282 MB does not fit beside the
// busy one, so nothing is ended and take returns nil.
func (p *Pool) take(prog *Program) *Sandbox {
	if warm := p.idle[prog.Key]; len(warm) > 0 {
		s := warm[len(warm)-1]
		p.removeIdle(s)
		p.counts.Warm++
		return s
	}
	need := BudgetBytes(prog.MemoryMB)
	busy := p.assigned - p.idleOrder.Len()
	if busy+1 > p.cfg.MaxProcesses || p.reserved-p.idleBytes+need > p.cfg.MemoryBudgetBytes {
		return nil
	}
	for !p.fits(need) {
		p.evict(p.idleOrder.Front().Value.(*Sandbox), endEvicted)
		p.counts.Evicted++
	}
	p.counts.Cold++
	return p.start(prog)
}

// start returns a sandbox without a child, for which there is room. The caller holds p.mu, and
// fills it.
func (p *Pool) start(prog *Program) *Sandbox {
	s := &Sandbox{pool: p, prog: prog, key: prog.Key, memory: BudgetBytes(prog.MemoryMB), cold: true}
	p.join(s)
	return s
}

// grant serves waiters after a change; the caller holds p.mu. If key is not "", a sandbox of
// key has become idle, and the first waiter for key gets it, even if others wait longer.
// Otherwise the waiters are served in their order as far as there is room, but for those that
// still wait for a warm child.
//
// The order is strict, so that a version with a large memory limit is not overtaken for
// ever by small ones.
func (p *Pool) grant(key string) {
	for e := p.waiters.Front(); e != nil && key != ""; e = e.Next() {
		if w := e.Value.(*waiter); w.prog.Key == key {
			w.granted <- p.take(w.prog)
			p.waiters.Remove(e)
			return
		}
	}
	var next *list.Element
	for e := p.waiters.Front(); e != nil; e = next {
		next = e.Next()
		w := e.Value.(*waiter)
		if !w.impatient && !p.mayStart(w.prog.Key) {
			continue
		}
		s := p.take(w.prog)
		if s == nil {
			return
		}
		w.granted <- s
		p.waiters.Remove(e)
	}
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
	p.grant("") // another may start now
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
	return child.assign(ctx, prog.assignment(compiled), source)
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

// discard frees the room of s, whose child has died.
func (p *Pool) discard(s *Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(s, endCrash)
}

// drop ends the child of s, if it has one, for a reason, and frees its room. The caller
// holds p.mu.
func (p *Pool) drop(s *Sandbox, why endReason) {
	if s.child != nil {
		s.child.end(why)
	}
	p.freeRoom(s)
}

// evict ends an idle sandbox for a reason and frees its room. It serves no waiters: idle
// sandboxes count as room already (see take), so none waits for this one. The caller holds
// p.mu.
func (p *Pool) evict(s *Sandbox, why endReason) {
	p.removeIdle(s)
	s.child.end(why)
	p.leave(s)
}

// freeRoom frees the room that s reserved and serves waiters. The caller holds p.mu.
func (p *Pool) freeRoom(s *Sandbox) {
	p.leave(s)
	p.grant("")
}

// removeIdle takes s out of the idle ones, not out of the room that is counted. The caller
// holds p.mu.
func (p *Pool) removeIdle(s *Sandbox) {
	p.idleOrder.Remove(s.idleAt)
	s.idleAt = nil
	p.idleBytes -= s.memory
	warm := p.idle[s.key]
	for i := len(warm) - 1; i >= 0; i-- {
		if warm[i] == s {
			warm = append(warm[:i], warm[i+1:]...)
			break
		}
	}
	if len(warm) == 0 {
		delete(p.idle, s.key)
	} else {
		p.idle[s.key] = warm
	}
}

func errClosed() error { return api.Errorf(api.CodeShuttingDown, "this server is shutting down") }
