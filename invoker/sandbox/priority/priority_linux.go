// Package priority divides the processors between tenants by the nice values of their
// processes, where no cgroup does that.
//
// Every process that wants to run gets the same time of the kernel, so a tenant with 80 busy
// processes gets 80 times as much as one with one. A nice value of one more takes a fifth of a
// process's weight: processes that are n at once each get the weight of an n-th, so that those
// of each tenant together weigh as much as one process. A process that waits for something,
// and one whose tenant keeps no more processes busy than processors exist, keep their weight.
package priority

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The interval at which processes are examined, and how long their tenant must have needed
// less before they get their weight back.
const (
	Interval = 100 * time.Millisecond
	calm     = 10 // intervals
)

// activeTime is the processor time in an interval above which a process counts as busy: of 80
// that compute on two processors, each gets 2.5 ms of 100.
const activeTime = 500 * time.Microsecond

// Process is a process of a tenant.
type Process struct {
	Tenant string
	Weight int // of the tenant, 100 is usual
	Nice   int // its nice value
	// Child is the process, and identifies it between two rounds.
	Child Child
	cpu   time.Duration
}

// Child is a process whose priority is set.
type Child interface {
	// CPU returns the processor time that it has used.
	CPU() time.Duration
	// SetNice sets its nice value: Set, while its pid is not reused.
	SetNice(nice int) error
}

// Planner decides on nice values. It is not safe for concurrent use.
type Planner struct {
	processors int
	seen       map[Child]time.Duration // processor time of each process at the last call
	levels     map[string]*level       // by tenant
}

// level is the nice value of a tenant's busy processes.
type level struct {
	nice int
	calm int // intervals in which a lower value would have been enough
}

// NewPlanner returns a Planner for a host with so many processors.
func NewPlanner(processors int) *Planner {
	return &Planner{processors: processors, seen: map[Child]time.Duration{}, levels: map[string]*level{}}
}

// Round examines all processes and sets nice values. It is called once in Interval. changed is
// the number of changes; nice reports whether a process has another value than 0 now. refused
// are the processes whose value is to be lower and cannot be, for want of a privilege.
func (p *Planner) Round(all []Process) (changed int, nice bool, refused []Process) {
	for k := range all {
		all[k].cpu = all[k].Child.CPU()
		nice = nice || all[k].Nice > 0
	}
	for _, process := range p.plan(all) {
		err := process.Child.SetNice(process.Nice)
		switch {
		case err == nil:
			changed++
			nice = nice || process.Nice > 0
		case errors.Is(err, ErrLower):
			refused = append(refused, process)
		}
		// Another error is that of a process that has just ended.
	}
	return changed, nice, refused
}

// plan returns the processes whose nice value is to change, with the new one in Nice.
func (p *Planner) plan(all []Process) []Process {
	seen := make(map[Child]time.Duration, len(all))
	active := make([]bool, len(all))
	count, used, weight := map[string]int{}, map[string]time.Duration{}, map[string]int{}
	for k, process := range all {
		seen[process.Child] = process.cpu
		last, known := p.seen[process.Child]
		if known && process.cpu-last >= activeTime {
			active[k] = true
			count[process.Tenant]++
			used[process.Tenant] += process.cpu - last
			weight[process.Tenant] = process.Weight
		}
	}
	p.seen = seen
	p.adjust(count, used, weight)
	var out []Process
	for k, process := range all {
		nice := 0
		if l := p.levels[process.Tenant]; l != nil {
			nice = l.nice
		}
		if nice > process.Nice && active[k] || nice < process.Nice {
			process.Nice = nice
			out = append(out, process)
		}
	}
	return out
}

// adjust raises the levels of tenants that keep more processes busy than processors exist, and
// lowers those of the others after a while.
func (p *Planner) adjust(count map[string]int, used map[string]time.Duration, weight map[string]int) {
	for tenant, n := range count {
		if n <= p.processors || used[tenant] < Interval*time.Duration(p.processors)/4 {
			continue
		}
		nice := Nice(n, weight[tenant])
		l := p.levels[tenant]
		if l == nil {
			l = &level{}
			p.levels[tenant] = l
		}
		if nice >= l.nice {
			l.nice, l.calm = nice, -1
		} else if nice >= l.nice-2 { // about as many as before
			l.calm = -1
		}
	}
	for tenant, l := range p.levels {
		l.calm++
		if l.calm >= calm {
			delete(p.levels, tenant) // the next interval finds the right one
		}
	}
}

// Nice returns the nice value at which n processes of a tenant weigh as much together as one of
// a usual tenant, times the tenant's weight.
func Nice(n, weight int) int {
	const step = 1.25 // of a nice value, in the kernel
	nice := math.Round(math.Log(float64(n)*100/float64(max(weight, 1))) / math.Log(step))
	return int(min(max(nice, 0), 19))
}

// ErrLower is the refusal to lower a nice value, for which a server needs CAP_SYS_NICE.
var ErrLower = errors.New("lowering a nice value needs CAP_SYS_NICE")

// Set sets the nice value of all threads of a process. A new thread has that of the one that
// starts it, so the list is read until it has no new ones. The caller prevents that pid is
// reused meanwhile. Errors: ErrLower; those of the system, for a process that has ended.
func Set(pid, nice int) error {
	done := map[int]bool{}
	for found := true; found; {
		found = false
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, entry := range threads {
			id, err := strconv.Atoi(entry.Name())
			if err != nil || done[id] {
				continue
			}
			done[id], found = true, true
			err = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
			switch {
			case errors.Is(err, unix.EACCES):
				return ErrLower
			case err != nil && !errors.Is(err, unix.ESRCH): // the thread has ended
				return fmt.Errorf("setpriority: %w", err)
			}
		}
	}
	return nil
}
