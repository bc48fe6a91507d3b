package sandbox

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
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
	// Spares is how many unassigned children are kept ready, so that a cold
	// start is a hand-over. Default 2; negative for none.
	Spares int
	// IdleTimeout ends a warm child that was not called for so long. Default 10 minutes.
	IdleTimeout time.Duration
	// AcquireTimeout is how long Acquire waits for room before it fails with
	// CodeCapacityLimit. Default 1 second.
	AcquireTimeout time.Duration
	// LoadTimeout bounds a child's start, and its reading and compiling of
	// source. Default 10 seconds.
	LoadTimeout time.Duration
	// ScriptCacheBytes bounds the cache of compiled scripts, which are the output of
	// the bundler as text. Default 64 MiB.
	ScriptCacheBytes int64
	// Scripts keeps compiled scripts beyond the life of the process. Default: scripts are kept in memory only.
	Scripts ScriptStore
	// Metrics exports the pool's metrics. Default: none are exported.
	Metrics prometheus.Registerer
	// Logger receives crashes and failed spawns. Default: none.
	Logger *zap.Logger
}

// The defaults. minimumBudgetBytes is the least default of MemoryBudgetBytes: a small host
// gets room for one child of 64 MB at least.
const (
	defaultExecutable   = "/proc/self/exe"
	defaultMaxProcesses = 100
	defaultSpares       = 2
	defaultIdleTimeout  = 10 * time.Minute
	defaultAcquireWait  = time.Second
	defaultLoadTimeout  = 10 * time.Second
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
	setDefault(&c.IdleTimeout, defaultIdleTimeout)
	setDefault(&c.AcquireTimeout, defaultAcquireWait)
	setDefault(&c.LoadTimeout, defaultLoadTimeout)
	setDefault(&c.ScriptCacheBytes, defaultScriptBytes)
	if c.MemoryBudgetBytes == 0 {
		memory, err := HostMemory()
		if err != nil {
			return c, fmt.Errorf("sandbox: this host's memory: %w", err)
		}
		c.MemoryBudgetBytes = DefaultBudget(memory)
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c, nil
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
