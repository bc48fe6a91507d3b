package sandbox

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/invoker/sandbox/cgroup"
	"github.com/codesous/sous/invoker/sandbox/checks"
	"github.com/codesous/sous/invoker/sandbox/shares"
)

// Pool spawns, keeps and ends sandbox children. It is safe for concurrent use. A child
// passes through these states:
//
//	spare     started and confined, without a program; Config.Spares of them are kept
//	filling   loading the program of its first call
//	busy      between Acquire and Release
//	idle      warm: the next Acquire of its program takes it
//
// A child never changes its program, and never serves a second tenant. Room is counted when
// filling begins: one process, and the memory budget of the program. If there is none, idle
// children of other programs are ended (makeRoom); busy ones are never ended for room. Spares,
// and children that compile for Check, are not counted. The ledger decides which tenant's
// calls get room (package shares).
//
// mu guards the state of all children; it is never held while a child or the nursery is
// waited for.
type Pool struct {
	cfg     Config
	log     *zap.Logger
	spawner *spawner
	cgroups *cgroup.Tree // nil without cgroups
	scripts *scripts
	metrics *poolMetrics
	checks  *checks.Queue
	refill  chan struct{} // wakes the keeper: spares were taken

	processors int // of this process

	ctx    context.Context // the pool's own life: ends at Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the keeper and every child's reaper

	mu        sync.Mutex
	closed    bool
	children  map[*process]*Sandbox // every child that lives; nil for one without a program
	families  map[string]*family    // by Program.Key, of the versions that have children or waiters
	spares    []*process
	assigned  int            // processes counted: busy, idle or filling
	filling   int            // of these, filling
	reserved  int64          // bytes of the budget that the counted processes have
	idleOrder *list.List     // every idle Sandbox, the least recently used first
	ledger    *shares.Ledger // what calls hold, and the waiters
	recheck   *time.Timer    // calls grantAgain
	counts    Stats          // only the counters
}

// Stats are the state and the counters of a Pool.
type Stats struct {
	Busy, Idle, Spares         int
	Waiting                    int // calls that wait for room, or for a warm child of their version
	Starting                   int // of Busy, those that load their program
	ReservedBytes, BudgetBytes int64
	Spawned, Cold, Warm        uint64 // children started; activations by start
	Evicted, Crashed, Refused  uint64 // idle children ended for room; children that died by themselves; Acquires without room
}

// New makes a pool and starts to fill its spares in the background. It fails if a Config
// field is bad, not if no child can start: Acquire reports that. Close must be called.
func New(cfg Config) (*Pool, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	cache, err := newScripts(cfg.ScriptCacheBytes)
	if err != nil {
		return nil, fmt.Errorf("sandbox: script cache: %w", err)
	}
	cgroups, err := openCGroups(cfg)
	if err != nil {
		return nil, err
	}
	spawner, err := newSpawner(cfg, cgroups)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		cfg:        cfg,
		log:        cfg.Logger,
		spawner:    spawner,
		cgroups:    cgroups,
		scripts:    cache,
		metrics:    newPoolMetrics(),
		checks:     checks.New(),
		processors: runtime.GOMAXPROCS(0),
		refill:     make(chan struct{}, 1),
		children:   make(map[*process]*Sandbox),
		families:   make(map[string]*family),
		idleOrder:  list.New(),
		ledger:     shares.New(cfg.shares()),
	}
	p.recheck = time.AfterFunc(time.Hour, p.grantAgain)
	p.recheck.Stop()                                           // until grant sets it
	p.ctx, p.cancel = context.WithCancel(context.Background()) // the pool's own life, ended by Close
	if err := p.metrics.register(cfg.Metrics, p); err != nil {
		spawner.Stop()
		cache.StopAllGoroutines()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	p.tasks.Go(p.keep)
	if cgroups == nil || !cgroups.Controls("cpu") {
		p.tasks.Go(p.balance)
	}
	return p, nil
}

// Close ends every child and returns when none is left, or with ctx's error. Activations at
// work end as SandboxCrash: drain first. It also waits for host calls that outlive their
// activation. After an error it may be called again to wait on.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	for child := range p.children {
		child.killFor(endShutdown)
	}
	for _, w := range p.ledger.Waiting() {
		p.ledger.Remove(w)
		close(w.Value.(*waiter).granted)
	}
	p.recheck.Stop()
	p.mu.Unlock()
	p.cancel()

	done := make(chan struct{})
	go func() {
		p.tasks.Wait()
		if first {
			p.spawner.Stop()
			p.scripts.StopAllGoroutines()
		}
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sandbox: children are left: %w", ctx.Err())
	}
}

// Stats returns the state and the counters of p at one moment.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.counts
	s.Idle, s.Spares, s.Waiting = p.idleOrder.Len(), len(p.spares), p.ledger.Waiters()
	s.Busy, s.Starting = p.assigned-s.Idle, p.filling
	s.ReservedBytes, s.BudgetBytes = p.reserved, p.cfg.MemoryBudgetBytes
	return s
}

// begin counts a task that Close waits for; the caller ends it with p.tasks.Done. It
// returns false once the pool is closed, and nothing is counted then.
func (p *Pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.tasks.Add(1)
	}
	return !p.closed
}

// spawn starts a child without a program. It is in p.children until it is reaped. A child
// that dies between its Hello and this function's end is an error, not a child.
func (p *Pool) spawn(ctx context.Context) (*process, error) {
	if !p.begin() { // the reaper's task
		return nil, errClosed()
	}
	child, started, err := spawnProcess(ctx, p.spawner, p.reaped)
	if !started {
		p.tasks.Done()
	}
	p.metrics.started(err)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Spawned++
	select {
	case <-child.gone:
	default:
		if !p.closed {
			p.children[child] = nil
			return child, nil
		}
	}
	child.end(endShutdown)
	return nil, errors.New("sandbox: the child died at once")
}

// reaped forgets a child that has ended. Its sandbox, if it is in use, belongs to its user,
// who finds the child dead and releases it; an idle one and a spare leave the pool here.
func (p *Pool) reaped(child *process) {
	defer p.tasks.Done()
	p.metrics.ends.WithLabelValues(child.exit.why.String()).Inc()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, known := p.children[child]
	delete(p.children, child)
	switch {
	case !known:
	case s != nil && s.idleAt != nil: // it died while idle
		p.removeIdle(s)
		p.leave(s)
		p.grant(time.Now()) // the version may start another
		child.end(endCrash)
	case s == nil && p.removeSpare(child):
		child.end(endCrash)
		p.wakeKeeper()
	}
}

// crashed counts a child that died of no limit while it ran an activation.
func (p *Pool) crashed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Crashed++
}

// keep is the background loop of the pool, until Close: it refills the spares, ends
// children that were idle for too long, and ends idle children that work.
func (p *Pool) keep() {
	tick := time.NewTicker(max(p.cfg.IdleTimeout/8, time.Millisecond))
	defer tick.Stop()
	check := time.NewTicker(restlessInterval)
	defer check.Stop()
	for {
		began := time.Now()
		err := p.fillSpares()
		p.metrics.keeping.Round(began, err)
		var retry <-chan time.Time
		if err != nil {
			retry = time.After(respawnDelay)
		}
		select {
		case <-p.ctx.Done():
			return
		case <-p.refill:
		case now := <-tick.C:
			p.retireIdle(now)
		case <-check.C:
			p.endRestless()
		case <-retry:
		}
	}
}

// respawnDelay is how long the keeper waits after a spawn that failed.
const respawnDelay = time.Second

// fillSpares spawns one child after another until the spares are complete. An error ends
// it; the keeper tries again after respawnDelay, since calls can still spawn for
// themselves.
func (p *Pool) fillSpares() error {
	for {
		p.mu.Lock()
		missing := !p.closed && len(p.spares) < p.cfg.Spares
		p.mu.Unlock()
		if !missing {
			return nil
		}
		child, err := p.spawn(p.ctx)
		if err != nil {
			if p.ctx.Err() == nil {
				p.log.Warn("no spare sandbox", zap.Error(err))
			}
			return err
		}
		p.mu.Lock()
		_, alive := p.children[child]
		if alive {
			p.spares = append(p.spares, child)
		}
		p.mu.Unlock()
		if !alive {
			return errors.New("sandbox: a spare child died")
		}
	}
}

// wakeKeeper makes the keeper look at the spares. It does not block.
func (p *Pool) wakeKeeper() {
	select {
	case p.refill <- struct{}{}:
	default: // it is awake already
	}
}

// retireIdle ends children that have been idle for Config.IdleTimeout or longer at now, and
// returns their number.
func (p *Pool) retireIdle(now time.Time) (retired int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.idleOrder.Front(); e != nil; e = p.idleOrder.Front() {
		s := e.Value.(*Sandbox)
		if now.Sub(s.idleSince) < p.cfg.IdleTimeout {
			break
		}
		p.evict(s, endIdle)
		retired++
	}
	return retired
}

// restlessInterval is how often the processor time of idle children is checked. A child that
// worked for more than half of the time since the last check is ended: it evaluates modules
// ahead that do not end, in code that no interrupt reaches, or it is not the program that was
// started. Nothing else limits, or bills, that work.
const restlessInterval = time.Second

// endRestless ends idle children that work, at their second check in one idle time: the first
// one only records their processor time.
func (p *Pool) endRestless() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var next *list.Element
	for e := p.idleOrder.Front(); e != nil; e = next {
		next = e.Next()
		s := e.Value.(*Sandbox)
		cpu := s.child.cpuTime()
		if s.seen.Equal(s.idleSince) && cpu-s.seenCPU > restlessInterval/2 {
			p.log.Warn("an idle sandbox was at work", s.ids()...)
			p.evict(s, endRestless)
			continue
		}
		s.seen, s.seenCPU = s.idleSince, cpu
	}
}

// takeSpare returns a living spare, or nil.
func (p *Pool) takeSpare() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.spares) > 0 {
		last := len(p.spares) - 1
		child := p.spares[last]
		p.spares = p.spares[:last]
		p.wakeKeeper()
		if child.alive() {
			return child
		}
		child.end(endCrash)
	}
	return nil
}

// removeSpare takes child out of the spares, and reports whether it was one. The caller
// holds p.mu.
func (p *Pool) removeSpare(child *process) bool {
	for i, c := range p.spares {
		if c == child {
			p.spares = append(p.spares[:i], p.spares[i+1:]...)
			return true
		}
	}
	return false
}
