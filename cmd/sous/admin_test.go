package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// The admin address answers operators, and no page that a browser shows them.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t, "--admin-listen", "127.0.0.1:0")
	_, rest, found := strings.Cut(server.Output(), "answering operators")
	if !found {
		t.Fatalf("the address is not logged:\n%s", server.Output())
	}
	_, rest, _ = strings.Cut(rest, `"address": "`)
	addr, _, _ := strings.Cut(rest, `"`)
	for host, want := range map[string]int{addr: http.StatusOK, "rebound.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/debug/pprof/cmdline", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it has been read
		if err != nil || resp.StatusCode != want {
			t.Errorf("host %s: %d %.100s %v, want %d", host, resp.StatusCode, body, err, want)
		}
	}
}
