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
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/admission"
)

// serverGCPercent is the garbage collector's target of a server, in percent of the live
// heap. The heap is small beside the caches, so four times Go's default costs little memory
// and saves processor time. GOGC overrides it. cmd/sousbench uses the same value, so that
// its in-process queues collect garbage as a server does.
const serverGCPercent = 400

// closeTimeout bounds the end of a server after the drain: writing records, ending
// sandboxes, writing the snapshot. A supervisor that kills the process has to wait for
// drain-delay, drain-timeout and closeTimeout together (see deploy/sous.service).
const closeTimeout = 10 * time.Second

// runServer opens the platform, serves on s.Listen until ctx ends, and drains. It calls
// ready with the server's URL once it accepts connections.
//
// The order matters. Settings that this machine cannot satisfy (too few files, an unreadable
// certificate) are refused before anything is opened. The port is taken before the store, so
// that a second server on the same port ends without touching the store. Connections that
// arrive while the platform opens wait in the listener's queue.
func runServer(ctx context.Context, s settings, logger *zap.Logger, ready func(url string)) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(serverGCPercent)
	}
	if err := applyMemoryLimit(s, logger); err != nil {
		return err
	}
	listening, err := newListenConfig(s, logger)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return listenError("listen", s.Listen, err)
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
	return p.serve(ctx, listener, listening, s, ready)
}

// listenError returns the error of a setting whose address could not be listened on.
func listenError(setting, address string, err error) error {
	_, port, _ := net.SplitHostPort(address) // the settings are valid
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s: %s is in use by %s: end that program, or choose another address with --%s", setting, address, portOwner(port), setting)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: this user may not listen on %s: choose a port from 1024 with --%s", setting, address, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %s is no address of this machine: choose another one with --%s", setting, address, setting)
	}
	return fmt.Errorf("%s: %w", setting, err)
}

// serve serves on listener until ctx ends; then it drains. It fails if the listener fails
// before that. The caller closes the platform in both cases.
func (p *platform) serve(ctx context.Context, listener net.Listener, listening *listenConfig, s settings, ready func(url string)) error {
	server := p.server.HTTPServer(s.Listen)
	handler := &drainingHandler{next: p.handler(s)}
	server.Handler = handler
	start, err := listening.prepare(server, listener, p)
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
	return p.drain(ctx, server, handler, s, failed)
}

// listenConfig is the configuration of the listener that the settings and this machine
// determine.
type listenConfig struct {
	limit       int // of open connections
	proxies     admission.Addresses
	certificate *certificate // nil: plain HTTP
}

// newListenConfig fails if the limit of open files is too small for s, or if the
// certificate cannot be read.
func newListenConfig(s settings, logger *zap.Logger) (*listenConfig, error) {
	limit, err := maxConnections(s)
	if err != nil {
		return nil, err
	}
	proxies, err := s.Network.proxies()
	if err != nil {
		return nil, err
	}
	c := &listenConfig{limit: limit, proxies: admission.Addresses{Proxies: proxies}}
	if s.Network.TLSCert != "" {
		c.certificate, err = loadCertificate(s.Network.TLSCert, s.Network.TLSKey, logger)
	}
	return c, err
}

// prepare applies the limit of connections and the certificate to server, and registers
// the metrics of connections. start serves on listener until server is shut down; its error
// is then http.ErrServerClosed.
func (c *listenConfig) prepare(server *http.Server, listener net.Listener, p *platform) (start func() error, err error) {
	open := newConnections(c.limit, c.proxies, p.logger)
	if err := open.register(p.metrics); err != nil {
		return nil, err
	}
	server.ConnState, server.ConnContext = open.track, open.context
	if c.certificate == nil {
		return func() error { return server.Serve(listener) }, nil
	}
	server.TLSConfig = c.certificate.config()
	return func() error { return server.ServeTLS(listener, "", "") }, nil // the files are in TLSConfig
}

// drain shuts server down in two steps. For s.Network.DrainDelay the server still accepts
// connections, but /readyz answers 503 and each connection closes after its next answer, so
// that load balancers choose other replicas before a connection is refused. Then the
// listener closes, and requests in flight have s.DrainTimeout to finish. It fails if some
// did not: their connections are then closed, and the activations are cancelled.
//
// With drain-delay 5s and drain-timeout 30s, a signal at 0 s has these effects:
//
//	 0 s  /readyz answers 503; no more jobs and activities are taken
//	 5 s  new connections are refused; event streams and waiting fetches end
//	35 s  the requests that still run are cut off
//	45 s  the latest end of the process, after closeTimeout
func (p *platform) drain(ctx context.Context, server *http.Server, handler *drainingHandler, s settings, failed <-chan error) error {
	p.stopWork() // first: from now on other replicas take the jobs and the activities
	p.logger.Info("draining", zap.Duration("delay", s.Network.DrainDelay), zap.Duration("timeout", s.DrainTimeout))
	handler.draining.Store(true)
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

// drainingHandler closes each connection after its next answer once draining is set.
// (SetKeepAlivesEnabled would also close idle connections, where the next request may be on
// its way.) Connections that send no further request are closed by Shutdown.
type drainingHandler struct {
	next     http.Handler
	draining atomic.Bool
}

// ServeHTTP implements http.Handler.
func (h *drainingHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		w.Header()["Connection"] = []string{"close"}
	}
	h.next.ServeHTTP(w, r)
}
