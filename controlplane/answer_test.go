package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
)

// deaf is a connection whose client has no room for answers.
func deaf(t *testing.T, h *harness) net.Conn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
		}), err)
	}}
	conn, err := dialer.DialContext(t.Context(), "tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatalf("DialContext: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A client that does not read answers loses its connection, instead of holding it for ever.
func TestClientsThatDoNotReadAreCut(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.AnswerTimeout = 100 * time.Millisecond })
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) { return success(""), nil }
	for name, target := range map[string]string{"with a body": "/openapi.json", "headers alone": h.web("/")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := deaf(t, h)
			asked := bytes.Repeat([]byte("GET "+target+" HTTP/1.1\r\nHost: localhost\r\n\r\n"), 100)
			for begin := time.Now(); ; {
				_ = conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
				if _, err := conn.Write(asked); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
				if time.Since(begin) > 15*time.Second {
					t.Fatal("the connection is still open after 15 s, want it closed")
				}
			}
		})
	}
}

// The time to read an answer begins with the answer, however long it is in the making.
func TestSlowFunctionsAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *harness){"HTTP/1.1": func(*testing.T, *harness) {}, "HTTP/2.0": overTLS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 50 * time.Millisecond
			h := start(t, func(c *controlplane.Config) { c.AnswerTimeout = timeout })
			change(t, h)
			h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
				<-time.After(3 * timeout)
				return success(`"late"`), nil
			}
			if a := h.call(t, "POST", h.web("/"), "body"); a.status != http.StatusOK || string(a.body) != `"late"` {
				t.Errorf("POST: got %d %s, want status 200 and body \"late\"", a.status, a.body)
			}
		})
	}
}

// overTLS replaces the server of h by one that speaks HTTP/2.
func overTLS(t *testing.T, h *harness) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = h.control.HTTPServer("")
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	h.Server, h.client = server, server.Client()
	if a := h.call(t, "GET", "/healthz", ""); a.status != http.StatusOK {
		t.Fatalf("GET: got %v, want status 200", a.status)
	}
}

// HTTP/2 ends a stream whose deadline passes, also where nothing waits to be written.
func TestSilentStreamsOutliveTheirDeadline(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) {
		c.KeepAlive, c.AnswerTimeout = 200*time.Millisecond, 50*time.Millisecond
	})
	overTLS(t, h)
	a := h.run(t, time.Now().UnixMilli())
	alive, ended := 0, false
	events(t, h, h.logs(a, "?follow=true"), func(e event) {
		if e.comment == "alive" {
			alive++
			if alive == 2 {
				h.finish(t, a, api.StatusSuccess, `1`)
			}
		}
		ended = ended || e.name == "end"
	})
	if !ended {
		t.Error("the stream was cut, want an end event")
	}
}

// The headers of an answer take from the budget of bytes, like its body.
func TestHeadsOfAnswersTakeFromTheBudget(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *controlplane.Config) { c.BodyBudget = 1 << 20 })
	for size, want := range map[int]int{1 << 10: http.StatusOK, 900 << 10: http.StatusTooManyRequests} {
		h.answers(`{"x-large":"` + strings.Repeat("x", size) + `"}`)
		a := h.call(t, "GET", h.web("/"), "")
		if got := len(a.header.Get("X-Large")); a.status != want || want == http.StatusOK && got != size || want != http.StatusOK && got > 0 {
			t.Errorf("a header of %d bytes with a budget of 1 MiB: got %d and %d bytes of it, want %d", size, a.status, got, want)
		}
	}
}
