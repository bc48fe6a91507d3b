// Command sous is the platform: its server, its command line and, re-executed,
// the sandbox that runs functions.
//
// Package cli has the commands. A process that is started as a sandbox child, or as the
// nursery that forks them, does not reach main: package childproc takes it over.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// First, so that a sandbox child never initialises what only a server needs.
	_ "github.com/codesous/sous/cmd/sous/childproc"
	"github.com/codesous/sous/cmd/sous/internal/cli"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// The default action is restored before the shutdown begins, so that a second
		// signal ends the process immediately.
		signal.Reset(os.Interrupt, syscall.SIGTERM)
		cancel()
	}()
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
