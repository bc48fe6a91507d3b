package webhooks_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api/webhook"
	dispatch "github.com/codesous/sous/scheduler/webhooks"
)

// listen listens on an address of this machine.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		t.Fatalf("Listen(%s): %v", address, err)
	}
	return l
}

// TestReceiverThatDiesAndReturns: a receiver that is killed in the middle of requests, and listens
// again later, gets every event. The webhook fails in between, and no longer afterwards.
func TestReceiverThatDiesAndReturns(t *testing.T) {
	t.Parallel()
	const total = 60
	f := newFixture(t, redis(t))
	var mu sync.Mutex
	accepted, dies := map[string]bool{}, make(chan struct{})
	handler := func(last int) http.Handler { // it accepts no more than last events
		return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if len(accepted) >= last {
				mu.Unlock()
				select {
				case dies <- struct{}{}:
				default:
				}
				<-req.Context().Done()
				mu.Lock()
				return
			}
			accepted[req.Header.Get(webhook.HeaderID)] = true
		})
	}
	first := listen(t, "127.0.0.1:0")
	address := first.Addr().String()
	server := &http.Server{Handler: handler(total / 3), ReadHeaderTimeout: waitLimit}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(first) }) // it ends with Close
	f.create(t, "one", "http://"+address, func(c *webhook.Config) { c.RetryLimit = webhook.MaxRetryLimit })
	for i := range total {
		f.happen(t, fmt.Sprint("f", i))
	}
	f.run(t, dispatch.Config{Timeout: waitLimit})
	select {
	case <-dies:
	case <-time.After(waitLimit):
		t.Fatalf("got no request behind the first %d events within %s, want one", total/3, waitLimit)
	}
	_ = server.Close() // as a kill does: it cuts the connections
	serving.Wait()
	eventually(t, "failure", func() bool {
		w := f.get(t, "one")
		return w.FailingSinceMS > 0 && w.LastStatus == 0 && w.LastError != ""
	})
	server = &http.Server{Handler: handler(total + 1), ReadHeaderTimeout: waitLimit}
	second := listen(t, address)
	serving.Go(func() { _ = server.Serve(second) })
	defer func() { _ = server.Close(); serving.Wait() }()
	eventually(t, "delivery of all events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		w := f.get(t, "one")
		return len(accepted) == total && w.Pending == 0 && w.FailingSinceMS == 0
	})
}
