package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is the other end of a bridge: it answers by answer, and records the messages.
type server struct {
	mu      sync.Mutex
	headers []http.Header
	answer  func(ctx context.Context, message string) (*http.Response, error)
}

func (s *server) post(ctx context.Context, header http.Header, message []byte) (*http.Response, error) {
	s.mu.Lock()
	s.headers = append(s.headers, header)
	s.mu.Unlock()
	return s.answer(ctx, string(message))
}

// response makes a response.
func response(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}, "Mcp-Session-Id": {"s1"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// bridged runs a bridge over the lines, and returns what it printed and reported.
func bridged(t *testing.T, s *server, lines string) (out string, reports []string) {
	t.Helper()
	var printed bytes.Buffer
	var mu sync.Mutex
	b := newBridge(s.post, &printed, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, err.Error())
	})
	if err := b.run(t.Context(), strings.NewReader(lines)); err != nil {
		t.Fatalf("run: %v", err)
	}
	return printed.String(), reports
}

func TestBridgePassesMessagesOn(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(_ context.Context, message string) (*http.Response, error) {
		switch {
		case strings.Contains(message, "initialize\""):
			return response(200, "application/json", "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\"}}\n"), nil
		case strings.Contains(message, "notifications/"):
			return response(202, "", ""), nil
		}
		return response(200, "text/event-stream", ": alive\n\nevent: message\ndata: {\"method\":\"notifications/progress\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"), nil
	}}
	out, reports := bridged(t, s, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`+"\n\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\r\n"+`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	const want = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}` + "\n" + `{"method":"notifications/progress"}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n"
	if out != want || len(reports) > 0 {
		t.Errorf("got %s and the reports %v, want %s and none", out, reports, want)
	}
	if h := s.headers[2]; h.Get("Mcp-Session-Id") != "s1" || h.Get("Mcp-Protocol-Version") != "2025-06-18" {
		t.Errorf("got the headers %v, want the session and the version", h)
	}
	if h := s.headers[0]; h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != "" {
		t.Errorf("got the headers %v of the first message, want neither session nor version", h)
	}
}

// Failures are answered to the client, and reported; nothing else is printed.
func TestBridgeAnswersFailures(t *testing.T) {
	t.Parallel()
	s := &server{answer: func(_ context.Context, message string) (*http.Response, error) {
		switch {
		case strings.Contains(message, `"id":1,`):
			return response(401, "application/problem+json", `{"code":"CS_AUTHN_INVALID","detail":"the API key is unknown"}`), nil
		case strings.Contains(message, `"id":2,`):
			return nil, errors.New("the server cannot be reached")
		case strings.Contains(message, `"id":3,`):
			return response(200, "application/json", "<html>"), nil
		case strings.Contains(message, `"id":4,`):
			return response(404, "application/json", `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}`), nil
		}
		return response(500, "text/plain", "broken"), nil
	}}
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"x"}`:        "CS_AUTHN_INVALID",
		`{"jsonrpc":"2.0","id":2,"method":"x"}`:        "cannot be reached",
		`{"jsonrpc":"2.0","id":3,"method":"x"}`:        "no JSON",
		`{"jsonrpc":"2.0","method":"notifications/x"}`: "500 broken",
		`{`: "no message",
		`{"id":"` + strings.Repeat("x", maxLine) + `"}`: "exceeds 4 MiB",
	} {
		out, reports := bridged(t, s, line)
		if len(reports) != 1 || !strings.Contains(reports[0], want) {
			t.Errorf("%.60s: got the reports %v, want %s", line, reports, want)
		}
		answered := strings.Contains(line, `"method":"x"`)
		if answered != strings.Contains(out, want) || !answered && out != "" {
			t.Errorf("%.60s: printed %s, want an error only for a request", line, out)
		}
	}
	if out, reports := bridged(t, s, `{"jsonrpc":"2.0","id":4,"method":"x"}`); !strings.Contains(out, "-32601") || len(reports) > 0 {
		t.Errorf("got %s and the reports %v, want the server's error and none", out, reports)
	}
}

// A client without a session cancels a request by its end; with one, the server is notified.
func TestBridgeCancels(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	s := &server{answer: func(ctx context.Context, message string) (*http.Response, error) {
		if strings.Contains(message, "cancelled") {
			return nil, errors.New("the notification was passed on")
		}
		close(begun)
		select {
		case <-ctx.Done():
			close(ended)
		case <-time.After(30 * time.Second):
		}
		return nil, ctx.Err()
	}}
	in, client := io.Pipe()
	finished := make(chan error, 1)
	var out bytes.Buffer
	b := newBridge(s.post, &out, func(err error) { t.Errorf("got the report %v, want none", err) })
	go func() { finished <- b.run(t.Context(), in) }()
	send := func(line string) {
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Errorf("write: %v", err)
		}
	}
	send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	<-begun
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the request did not end, want it cancelled")
	}
	_ = client.Close()
	if err := <-finished; err != nil || out.Len() > 0 {
		t.Errorf("got %v and %s, want no error and no answer", err, out.String())
	}
	if h := s.headers[0]; h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "x" || h.Get("Mcp-Protocol-Version") != "2026-07-28" {
		t.Errorf("got the headers %v, want those of the version 2026-07-28", h)
	}
}
