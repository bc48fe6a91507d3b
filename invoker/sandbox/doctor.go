package sandbox

import (
	"context"
	"time"

	"github.com/codesous/sous/invoker/sandbox/layers"
	"github.com/codesous/sous/invoker/sandbox/nursery"
)

// Layer is one layer of a sandbox's confinement on this host.
type Layer = layers.Layer

// Mend returns the command that makes an inactive layer active on this host, "" for an active
// layer and for one that no command changes.
func Mend(l Layer) string { return layers.Mend(l) }

// Doctor starts a child as a Pool with cfg would, and reports which layers hold: those that
// can be seen from outside, and those that only the child can try. It ends the child, and
// its nursery with it. It fails if no child can start. cfg's Metrics are not used.
func Doctor(ctx context.Context, cfg Config) ([]Layer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	spawner, err := newSpawner(cfg, nil)
	if err != nil {
		return nil, err
	}
	reaped := make(chan struct{})
	child, started, err := spawnProcess(ctx, spawner, func(*process) { close(reaped) })
	if err != nil {
		spawner.Stop()
		if started {
			<-reaped
		}
		return nil, err
	}
	seen := child.inspect()
	spawner.Stop()
	seen = append(seen, child.diesWithParent(ctx))
	child.end(endChecked)
	<-reaped
	return seen, nil
}

// inspect returns every layer but the last.
func (p *process) inspect() []Layer {
	limit := layers.SoftLimit(p.pid, layers.AddressSpace)
	c := layers.Child{
		PID: p.pid, Claims: p.hello.Layers, Isolation: p.Isolation.String(), MaxThreads: maxThreads,
		AddressSpace: limit, Limited: limit != 0 && limit == p.limit, SharedUser: !p.OwnUser,
	}
	if p.User != 0 {
		// The files of another user's process are visible to root with all capabilities and to the nursery.
		if open, err := p.spawner.Attend(nursery.Request{PID: p.pid, User: p.User, Descriptors: true}); err == nil {
			c.Files = open.Descriptors
		}
	}
	return layers.Inspect(c)
}

// diesWithParent waits for the child to die of the end of the thread that spawned it, for
// two seconds at most. The caller has stopped the spawner.
func (p *process) diesWithParent(ctx context.Context) Layer {
	l := Layer{Name: "dies with its parent", Detail: "SIGKILL by the kernel"}
	select {
	case <-p.gone:
		l.Active = true
	case <-ctx.Done():
		l.Detail = ctx.Err().Error()
	case <-time.After(2 * time.Second):
		l.Detail = "it outlives the thread that spawned it"
	}
	return l
}
