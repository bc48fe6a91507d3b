package server

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/codesous/sous/cmd/sous/internal/build"
)

// Serve runs the server that flags describe, on a store server, until ctx ends. It logs
// to log.
func Serve(ctx context.Context, flags *pflag.FlagSet, log io.Writer) error {
	s, err := loadSettings(flags)
	if err != nil {
		return err
	}
	if s.Store == "" {
		return errors.New("store: serve needs a store server (--store redis://…); sous dev has one of its own")
	}
	logger, stop, err := newLogger(log, s)
	if err != nil {
		return err
	}
	defer stop()
	return runServer(ctx, s, logger, func(url string) {
		logger.Info("serving", zap.String("url", url), zap.Strings("roles", s.Roles), zap.String("auth", s.Auth), zap.String("version", build.Version()))
	})
}

// Dev runs the server that flags describe, in all roles and on an embedded store unless
// they name another one, until ctx ends. It logs to log. It calls ready with the server's
// URL and a description of its store once it accepts connections.
func Dev(ctx context.Context, flags *pflag.FlagSet, log io.Writer, ready func(url, store string)) error {
	s, err := loadSettings(flags)
	if err != nil {
		return err
	}
	if s.Auth == authKeys && s.Store == "" {
		return errKeysEmbedded
	}
	s.Roles = allRoles // even if a configuration file that serve reads too says otherwise
	if err := s.makeSecretsKey(); err != nil {
		return err
	}
	logger, stop, err := newLogger(log, s)
	if err != nil {
		return err
	}
	defer stop()
	store := "an embedded store in " + s.DataDir + " (one process, one machine: for development)"
	if s.Store != "" {
		store = "the store server of --store"
	}
	return runServer(ctx, s, logger, func(url string) { ready(url, store) })
}
