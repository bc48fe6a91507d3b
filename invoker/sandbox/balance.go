package sandbox

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/codesous/sous/invoker/sandbox/nursery"
	"github.com/codesous/sous/invoker/sandbox/priority"
)

// balance divides the processors between tenants until Close (package priority). Where cgroups
// do that, it is not run.
func (p *Pool) balance() {
	tick := time.NewTicker(priority.Interval)
	defer tick.Stop()
	planner, nice := priority.NewPlanner(p.processors), false
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		var changed int
		var refused []priority.Process
		changed, nice, refused = planner.Round(p.competitors(nice))
		p.metrics.niced.Add(float64(changed))
		for _, worn := range refused {
			p.replace(worn.Child.(*process))
		}
	}
}

// competitors returns the children that have a program, busy or idle; none where there is only
// one tenant, unless all is set because a child has another nice value than 0.
func (p *Pool) competitors(all bool) []priority.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !all && p.ledger.Tenants() < 2 {
		return nil
	}
	out := make([]priority.Process, 0, len(p.children))
	for child, s := range p.children {
		if s != nil {
			out = append(out, priority.Process{
				Tenant: s.prog.Tenant, Weight: s.family.line.Tenant.Weight(), Child: child, Nice: int(child.nice.Load()),
			})
		}
	}
	return out
}

// replace ends a child whose nice value cannot be lowered: now if it is idle, otherwise when
// its activation has ended. The next call gets a child that has the usual one.
func (p *Pool) replace(child *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.children[child]
	switch {
	case s == nil:
	case s.idleAt != nil:
		p.evict(s, endRetired)
	default:
		child.worn.Store(true)
	}
}

// CPU implements priority.Child.
func (p *process) CPU() time.Duration { return p.cpuTime() }

// SetNice implements priority.Child. Errors: os.ErrProcessDone, priority.ErrLower.
func (p *process) SetNice(nice int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	err := priority.Set(p.pid, nice)
	if errors.Is(err, unix.EPERM) && p.User != 0 { // another user's process, and no CAP_SYS_NICE
		_, err = p.spawner.Attend(nursery.Request{PID: p.pid, User: p.User, Nice: &nice})
		if errors.Is(err, unix.EACCES) {
			err = priority.ErrLower
		}
	}
	if err == nil {
		p.nice.Store(int32(nice))
	}
	return err
}
