package sandbox

import (
	"time"

	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/invoker/sandbox/shares"
)

// family is the state of one version in a Pool while it has children or calls wait for it. The
// pool's mutex guards it.
type family struct {
	key      string
	line     *shares.Line  // the calls that wait, and what the version's calls hold
	idle     []*Sandbox    // warm ones, the most recently used last
	children int           // filling, busy and idle
	filling  int           // of these, those that load the program
	cpu      time.Duration // of an activation, an average of the last ones; 0 before the first has ended
	load     time.Duration // of a program, from the start of filling; 0 before the first was loaded
}

// Bounds of the children of one version. Beyond them a call waits for a warm child instead of
// starting one: where activations need the processor, more children than these only take its
// caches from each other, and a start costs as much as hundreds of activations. They do not
// apply to a call that has waited for its warmWait.
const (
	childrenPerProcessor    = 3
	maxChildrenPerProcessor = 8
	// serverWork is the processor time that the server needs for a call besides the
	// child's: while it works on one, another child is used.
	serverWork = 200 * time.Microsecond
)

// startsAtOnce is how many children load programs of one tenant at once for each processor,
// and leastStarts the least number. Starts need the processor: those of one tenant must not
// delay the calls of others, nor two slow ones its own.
const (
	startsAtOnce = 2
	leastStarts  = 4
)

// family returns what the pool knows of prog's version. The caller holds p.mu, and calls
// forget when it has neither started a child nor let a call wait.
func (p *Pool) family(prog *Program) *family {
	f := p.families[prog.Key]
	if f == nil {
		f = &family{key: prog.Key}
		f.line = p.ledger.Line(prog.Tenant, prog.Namespace+"/"+prog.Function, memory.BudgetBytes(prog.MemoryMB), func(w *shares.Waiter) bool {
			return p.ready(f, w.Value.(*waiter))
		})
		p.families[prog.Key] = f
	}
	return f
}

// forget removes f if it has neither children nor calls that wait. The caller holds p.mu.
func (p *Pool) forget(f *family) {
	if f.children == 0 && f.line.First() == nil && p.families[f.key] == f {
		delete(p.families, f.key)
		p.ledger.Forget(f.line)
	}
}

// mayStart reports whether a call of f's version starts a child without waiting for a warm one.
// The caller holds p.mu.
//
// A child that loads its program needs a processor, so no more of them than processors are of
// use at once.
func (p *Pool) mayStart(f *family) bool {
	return f.filling < p.processors && f.children < f.useful(p.processors) && p.mayFill(f)
}

// mayFill reports whether another child may load a program of the tenant. The caller holds p.mu.
func (p *Pool) mayFill(f *family) bool {
	return f.line.Tenant.Starting < max(leastStarts, startsAtOnce*p.processors)
}

// ready reports whether a call that waits takes room if there is some: it would find a warm
// child, or starts one. The caller holds p.mu.
func (p *Pool) ready(f *family, w *waiter) bool {
	return len(f.idle) > 0 || p.mayStart(f) || w.anyRoom && p.mayFill(f)
}

// useful returns how many children of f keep that many processors at work. For two: 6 if an activation takes 10 ms of processor time, 9 for 400 µs, 16 for 50 µs.
func (f *family) useful(processors int) int {
	n := childrenPerProcessor * processors
	if f.cpu > 0 {
		n += int(time.Duration(n) * serverWork / f.cpu)
	}
	return min(n, maxChildrenPerProcessor*processors)
}

// warmWait returns how long a call of f's version waits for a warm child before it starts one
// in any case: twice the time of a start, so that a call that waits in vain, for example
// because all others wait for something else, is not much slower than a cold start. The
// caller holds p.mu.
func (p *Pool) warmWait(f *family) time.Duration {
	longest := p.cfg.AcquireTimeout * 3 / 4
	if f.load > 0 {
		return min(2*f.load, longest)
	}
	return longest
}

// join counts s, which is to be filled. The caller holds p.mu.
func (p *Pool) join(s *Sandbox) {
	f := s.family
	f.children++
	f.filling++
	f.line.Tenant.Starting++
	p.ledger.Join(f.line)
	p.assigned++
	p.filling++
	p.reserved += s.memory
}

// filled ends the filling of s, which took the time that is given, or failed if that is 0. The
// caller holds p.mu.
func (p *Pool) filled(s *Sandbox, took time.Duration) {
	f := s.family
	f.filling--
	f.line.Tenant.Starting--
	p.filling--
	if took > 0 {
		f.load = average(f.load, took)
	}
}

// leave forgets s, which no call uses. The caller holds p.mu.
func (p *Pool) leave(s *Sandbox) {
	f := s.family
	f.children--
	p.ledger.Leave(f.line)
	p.assigned--
	p.reserved -= s.memory
	p.forget(f)
}

// average moves an average towards a value, by an eighth of the difference. An average of 0 is
// none yet.
func average(old, value time.Duration) time.Duration {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}
