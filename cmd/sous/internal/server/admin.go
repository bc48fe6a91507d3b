package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Bounds of the operators' server. There is none on writing: a profile takes as
// long as it is asked to.
const (
	adminReadTimeout = 10 * time.Second
	adminIdleTimeout = 2 * time.Minute
	adminHeaderBytes = 16 << 10
	// Scrapes at once; each walks over all label sets.
	adminScrapes       = 4
	adminScrapeTimeout = 30 * time.Second
	// Connections at once: theirs are not among those of max-connections, and must
	// not take the files that the others need.
	adminConnections = 64
)

// openAdmin answers operators' questions on an address of its own, apart from
// tenants' traffic, if s names one, until ctx ends.
func (p *platform) openAdmin(ctx context.Context, s settings) error {
	if s.AdminListen == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.AdminListen)
	if err != nil {
		return fmt.Errorf("admin-listen: %w", err)
	}
	server := &http.Server{
		Handler:        p.adminHandler(isLocal(listener.Addr().String())),
		ReadTimeout:    adminReadTimeout,
		IdleTimeout:    adminIdleTimeout,
		MaxHeaderBytes: adminHeaderBytes,
		ErrorLog:       zap.NewStdLog(p.logger),
		ConnState:      newConnections(adminConnections, p.logger.Named("admin")).track,
	}
	p.loops.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("the admin address does not answer any more", zap.Error(err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is left to tell
	p.logger.Info("answering operators", zap.Stringer("address", listener.Addr()))
	return nil
}

// adminHandler answers /metrics to whoever reaches it, and /debug/pprof to this
// machine only: profiles show what the server holds in memory, keys and events
// included. On a loopback address browsers are kept from reading either for a page
// that they show (DNS rebinding).
func (p *platform) adminHandler(local bool) http.Handler {
	mux := http.NewServeMux()
	scrape := promhttp.HandlerFor(p.metrics, promhttp.HandlerOpts{
		ErrorLog: zap.NewStdLog(p.logger), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: adminScrapes,
	})
	scrape = readInTime(scrape)
	if local {
		scrape = p.server.GuardHost(scrape)
	}
	mux.Handle("GET /metrics", scrape)
	debug := http.NewServeMux()
	debug.HandleFunc("/debug/pprof/", pprof.Index)
	debug.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	debug.HandleFunc("/debug/pprof/profile", pprof.Profile)
	debug.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	debug.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/debug/pprof/", localPeersOnly(p.server.GuardHost(debug)))
	return mux
}

// readInTime ends answers that nobody reads, which would keep the next scrapes out.
func readInTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Writers that know no deadlines (in tests) have no client that could be deaf.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(adminScrapeTimeout))
		next.ServeHTTP(w, r)
	})
}

// localPeersOnly refuses requests from other machines.
func localPeersOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.RemoteAddr) {
			http.Error(w, "only this machine may profile the server", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal says whether address, an IP and a port, is on the loopback.
func isLocal(address string) bool {
	peer, err := netip.ParseAddrPort(address)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
