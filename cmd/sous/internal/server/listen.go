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

// serverGCPercent is the garbage collector's target of a server, in percent of the live
// heap. The heap is small beside the caches, so four times Go's default costs little memory
// and saves processor time. GOGC overrides it.
const serverGCPercent = 400

// closeTimeout bounds the end of a server after the drain: writing records, ending
// sandboxes, writing the snapshot.
const closeTimeout = 10 * time.Second

// runServer opens the platform, serves on s.Listen until ctx ends, and drains. It calls
// ready with the server's URL once it accepts connections.
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

// serve serves on listener until ctx ends; then it drains.
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

// door is the configuration of the listener: the limit of connections, and the certificate
// of a TLS server.
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

// hang configures server, and returns the function that serves on listener until server is
// shut down.
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

// drain shuts server down in two steps. For s.Network.DrainDelay the server still accepts
// connections, but /readyz answers 503 and each connection closes after its next answer, so
// that load balancers choose other replicas before a connection is refused. Then the
// listener closes, and requests in flight have s.DrainTimeout to finish.
func (p *platform) drain(ctx context.Context, server *http.Server, leaving *leaver, s settings, failed <-chan error) error {
	p.stopWork() // asynchronous invocations end as well
	p.logger.Info("draining", zap.Duration("delay", s.Network.DrainDelay), zap.Duration("timeout", s.DrainTimeout))
	leaving.draining.Store(true)
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
		return errors.Join(fmt.Errorf("drain: requests in flight were interrupted: %w", err), server.Close())
	}
	return nil
}

// leaver closes each connection after its next answer once draining is set.
// (SetKeepAlivesEnabled would also close idle connections, where the next request may be on
// its way.)
type leaver struct {
	next     http.Handler
	draining atomic.Bool
}

// ServeHTTP implements http.Handler.
func (l *leaver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.draining.Load() {
		w.Header()["Connection"] = []string{"close"}
	}
	l.next.ServeHTTP(w, r)
}
