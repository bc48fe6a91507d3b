package server

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// secure is a server that answers HTTPS, and a function there.
type secure struct {
	*soustest.Server
	roots             *x509.CertPool
	certFile, keyFile string
}

func startSecure(t *testing.T) *secure {
	t.Helper()
	dir := t.TempDir()
	s := &secure{}
	s.certFile, s.keyFile = writeCertificate(t, dir, "first")
	s.trust(t)
	s.Server = soustest.Start(t, "--tls-cert", s.certFile, "--tls-key", s.keyFile)
	source := filepath.Join(dir, "talker")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatalf("os.Mkdir: %v", err)
	}
	code := `export default (event) => { console.log("heard"); return { statusCode: 200, body: event.body }; };`
	if err := os.WriteFile(filepath.Join(source, "function.js"), []byte(code), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	s.Env = []string{"SSL_CERT_FILE=" + s.certFile} // the certificate is the system's root
	s.Sous(t, "fn", "deploy", source)
	return s
}

// trust makes the certificate of now the only root.
func (s *secure) trust(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(s.certFile)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	s.roots = x509.NewCertPool()
	if !s.roots.AppendCertsFromPEM(text) {
		t.Fatal("the certificate file holds no certificate")
	}
}

func (s *secure) client(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}, ForceAttemptHTTP2: http2}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: waitLimit}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	if !strings.HasPrefix(s.URL, "https://") {
		t.Fatalf("URL = %s, want https://…", s.URL)
	}
	if out, err := s.TrySous(t, "health"); err != nil {
		t.Errorf("health with the root: %v, want no error\n%s", err, out)
	}
	stranger := exec.CommandContext(t.Context(), soustest.Executable(t), "health", "--url", s.URL)
	if out, err := stranger.CombinedOutput(); err == nil || !strings.Contains(string(out), "certificate") {
		t.Errorf("health without the root: %v, want a certificate error\n%s", err, out)
	}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		id := callSecure(t, s.client(t, http2), s.URL, name)
		followSecure(t, s.client(t, http2), s.URL, id)
	}
	old := &tls.Config{RootCAs: s.roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL, "https://"), old); err == nil {
		conn.Close()
		t.Error("dial with TLS 1.1 succeeded, want an error")
	}
}

// callSecure calls the function's endpoint and returns the activation's id.
func callSecure(t *testing.T, c *http.Client, url, protocol string) string {
	t.Helper()
	response, err := c.Post(url+"/v1/web/t_default/default/talker/prod", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatalf("Post: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Proto != protocol || string(body) != "hello" {
		t.Errorf("POST over %s = %s %s %s, %v, want %s 200 OK hello", protocol, response.Proto, response.Status, body, err, protocol)
	}
	return response.Header.Get("X-Cs-Activation-Id")
}

// followSecure reads the activation's log as events, to its end.
func followSecure(t *testing.T, c *http.Client, url, id string) {
	t.Helper()
	response, err := c.Get(fmt.Sprintf("%s/v1/tenants/t_default/activations/%s/logs?follow=true", url, id))
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	defer response.Body.Close()
	var events []string
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			events = append(events, event)
		}
	}
	if got := strings.Join(events, " "); got != "log end" {
		t.Errorf("%s: events %q, want a log and its end", response.Proto, got)
	}
}

// A renewal is served to new connections, without a restart.
func TestCertificateRenewal(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	writeCertificate(t, filepath.Dir(s.certFile), "the second")
	s.trust(t) // nothing else from here on
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(20 * time.Millisecond) {
		response, err := s.client(t, false).Get(s.URL + "/healthz")
		if err == nil {
			response.Body.Close()
			if got := response.TLS.PeerCertificates[0].Subject.CommonName; got != "the second" {
				t.Errorf("certificate after the renewal is that of %q, want %q", got, "the second")
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got error %v after %s, want an answer with the new certificate", err, waitLimit)
		}
	}
}

func TestSettingsOfTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile := writeCertificate(t, t.TempDir(), "one")
	_, otherKey := writeCertificate(t, t.TempDir(), "other")
	for want, args := range map[string][]string{
		"want both or neither": {"--tls-cert", certFile},
		"both or neither":      {"--tls-key", keyFile},
		"private key does not": {"--tls-cert", certFile, "--tls-key", otherKey},
		"max-connections":      {"--max-connections", "100000000"},
		"cannot be negative":   {"--max-connections", "-1"},
		"client-read-rate and": {"--client-write-rate", "-1"},
		"queue-fetches":        {"--queue-fetches", "-1"},
		"stream-frame-rate":    {"--stream-frame-rate", "-1"},
		"drain-delay":          {"--drain-delay", "-1s"},
	} {
		_, err := soustest.Command{Args: append([]string{"dev", "--data-dir", t.TempDir()}, args...)}.Start(soustest.Executable(t))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
}
