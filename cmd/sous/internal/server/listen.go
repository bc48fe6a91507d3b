package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
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
	d, err := newDoor(s, logger)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p, err := open(ctx, s, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, p.close(bounded))
		logger.Info("stopped")
	}()
	return p.serve(ctx, listener, d, s, ready)
}

// serve answers on listener until ctx ends; then the server drains.
func (p *platform) serve(ctx context.Context, listener net.Listener, d *door, s settings, ready func(url string)) error {
	server := p.server.HTTPServer(s.Listen)
	leaving := &leaver{next: p.handler(s)}
	server.Handler = leaving
	start, err := d.hang(server, listener, p)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- start() }()
	ready(s.Network.scheme() + "://" + listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return p.drain(ctx, server, leaving, s, failed)
}

// door is how connections come in: how many at once, and with which certificate,
// if any.
type door struct {
	most        int
	certificate *certificate
}

func newDoor(s settings, logger *zap.Logger) (*door, error) {
	most, err := maxConnections(s)
	if err != nil {
		return nil, err
	}
	d := &door{most: most}
	if s.Network.TLSCert != "" {
		d.certificate, err = loadCertificate(s.Network.TLSCert, s.Network.TLSKey, logger)
	}
	return d, err
}

// hang gives what serves on listener until server is shut down.
func (d *door) hang(server *http.Server, listener net.Listener, p *platform) (start func() error, err error) {
	open := newConnections(d.most, p.logger)
	if err := open.register(p.metrics); err != nil {
		return nil, err
	}
	server.ConnState = open.track
	if d.certificate == nil {
		return func() error { return server.Serve(listener) }, nil
	}
	server.TLSConfig = d.certificate.config()
	return func() error { return server.ServeTLS(listener, "", "") }, nil
}

// drain ends server in order. At first /readyz says no and connections end with
// their next answer, while new ones are accepted for s.Network.DrainDelay: load
// balancers look elsewhere before any connection is refused. Then no connection
// is accepted any more, and requests in hand have s.DrainTimeout to finish.
func (p *platform) drain(ctx context.Context, server *http.Server, leaving *leaver, s settings, failed <-chan error) error {
	p.stopWork() // what runs asynchronously has from now on to end, too
	p.logger.Info("draining", zap.Duration("delay", s.Network.DrainDelay), zap.Duration("timeout", s.DrainTimeout))
	leaving.leaves.Store(true)
	p.server.Unready()
	if s.Network.DrainDelay > 0 {
		select {
		case <-time.After(s.Network.DrainDelay):
		case err := <-failed:
			return fmt.Errorf("serve: %w", err)
		}
	}
	p.server.Drain()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.DrainTimeout)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("drain: requests in hand were cut off: %w", err), server.Close())
	}
	return nil
}

// leaver makes each answer its connection's last once the server is to end.
// (SetKeepAlivesEnabled would also close the connections between two requests,
// where the next one may be on its way.)
type leaver struct {
	next   http.Handler
	leaves atomic.Bool
}

func (l *leaver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.leaves.Load() {
		w.Header()["Connection"] = []string{"close"}
	}
	l.next.ServeHTTP(w, r)
}
