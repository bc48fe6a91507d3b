package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/invoker"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/scheduler"
	"github.com/codesous/sous/storage"
)

// platform is every part of a running server, wired.
type platform struct {
	server  *controlplane.Server
	metrics *prometheus.Registry

	// closers undo what was opened, the last one first.
	closers []func(context.Context) error
	stop    context.CancelFunc // of the loops
	loops   sync.WaitGroup
	logger  *zap.Logger
}

// openPlatform opens what s asks for. The platform must be closed, also after
// ctx ended.
func openPlatform(ctx context.Context, s settings, logger *zap.Logger) (p *platform, err error) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	metrics, err := newRegistry()
	p = &platform{stop: stop, logger: logger, metrics: metrics}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
			p = nil
		}
	}()
	if err != nil {
		return p, err
	}
	store, err := p.openStore(ctx, s)
	if err != nil {
		return p, err
	}
	sandboxes := s.sandboxConfig()
	sandboxes.Logger, sandboxes.Metrics = logger.Named("sandbox"), metrics
	executable, closeExecutable, err := sandboxExecutable()
	if err != nil {
		return p, err
	}
	p.onClose(func(context.Context) error { return closeExecutable() })
	sandboxes.Executable = executable
	pool, err := sandbox.New(sandboxes)
	if err != nil {
		return p, err
	}
	p.onClose(pool.Close)
	engines, err := s.invokerConfig()
	if err != nil {
		return p, err
	}
	engines.Logger, engines.Metrics = logger.Named("invoker"), metrics
	engine, err := invoker.New(ctx, store, pool, engines)
	if err != nil {
		return p, err
	}
	p.onClose(engine.Close)
	if p.server, err = controlplane.New(ctx, store, engine, controlplane.Config{
		Logger: logger.Named("api"), Metrics: metrics, Version: buildVersion(), Auth: s.authMode(),
	}); err != nil {
		return p, err
	}
	p.onClose(func(context.Context) error { p.server.Close(); return nil })
	if err := p.noteKeys(ctx, store, s); err != nil {
		return p, err
	}
	if err := p.openAdmin(life, s); err != nil {
		return p, err
	}
	if s.has(roleScheduler) {
		sweeper, err := scheduler.NewSweeper(store, scheduler.SweeperConfig{Metrics: metrics}, logger.Named("sweeper"))
		if err != nil {
			return p, err
		}
		p.loops.Go(func() { sweeper.Run(life) })
	}
	return p, nil
}

func (p *platform) onClose(f func(context.Context) error) { p.closers = append(p.closers, f) }

// openStore connects to the store server, or opens the embedded store.
func (p *platform) openStore(ctx context.Context, s settings) (*storage.Store, error) {
	cfg := storage.Config{URL: s.Store, Metrics: p.metrics}
	if s.Store == "" {
		embedded, err := storage.OpenEmbedded(s.DataDir, p.logger.Named("store"))
		if err != nil {
			return nil, err
		}
		p.onClose(func(context.Context) error { return embedded.Close() })
		cfg.Embedded = embedded
	}
	store, err := storage.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	p.onClose(func(context.Context) error { return store.Close() })
	return store, nil
}

// handler answers everything that the roles of s do: without the api role, that
// is only whether the process lives and is ready.
func (p *platform) handler(s settings) http.Handler {
	if s.has(roleAPI) {
		return p.server.Handler()
	}
	return p.server.HealthHandler()
}

// close ends the loops and closes every part, within ctx.
func (p *platform) close(ctx context.Context) error {
	p.stop()
	p.loops.Wait()
	var errs []error
	for len(p.closers) > 0 {
		last := len(p.closers) - 1
		errs = append(errs, p.closers[last](ctx))
		p.closers = p.closers[:last]
	}
	return errors.Join(errs...)
}
