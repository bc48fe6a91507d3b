package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
)

// serverGCPercent trades memory for time: a server holds little beside its caches,
// and collects five times less often than by Go's default. GOGC overrides it.
const serverGCPercent = 400

// closeTimeout bounds what comes after the drain: records, sandboxes, snapshot.
const closeTimeout = 10 * time.Second

// runServer opens the platform, answers on s.Listen until ctx ends, and drains.
// ready is told the server's URL once it accepts connections.
func runServer(ctx context.Context, s settings, logger *zap.Logger, ready func(url string)) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(serverGCPercent)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p, err := openPlatform(ctx, s, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, p.close(bounded))
		logger.Info("stopped")
	}()
	return p.serve(ctx, listener, s, ready)
}

// serve answers on listener until ctx ends; then /readyz says so, no connection
// is accepted any more, and requests in hand have s.DrainTimeout to finish.
func (p *platform) serve(ctx context.Context, listener net.Listener, s settings, ready func(url string)) error {
	server := p.server.HTTPServer(s.Listen)
	server.Handler = p.handler(s)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	ready("http://" + listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	p.logger.Info("draining", zap.Duration("timeout", s.DrainTimeout))
	p.server.Drain()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("drain: requests in hand were cut off: %w", err), server.Close())
	}
	return nil
}
