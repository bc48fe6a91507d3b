package sandbox

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/codesous/sous/invoker/sandbox/cgroup"
	"github.com/codesous/sous/invoker/sandbox/memory"
)

// The values of Config.CGroups.
const (
	CGroupsAuto = "auto"
	CGroupsOn   = "on"
	CGroupsOff  = "off"
)

// openCGroups returns the tree of the cgroups of sandboxes, nil if c turns them off or the host
// has none. It fails if the host has none and c requires them.
func openCGroups(c Config) (*cgroup.Tree, error) {
	if c.CGroups == CGroupsOff {
		return nil, nil
	}
	place, err := cgroup.Find()
	var tree *cgroup.Tree
	if err == nil {
		tree, err = cgroup.Open(place)
	}
	switch {
	case err == nil:
		c.Logger.Info("sandboxes have cgroups", zap.String("below", place.Dir), zap.Strings("controllers", place.Controllers))
		return tree, nil
	case c.CGroups == CGroupsOn:
		return nil, fmt.Errorf("sandbox: cgroups: %w", err)
	}
	c.Logger.Debug("sandboxes have no cgroups", zap.String("reason", err.Error()))
	return nil, nil
}

// confine moves a child into a cgroup of the tenant. Without one the child's other limits hold.
// Until its program is loaded it may use as much memory as a compilation needs.
func (p *Pool) confine(child *process, tenant string) {
	if p.cgroups == nil {
		return
	}
	p.mu.Lock()
	weight := p.ledger.Weight(tenant)
	p.mu.Unlock()
	child.mu.Lock()
	defer child.mu.Unlock()
	if child.reaped || child.box != nil {
		return
	}
	box, err := p.cgroups.Enter(child.pid, tenant, cgroup.Limits{
		Weight: weight, Memory: memory.CompileRoom + boxRoom, Pids: maxThreads,
	})
	if err != nil {
		p.log.Warn("a sandbox has no cgroup of its own", zap.String("tenant", tenant), zap.Error(err))
		return
	}
	child.box = box
}

const megabyte = 1 << 20

// boxRoom is the memory of a child's process itself, in bytes.
const boxRoom = 64 * megabyte

// tightenBox sets the memory limit of the child's cgroup, if it has one, once its program is
// loaded.
func (p *Pool) tightenBox(child *process, memoryMB int) {
	child.mu.Lock()
	defer child.mu.Unlock()
	if child.reaped || child.box == nil {
		return
	}
	if err := child.box.Tighten(memory.BudgetBytes(memoryMB)); err != nil {
		p.log.Warn("the memory limit of a sandbox's cgroup could not be set", zap.Int("pid", child.pid), zap.Error(err))
	}
}
