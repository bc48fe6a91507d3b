package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/admission"
)

// Limits of the admin server. Writing has none: the client of a profile chooses how long it
// takes.
const (
	adminReadTimeout = 10 * time.Second
	adminIdleTimeout = 2 * time.Minute
	adminHeaderBytes = 16 << 10
	// adminScrapes bounds concurrent scrapes; each walks over all label sets. Further ones
	// are answered with 503.
	adminScrapes       = 4
	adminScrapeTimeout = 30 * time.Second // to read the answer
	// adminConnections bounds the connections of this server. max-connections does not
	// count them, and they must not use up the process's file descriptors.
	adminConnections = 64
)

// openAdmin serves metrics and profiles on s.AdminListen until ctx ends. It does nothing
// if the setting is empty. The address is apart from the one that tenants use, and needs no
// API key. It still answers while the server drains: ctx is that of the loops.
func (p *platform) openAdmin(ctx context.Context, s settings) error {
	if s.AdminListen == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.AdminListen)
	if err != nil {
		return listenError("admin-listen", s.AdminListen, err)
	}
	server := &http.Server{
		Handler:        p.adminHandler(isLocal(listener.Addr().String())),
		ReadTimeout:    adminReadTimeout,
		IdleTimeout:    adminIdleTimeout,
		MaxHeaderBytes: adminHeaderBytes,
		ErrorLog:       zap.NewStdLog(p.logger),
		ConnState:      newConnections(adminConnections, admission.Addresses{}, p.logger.Named("admin")).track,
	}
	p.loops.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("the admin server stopped", zap.Error(err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends: an error cannot matter
	p.logger.Info("answering operators", zap.Stringer("address", listener.Addr()))
	return nil
}

// adminHandler serves /metrics to every client, and /debug/pprof to clients on this machine
// only: profiles show the memory of the server, API keys and events included. For a
// loopback address it also checks the Host header, so that no web page can read either
// through the browser of a user on this machine (DNS rebinding).
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

// readInTime ends answers whose client does not read them. They would keep later scrapes out.
func readInTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A writer without deadlines (in tests) has no client that can stall.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(adminScrapeTimeout))
		next.ServeHTTP(w, r)
	})
}

// localPeersOnly refuses requests from other machines.
func localPeersOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.RemoteAddr) {
			http.Error(w, "profiles are served to this machine only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether address, an IP address and a port, is on the loopback interface.
func isLocal(address string) bool {
	peer, err := netip.ParseAddrPort(address)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
