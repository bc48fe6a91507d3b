package server

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/invoker"
)

// Serve runs the server that flags describe until ctx ends, and returns when it has drained.
// It needs a store server, and logs to log. The flags are those of RegisterServe, parsed.
// It fails if a setting is invalid, if the store does not answer or the address is taken,
// and if requests were still running at the end of the drain.
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

// DevOptions are what Dev needs beside its settings.
type DevOptions struct {
	Observer invoker.Observer
	// Reset removes the embedded store before the start.
	Reset bool
	Ready func(url, store string)
}

// Dev runs the server that flags describe, with all roles, until ctx ends. It uses the
// embedded store unless the flags name a store server, and logs to log. Once the server
// accepts connections, Dev calls o.Ready with its URL and a description of its store. The
// flags are those of RegisterDev, parsed.
//
// Besides the defaults of its flags, Dev differs from Serve in these things: the embedded
// store; all roles whatever the settings say; a key file for secrets, which it creates in the
// data folder; answers with the messages of functions' errors; and an observer in
// place of the log's lines about activations, unless the log is for programs.
func Dev(ctx context.Context, flags *pflag.FlagSet, log io.Writer, o DevOptions) error {
	s, err := loadSettings(flags)
	if err != nil {
		return err
	}
	if s.DataDir == "" {
		s.DataDir, err = findDataDir()
		if err != nil {
			return err
		}
	}
	if o.Reset {
		if err := s.reset(); err != nil {
			return err
		}
	}
	if s.Auth == authKeys && s.Store == "" {
		return errKeysEmbedded
	}
	s.ShowErrors = true
	if s.LogFormat == logConsole { // a program reads the log's own lines
		s.Observer = o.Observer
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
	return runServer(ctx, s, logger, func(url string) { o.Ready(url, store) })
}
