package server

import (
	"context"
	"errors"
	"net/http"
	"os"

	"go.uber.org/zap"
)

// tryoutSettings returns the settings of a server for one function and one call at a time.
// It has only the api role: no job, schedule or repair runs beside the function. Auth is off,
// because only the calling process can reach the server. Listen satisfies validate; the server never
// listens on it. The second sandbox is for the call, if the one that the publish starts still loads.
func tryoutSettings(egressAllow []string) settings {
	return settings{
		Listen: defaultListen, Auth: authOff, Roles: []string{roleAPI}, EgressAllow: egressAllow, DrainTimeout: defaultDrainTimeout,
		LogLevel: zap.ErrorLevel.String(), LogFormat: logConsole, SandboxMax: 2, SandboxSpares: 1, ShowErrors: true, Unconfined: true,
	}
}

// WithTryout opens a server for the time of use and calls use with the transport to it. No
// other process can reach the server: its connections are made in memory, and its store is
// a temporary folder. egressAllow lists the private address ranges that functions may reach.
//
// The server and its folder are gone when WithTryout returns. It returns the error of use,
// joined with those of closing.
func WithTryout(ctx context.Context, egressAllow []string, use func(http.RoundTripper) error) (err error) {
	s := tryoutSettings(egressAllow)
	if err := s.validate(); err != nil {
		return err
	}
	s.DataDir, err = os.MkdirTemp("", "sous-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.DataDir)) }()
	if err := s.makeSecretsKey(); err != nil {
		return err
	}
	p, err := open(ctx, s, zap.NewNop())
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, p.close(bounded))
	}()
	inner := newPipeListener()
	server := &http.Server{Handler: p.handler(s), ReadHeaderTimeout: closeTimeout}
	go func() { _ = server.Serve(inner) }() // Close below ends it; its error says only that
	defer func() { err = errors.Join(err, server.Close()) }()
	return use(&http.Transport{DialContext: inner.dial})
}
