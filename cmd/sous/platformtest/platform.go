// Package platformtest runs the built binary as operators do, for tests that need whole
// processes: crashes, outages and hostile tenants.
package platformtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/soustest"
)

// The tenant and namespace of the functions that tests publish.
const (
	Tenant    = "t_platform"
	Namespace = "default"
)

// Server is a running `sous serve`.
type Server struct {
	*soustest.Server
	key string // of the administrator, under --auth keys
}

// Config configures a Server.
type Config struct {
	Store  string   // its URL
	Key    string   // of an administrator, see Bootstrap; "" is a server without API keys
	Listen string   // "" is a free port
	Args   []string // further ones
}

// Serve starts `sous serve` over the store at storeURL, without API keys and without rates of
// clients, since all of a test come from one address, and waits until it is ready. It is stopped at the end of the test, if it still
// runs.
func Serve(t testing.TB, storeURL string, args ...string) *Server {
	t.Helper()
	return Config{Store: storeURL, Args: args}.Serve(t)
}

// Serve is the function Serve for any Config.
func (c Config) Serve(t testing.TB) *Server {
	t.Helper()
	auth := "off"
	if c.Key != "" {
		auth = "keys"
	}
	running, err := soustest.Command{
		Args:   append([]string{"serve", "--auth", auth, "--store", c.Store, "--client-read-rate", "0", "--client-write-rate", "0"}, c.Args...),
		Listen: c.Listen, Env: []string{"SOUS_MIRROR_DIR=" + t.TempDir()}, // not that of the user
	}.Start(soustest.Executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	s := &Server{Server: running, key: c.Key}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if err := leak(s.Output(), s.key); err != nil {
			t.Errorf("output of %s: %v", s.URL, err)
		}
		if t.Failed() {
			t.Logf("output of %s:\n%s", s.URL, s.Output())
		}
	})
	Eventually(t, 20*time.Second, "the server is ready", func() error {
		return s.client(t).Ready(t.Context())
	})
	return s
}

// Key returns the administrator's API key, "" for a server without API keys.
func (s *Server) Key() string { return s.key }

// Sandboxes returns the process ids of the server's children.
func (s *Server) Sandboxes(t testing.TB) []int {
	t.Helper()
	pids, err := soustest.Children(s.Pid())
	if err != nil {
		t.Fatalf("Children: %v", err)
	}
	return pids
}

func (s *Server) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(s.URL, client.Config{MaxAttempts: 1, Key: s.key})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return c
}

// API returns a client of Tenant that does not repeat failed requests.
func (s *Server) API(t testing.TB) *client.Tenant {
	t.Helper()
	return s.client(t).Tenant(Tenant)
}

// APIOf returns a client of another tenant that does not repeat failed requests.
func (s *Server) APIOf(t testing.TB, tenant string) *client.Tenant {
	t.Helper()
	return s.client(t).Tenant(tenant)
}

// PublishTo is Publish for another tenant, for which APIOf returned the client.
func (s *Server) PublishTo(t testing.TB, tenant *client.Tenant, name, config string, files map[string]string) {
	t.Helper()
	if err := publish(t, tenant, name, config, files, nil); err != nil {
		t.Fatalf("publish %s: %v", name, err)
	}
}

// Publish creates a function, publishes files under config ("" is the default),
// and points prod at it.
func (s *Server) Publish(t testing.TB, name, config string, files map[string]string) {
	t.Helper()
	if err := s.publish(t, name, config, files, nil); err != nil {
		t.Fatalf("publish %s: %v", name, err)
	}
}

// PublishUnverified is Publish for modules that fail when they are loaded.
func (s *Server) PublishUnverified(t testing.TB, name, config string, files map[string]string) {
	t.Helper()
	verify := false
	if err := s.publish(t, name, config, files, &verify); err != nil {
		t.Fatalf("publish %s unverified: %v", name, err)
	}
}

// TryPublish is Publish for tests that expect a refusal, which it returns.
func (s *Server) TryPublish(t testing.TB, name string, files map[string]string) error {
	t.Helper()
	return s.publish(t, name, "", files, nil)
}

func (s *Server) publish(t testing.TB, name, config string, files map[string]string, verify *bool) error {
	t.Helper()
	return publish(t, s.API(t), name, config, files, verify)
}

func publish(t testing.TB, tenant *client.Tenant, name, config string, files map[string]string, verify *bool) error {
	ns := tenant.Namespace(Namespace)
	if _, err := ns.CreateFunction(t.Context(), client.NewFunction{Name: name}); err != nil {
		return err
	}
	contents := make(map[string][]byte, len(files))
	for path, text := range files {
		contents[path] = []byte(text)
	}
	draft, err := ns.Function(name).UploadFiles(t.Context(), contents)
	if err != nil {
		return err
	}
	_, err = ns.Function(name).Publish(t.Context(), client.Publish{
		DraftID: draft.DraftID, Config: json.RawMessage(cmp.Or(config, "{}")), Alias: "prod", Verify: verify,
	})
	return err
}

// Answer is the response of a function's endpoint.
type Answer struct {
	Status       int
	ActivationID string
	Body         string
	Header       http.Header
	Took         time.Duration
}

// Code returns the code of the problem in the body, "" if the body is no problem.
func (a Answer) Code() string {
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal([]byte(a.Body), &problem) != nil {
		return ""
	}
	return problem.Code
}

// Web sends a GET request with headers to the endpoint of the function called name.
func (s *Server) Web(ctx context.Context, name string, headers map[string]string) (Answer, error) {
	url := s.URL + "/v1/web/" + Tenant + "/" + Namespace + "/" + name + "/prod"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Answer{}, err
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	begin := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Answer{}, err
	}
	var body bytes.Buffer
	_, err = body.ReadFrom(resp.Body)
	return Answer{
		Status: resp.StatusCode, ActivationID: resp.Header.Get("x-cs-activation-id"),
		Body: body.String(), Header: resp.Header, Took: time.Since(begin),
	}, errors.Join(err, resp.Body.Close())
}

// Eventually calls check until it returns nil. It fails the test after the time within.
func Eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got error %v after %s, want none", what, err, within)
		}
		time.Sleep(25 * time.Millisecond) // the pause between two checks
	}
}
