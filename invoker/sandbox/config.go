package sandbox

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/invoker/sandbox/shares"
)

// Config configures a Pool. A zero field means its documented default.
type Config struct {
	// Executable is the program that is started with the argument
	// "sandbox-child" and must then run child.Main. Default /proc/self/exe: this
	// program is its own child.
	Executable string
	// MaxProcesses bounds the children that serve a version, warm or at work;
	// spares come on top. Default 100.
	MaxProcesses int
	// MemoryBudgetBytes bounds the sum of the memory of those children, each counted as
	// 2.2 times its version's memory limit. Default: half of the memory of this host or
	// container.
	MemoryBudgetBytes int64
	// ReservePercent is the part of MaxProcesses and of MemoryBudgetBytes that the calls of
	// one tenant leave free for those of others, but no less than two processes and no more
	// than a third. Default 20; negative for none.
	ReservePercent int
	// Share returns what a tenant may use (package shares). It is called once a second for
	// each tenant with calls, and must not block. Default: all tenants are equal.
	Share func(tenant string) Share
	// Spares is how many unassigned children are kept ready, so that a cold
	// start is a hand-over. Default 2; negative for none.
	Spares int
	// IdleTimeout ends a warm child that was not called for so long. Default 10 minutes.
	IdleTimeout time.Duration
	// AcquireTimeout is how long Acquire waits for room before it fails with
	// CodeCapacityLimit. Default 1 second.
	AcquireTimeout time.Duration
	// LoadTimeout bounds a child's start, and its reading and compiling of source, which
	// CompileCPU bounds before on a machine that has a processor for it. Default 30 seconds.
	LoadTimeout time.Duration
	// CompileCPU bounds the processor time that a child uses to read and compile source at
	// its publication. Each whole MiB of a bundle adds a second. A published version may use
	// twice as much when it is loaded, since the same work does not always take the same time.
	// 5 MB of dense TypeScript take 4 seconds; a few hundred bytes can be made to take hours.
	// Default 8 seconds.
	CompileCPU time.Duration
	// ScriptCacheBytes bounds the cache of compiled scripts, which are the output of
	// the bundler as text. Default 64 MiB.
	ScriptCacheBytes int64
	// Scripts keeps compiled scripts beyond the life of the process. Default: scripts are kept in memory only.
	Scripts ScriptStore
	// CGroups is whether each child gets a cgroup of its own: CGroupsAuto, the default, where
	// the host lets the server have them; CGroupsOn, and New fails elsewhere; CGroupsOff.
	CGroups string
	// Metrics exports the pool's metrics. Default: none are exported.
	Metrics prometheus.Registerer
	// Logger receives crashes and failed spawns. Default: none.
	Logger *zap.Logger
}

// Share is the part of a pool that a tenant may use.
type Share = shares.Share

// MaxReservePercent is the largest Config.ReservePercent.
const MaxReservePercent = 33

// The defaults. minimumBudgetBytes is the least default of MemoryBudgetBytes: a small host
// gets room for one child of 64 MB at least.
const (
	defaultExecutable   = "/proc/self/exe"
	defaultMaxProcesses = 100
	defaultSpares       = 2
	defaultReserve      = 20  // percent
	leastReserved       = 2   // processes
	maxWaiting          = 512 // calls of a tenant
	longWaitParts       = 2   // a call that has waited for half of AcquireTimeout has waited for long
	defaultIdleTimeout  = 10 * time.Minute
	defaultAcquireWait  = time.Second
	defaultLoadTimeout  = 30 * time.Second
	defaultCompileCPU   = 8 * time.Second
	defaultScriptBytes  = 64 << 20
	minimumBudgetBytes  = 256 << 20
)

// withDefaults returns c with its zero fields filled in. The error names a bad value.
func (c Config) withDefaults() (Config, error) {
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"MaxProcesses", int64(c.MaxProcesses)},
		{"MemoryBudgetBytes", c.MemoryBudgetBytes},
		{"IdleTimeout", int64(c.IdleTimeout)},
		{"AcquireTimeout", int64(c.AcquireTimeout)},
		{"LoadTimeout", int64(c.LoadTimeout)},
		{"CompileCPU", int64(c.CompileCPU)},
		{"ScriptCacheBytes", c.ScriptCacheBytes},
	} {
		if f.n < 0 {
			return c, fmt.Errorf("sandbox: %s must not be negative", f.name)
		}
	}
	setDefault(&c.Executable, defaultExecutable)
	setDefault(&c.MaxProcesses, defaultMaxProcesses)
	setDefault(&c.Spares, defaultSpares)
	c.Spares = max(c.Spares, 0)
	setDefault(&c.CGroups, CGroupsAuto)
	if c.CGroups != CGroupsAuto && c.CGroups != CGroupsOn && c.CGroups != CGroupsOff {
		return c, fmt.Errorf("sandbox: CGroups %q: want %s, %s or %s", c.CGroups, CGroupsAuto, CGroupsOn, CGroupsOff)
	}
	setDefault(&c.ReservePercent, defaultReserve)
	c.ReservePercent = max(c.ReservePercent, 0)
	if c.ReservePercent > MaxReservePercent {
		return c, fmt.Errorf("sandbox: ReservePercent %d: want at most %d", c.ReservePercent, MaxReservePercent)
	}
	setDefault(&c.IdleTimeout, defaultIdleTimeout)
	setDefault(&c.AcquireTimeout, defaultAcquireWait)
	setDefault(&c.LoadTimeout, defaultLoadTimeout)
	setDefault(&c.CompileCPU, defaultCompileCPU)
	setDefault(&c.ScriptCacheBytes, defaultScriptBytes)
	if c.MemoryBudgetBytes == 0 {
		host, err := memory.HostMemory()
		if err != nil {
			return c, fmt.Errorf("sandbox: this host's memory: %w", err)
		}
		c.MemoryBudgetBytes = DefaultBudget(host)
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c, nil
}

// reservedBytes returns the memory that the calls of one tenant leave free. A version with the
// default memory limit can run wherever the whole budget allows it.
func (c Config) reservedBytes() int64 {
	spare := c.MemoryBudgetBytes - memory.BudgetBytes(api.DefaultMemoryMB)
	return max(0, min(shares.Reserve(c.MemoryBudgetBytes, 0, c.ReservePercent), spare))
}

// shares returns the configuration of the pool's ledger. c has its defaults.
func (c Config) shares() shares.Config {
	return shares.Config{
		Places: c.MaxProcesses, Bytes: c.MemoryBudgetBytes,
		ReservedPlaces: int(shares.Reserve(int64(c.MaxProcesses), leastReserved, c.ReservePercent)),
		ReservedBytes:  c.reservedBytes(),
		MaxWaiting:     maxWaiting,
		LongWait:       c.AcquireTimeout / longWaitParts,
		Share:          c.Share,
	}
}

// DefaultBudget returns the default of Config.MemoryBudgetBytes on a host with so much memory,
// in bytes.
func DefaultBudget(memory int64) int64 { return max(memory/2, minimumBudgetBytes) }

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
