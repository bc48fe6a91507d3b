package command

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
)

// TestOtherServersAreExplained: what answers at the URL is not always sous, or not by the
// protocol of the URL.
func TestOtherServersAreExplained(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>nginx</html>")
	})
	missing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	plain, not, secure := httptest.NewServer(page), httptest.NewServer(missing), httptest.NewUnstartedServer(page)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshakes
	secure.StartTLS()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	t.Cleanup(func() {
		plain.Close()
		not.Close()
		secure.Close()
		_ = silent.Close()
	})
	for url, want := range map[string]string{
		plain.URL: "this is no answer of sous",
		not.URL:   "this is no answer of sous",
		strings.Replace(plain.URL, "http", "https", 1):  "speaks plain HTTP: write http://",
		strings.Replace(secure.URL, "https", "http", 1): "expects TLS: write https://",
		secure.URL:                         "SSL_CERT_FILE",
		"http://" + silent.Addr().String(): "did not answer in time",
	} {
		c, err := client.New(url, client.Config{Transport: &http.Transport{ResponseHeaderTimeout: 300 * time.Millisecond, DisableKeepAlives: true}})
		if err != nil {
			t.Fatalf("client.New: %v", err)
		}
		_, err = c.Tenant("t_default").Namespace("default").Functions(t.Context(), client.PageOptions{})
		var out bytes.Buffer
		(&App{Stderr: &out, Output: FormatText}).Report(err)
		if !strings.Contains(out.String(), want) {
			t.Errorf("Report of %s: got %q, want it to contain %q", url, out.String(), want)
		}
	}
}
