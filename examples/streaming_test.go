package examples

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
)

// feed is a client of the example streaming-sse.
type feed struct {
	t     *testing.T
	lines *bufio.Scanner
	leave context.CancelFunc
}

// subscribe opens the stream. lastID is the value of Last-Event-ID, "" for none.
func subscribe(t *testing.T, url, lastID string) *feed {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("GET: got error %v, want a stream", err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("GET: got status %d and type %q, want 200 and text/event-stream", res.StatusCode, got)
	}
	return &feed{t: t, lines: bufio.NewScanner(res.Body), leave: leave}
}

// next returns the lines up to the next empty one, joined by "|".
func (f *feed) next() string {
	f.t.Helper()
	var block []string
	for f.lines.Scan() {
		if f.lines.Text() == "" {
			return strings.Join(block, "|")
		}
		block = append(block, f.lines.Text())
	}
	f.t.Fatalf("the stream ended with error %v after %q, want a message", f.lines.Err(), block)
	return ""
}

// want reads messages up to the given one. Only heartbeats may come before it.
func (f *feed) want(want string) {
	f.t.Helper()
	got := f.next()
	for got == ": heartbeat" && want != got {
		got = f.next()
	}
	if got != want {
		f.t.Errorf("message: got %q, want %q", got, want)
	}
}

func testStreaming(t *testing.T, server *soustest.Server) {
	url := deployPackages(t, server, "streaming-sse", "--config", `{"env":{"POLL_MS":"20","HEARTBEAT_MS":"100"}}`)
	call{"POST", "", nil, "before", 201, `{"id":1}`}.do(t, url)
	f := subscribe(t, url, "")
	f.want("retry: 1000")
	f.want(": heartbeat")
	call{"POST", "", nil, "two\nlines", 201, `{"id":2}`}.do(t, url)
	f.want("id: 2|data: two|data: lines")
	call{"POST", "", nil, "third", 201, `{"id":3}`}.do(t, url)
	f.want("id: 3|data: third")
	f.leave()
	left(t, server, "the client left after event 3")

	again := subscribe(t, url, "1")
	again.want("retry: 1000")
	again.want("id: 2|data: two|data: lines")
	again.want("id: 3|data: third")

	call{"GET", "", map[string]string{"Last-Event-ID": "x"}, "", 400, `{"error":"Last-Event-ID is not an id of this feed"}`}.do(t, url)
	call{"DELETE", "", nil, "", 405, ""}.do(t, url)
}

// left waits until an activation of the example was cancelled and has logged the message.
func left(t *testing.T, server *soustest.Server, message string) {
	t.Helper()
	api := tenant(t, server)
	platformtest.Eventually(t, 20*time.Second, "the activation of the client that left ends", func() error {
		page, err := api.Activations(t.Context(), client.ActivationFilter{Namespace: "default", Function: "streaming-sse", Status: "cancelled"}, client.PageOptions{})
		if err != nil {
			return err
		}
		for i := range page.Items {
			for line, err := range api.LogLines(t.Context(), page.Items[i].ActivationID) {
				if err != nil {
					return err
				}
				if string(line.Message) == strconv.Quote(message) {
					return nil
				}
			}
		}
		return fmt.Errorf("none of %d cancelled activations has logged %q", len(page.Items), message)
	})
}
