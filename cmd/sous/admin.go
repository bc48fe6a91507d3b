package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"go.uber.org/zap"
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
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	// No write timeout: a profile takes as long as it is asked to.
	server := &http.Server{Handler: p.server.GuardHost(mux), ReadHeaderTimeout: 5 * time.Second}
	p.loops.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("the admin address does not answer any more", zap.Error(err))
		}
	})
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody is left to tell
	p.logger.Info("answering operators", zap.Stringer("address", listener.Addr()))
	return nil
}
