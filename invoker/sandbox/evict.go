package sandbox

import (
	"slices"
	"time"
)

// makeRoom ends idle children until there is room for another one of f: first the tenant's
// own, if its cap requires it, then those of the tenant whose children keep most of the pool
// in proportion to its weight, of one tenant the least recently used first. So the warm
// children of a tenant do not displace those of others. Room for a call exists. The caller
// holds p.mu.
func (p *Pool) makeRoom(f *family) {
	for t := f.line.Tenant; t.Excess(f.line); p.counts.Evicted++ {
		own := p.eviction(func(s *Sandbox) bool { return s.family.line.Tenant == t })
		if own == nil {
			break // the cap was lowered below what calls use
		}
		p.evict(own, endEvicted)
	}
	for !p.fits(f.line.Need()) {
		p.evict(p.eviction(func(*Sandbox) bool { return true }), endEvicted)
		p.counts.Evicted++
	}
}

// eviction returns the idle sandbox that is ended first among those that may be, nil if there
// is none. The caller holds p.mu.
func (p *Pool) eviction(may func(*Sandbox) bool) (first *Sandbox) {
	most := -1.0
	for e := p.idleOrder.Front(); e != nil; e = e.Next() {
		s := e.Value.(*Sandbox)
		if !may(s) {
			continue
		}
		if kept := p.ledger.Kept(s.family.line.Tenant); kept > most {
			first, most = s, kept
		}
	}
	return first
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

// freeRoom ends a call's use of s, frees its room and serves waiters. The caller holds p.mu.
func (p *Pool) freeRoom(s *Sandbox) {
	now := time.Now()
	p.ledger.Free(s.family.line, now.Sub(s.since), now)
	p.leave(s)
	p.grant(now)
}

// removeIdle takes s out of the idle ones, not out of the room that is counted. The caller
// holds p.mu.
func (p *Pool) removeIdle(s *Sandbox) {
	p.idleOrder.Remove(s.idleAt)
	s.idleAt = nil
	f := s.family
	if last := len(f.idle) - 1; f.idle[last] == s {
		f.idle = f.idle[:last]
		return
	}
	i := slices.Index(f.idle, s)
	f.idle = slices.Delete(f.idle, i, i+1)
}
