package sandbox

import "time"

// family is what a Pool knows of the children of one version while it has any. The pool's
// mutex guards it.
type family struct {
	children int           // filling, busy and idle
	filling  int           // of these, those that load the program
	cpu      time.Duration // of an activation, an average of the last ones; 0 before the first has ended
	load     time.Duration // of a program, from the start of filling; 0 before the first was loaded
}

// Bounds of the children of one version. Beyond them a call waits for a warm child instead of
// starting one: where activations need the processor, more children than these only take its
// caches from each other, and a start costs as much as hundreds of activations. They do not
// hold for a call that has waited for as long as patience says.
const (
	childrenPerProcessor    = 3
	maxChildrenPerProcessor = 8
	// serverWork is the processor time that the server needs for a call besides the
	// child's: while it works on one, another child is used.
	serverWork = 200 * time.Microsecond
)

// mayStart reports whether a call of the version with that key starts a child without waiting
// for a warm one. The caller holds p.mu.
//
// A child that loads its program needs a processor, so no more of them than processors are of
// use at once.
func (p *Pool) mayStart(key string) bool {
	f := p.families[key]
	return f == nil || f.filling < p.processors && f.children < f.useful(p.processors)
}

// starved reports whether a call waits for room, and not only for a warm child of its version.
// The caller holds p.mu.
func (p *Pool) starved() bool {
	for e := p.waiters.Front(); e != nil; e = e.Next() {
		w := e.Value.(*waiter)
		if w.impatient || p.mayStart(w.prog.Key) {
			return true
		}
	}
	return false
}

// useful returns how many children of f keep that many processors at work. For two: 6 if an activation takes 10 ms of processor time, 9 for 400 µs, 16 for 50 µs.
func (f *family) useful(processors int) int {
	n := childrenPerProcessor * processors
	if f.cpu > 0 {
		n += int(time.Duration(n) * serverWork / f.cpu)
	}
	return min(n, maxChildrenPerProcessor*processors)
}

// patience returns how long a call of the version with that key waits for a warm child before
// it starts one in any case: twice the time of a start, so that a call that waits in vain, for
// example because all others wait for something else, is not much slower than a cold start.
// The caller holds p.mu.
func (p *Pool) patience(key string) time.Duration {
	longest := p.cfg.AcquireTimeout * 3 / 4
	if f := p.families[key]; f != nil && f.load > 0 {
		return min(2*f.load, longest)
	}
	return longest
}

// join counts s, which is to be filled. The caller holds p.mu.
func (p *Pool) join(s *Sandbox) {
	f := p.families[s.key]
	if f == nil {
		f = new(family)
		p.families[s.key] = f
	}
	f.children++
	f.filling++
	p.assigned++
	p.filling++
	p.reserved += s.memory
}

// filled ends the filling of s, which took the time that is given, or failed if that is 0. The
// caller holds p.mu.
func (p *Pool) filled(s *Sandbox, took time.Duration) {
	f := p.families[s.key]
	f.filling--
	p.filling--
	if took > 0 {
		f.load = average(f.load, took)
	}
}

// leave forgets s. The caller holds p.mu.
func (p *Pool) leave(s *Sandbox) {
	f := p.families[s.key]
	f.children--
	if f.children == 0 {
		delete(p.families, s.key)
	}
	p.assigned--
	p.reserved -= s.memory
}

// average moves an average towards a value, by an eighth of the difference. An average of 0 is
// none yet.
func average(old, value time.Duration) time.Duration {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}
