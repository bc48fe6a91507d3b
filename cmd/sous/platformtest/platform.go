// Package platformtest runs the built binary as its operators do, for tests of
// what only whole processes show: crashes, outages and hostile tenants.
package platformtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
)

// The tenant and namespace of what the tests publish.
const (
	Tenant    = "t_platform"
	Namespace = "default"
)

// Server is a running `sous serve`.
type Server struct {
	URL    string
	cmd    *exec.Cmd
	output *lockedBuffer
	ended  chan struct{}
}

// Serve starts `sous serve` over the store at storeURL and waits until it is
// ready. It is stopped at the end of the test.
func Serve(t testing.TB, binary, storeURL string, args ...string) *Server {
	t.Helper()
	addr := freeAddr(t)
	args = append([]string{"serve", "--store", storeURL, "--listen", addr}, args...)
	// Not bound to the test's context: that ends before the cleanup that stops it.
	cmd := exec.Command(binary, args...) //nolint:noctx // stopped by Cleanup
	s := &Server{URL: "http://" + addr, cmd: cmd, output: &lockedBuffer{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s.output, s.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait() // how it ended is the tests' own doing
	}()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", s.URL, s.output)
		}
	})
	Eventually(t, 20*time.Second, "the server is ready", func() error {
		return s.client(t).Ready(t.Context())
	})
	return s
}

// Stop ends the server as its operator would, and kills it where that takes
// longer than thirty seconds.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		s.Kill()
	}
}

// Kill ends the server as a crash does and waits until it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.ended
}

// Children are the process ids of the server's sandboxes.
func (s *Server) Children(t testing.TB) []int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, task := range tasks {
		list, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that ended
		}
		for _, field := range strings.Fields(string(list)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func (s *Server) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(s.URL, client.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// API speaks to the server, without repeating what fails.
func (s *Server) API(t testing.TB) *client.Tenant {
	t.Helper()
	return s.client(t).Tenant(Tenant)
}

// Publish creates a function, publishes files under config ("" is the default),
// and points prod at it.
func (s *Server) Publish(t testing.TB, name, config string, files map[string]string) {
	t.Helper()
	if err := s.publish(t, name, config, files); err != nil {
		t.Fatalf("publish %s: %v", name, err)
	}
}

// TryPublish is Publish where a refusal is what the test wants to see.
func (s *Server) TryPublish(t testing.TB, name string, files map[string]string) error {
	t.Helper()
	return s.publish(t, name, "", files)
}

func (s *Server) publish(t testing.TB, name, config string, files map[string]string) error {
	ns := s.API(t).Namespace(Namespace)
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
		DraftID: draft.DraftID, Config: json.RawMessage(cmp.Or(config, "{}")), Alias: "prod",
	})
	return err
}

// Answer is what a function's endpoint said.
type Answer struct {
	Status       int
	ActivationID string
	Body         string
	Header       http.Header
	Took         time.Duration
}

// Code is the problem's code, if the answer is one.
func (a Answer) Code() string {
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal([]byte(a.Body), &problem) != nil {
		return ""
	}
	return problem.Code
}

// Web calls a function's endpoint.
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

// Eventually asks until check gives nil, and fails the test after the given time.
func Eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s: %v", within, what, err)
		}
		time.Sleep(25 * time.Millisecond) // between two questions, not in place of one
	}
}

// Alive says whether a process of this id is there and not only a zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// lockedBuffer keeps the end of what a process prints.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const keptOutput = 256 << 10

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if over := b.buf.Len() + len(p) - keptOutput; over > 0 {
		b.buf.Next(over)
	}
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
