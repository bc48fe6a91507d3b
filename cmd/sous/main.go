// Command sous is the platform: its server, its command line and, re-executed,
// the sandbox that runs functions.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// First, so that a sandbox child does not initialise packages that only a server needs.
	_ "github.com/codesous/sous/cmd/sous/childproc"
	"github.com/codesous/sous/cmd/sous/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action is restored: the second one ends the
	// process immediately.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
