package mcp

import (
	"context"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressEvery is the time between two notifications of the progress of a call. It also keeps proxies
// from closing the connection.
const progressEvery = time.Second

// reportProgress notifies the client of a call that has a progressToken, until the returned function is
// called. The progress is the time that has passed, and total, 0 for unknown, the time that the call may
// take at most, both in seconds.
func reportProgress(ctx context.Context, session *sdk.ServerSession, token any, total time.Duration) (stop func()) {
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(done)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			passed := time.Since(begin)
			err := session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: passed.Seconds(), Total: total.Seconds(),
				Message: fmt.Sprintf("running for %d s", int(passed.Seconds())),
			})
			if err != nil {
				return // the client has gone
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
