// Package cadencetest runs tests against a real Cadence server: all its services
// in one process, with SQLite as their store, on ports of 127.0.0.1. The first test builds
// it, which takes minutes; later ones find it in the user's cache folder.
//
// build.go finds or builds the program, which is tools/cadenceserver. process.go starts it: a
// guard, a small shell, owns the server's process and its folder, and removes both when the
// test process has ended, however it ended. A start takes seconds, so the tests of a process share
// one server (Start) and use domains of their own (Domain). Tests that stop the server have
// their own (StartOwn).
//
//	s := cadencetest.Start(t)
//	domain := s.Domain(t)
//	s.Work(t, domain, "tasks", func(w worker.Worker) { w.RegisterWorkflow(flow) })
//	run, err := s.Client(t, domain).ExecuteWorkflow(ctx, options, flow)
package cadencetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/cadence/.gen/go/cadence/workflowserviceclient"
	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/cadence/client"
	"go.uber.org/cadence/worker"
	"go.uber.org/cadence/workflow"
	"go.uber.org/zap"

	"github.com/codesous/sous/cadenceworker"
)

// Server is a running Cadence server. Stop and Restart must not be called concurrently with other
// methods.
type Server struct {
	GRPCAddr string // HOST:PORT of the frontend, the argument of cadenceworker.Dial

	dir   string // of its database and log; the guard removes it
	guard *guard
	pid   int
	own   bool // only one test uses it
}

// services are the names of the ports in tools/cadenceserver/config, which reads them from
// environment variables such as CADENCE_FRONTEND_GRPC. The ports are consecutive, in this order.
var services = []string{"FRONTEND", "FRONTEND_GRPC", "HISTORY", "HISTORY_GRPC", "MATCHING", "MATCHING_GRPC", "WORKER"}

// readyWithin bounds a server's start. It takes a few seconds on an idle machine, and much longer
// beside other tests.
const readyWithin = 90 * time.Second

// Skip skips the test under -short: it needs a Cadence server. Start and StartOwn call it.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a Cadence server takes seconds to start, and minutes to build the first time")
	}
}

// Start returns the server that the tests of this process share, and starts it if necessary. It
// ends with the process, however that ends. Tests use domains of their own. If the start failed,
// all tests that need the server fail with the same error.
func Start(t testing.TB) *Server {
	t.Helper()
	Skip(t)
	s, err := sharedServer()
	if err != nil {
		t.Fatalf("sharedServer: %v", err)
	}
	return s
}

var sharedServer = sync.OnceValues(newServer)

// StartOwn starts a server for this test alone, which may stop it. The server and its data are
// removed when the test ends.
func StartOwn(t testing.TB) *Server {
	t.Helper()
	Skip(t)
	s, err := newServer()
	if err != nil {
		t.Fatalf("newServer: %v", err)
	}
	s.own = true
	t.Cleanup(s.guard.end)
	return s
}

// New starts a server for a program that is no test: a benchmark. It runs until Close,
// or the program's end.
func New() (*Server, error) { return newServer() }

// Close kills the server of New and removes its data.
func (s *Server) Close() { s.guard.end() }

// newServer starts a server with empty tables. The reservation of its ports passes to the guard,
// and so ends with it. If a later step fails, the guard removes the server's folder.
func newServer() (*Server, error) {
	binary, folder, err := program()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sous-cadence-")
	if err != nil {
		return nil, fmt.Errorf("start a Cadence server: %w", err)
	}
	first, reservation, err := reserve(len(services))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	config := filepath.Join(folder, "config")
	env := []string{"CADENCE_DATA=" + dir, "CADENCE_CONFIG=" + config}
	for i, name := range services {
		env = append(env, fmt.Sprintf("CADENCE_%s=%d", name, first+i))
	}
	s := &Server{GRPCAddr: address(first + 1), dir: dir}
	s.guard, err = newGuard(dir, env, reservation,
		binary, "--config", config, "start", "--services", "frontend,history,matching,worker")
	err = errors.Join(err, reservation.Close())
	if err != nil {
		return nil, fmt.Errorf("start a Cadence server: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	err = s.setUp(env, binary, config)
	if err == nil {
		err = s.start()
	}
	if err != nil {
		s.guard.end()
		return nil, err
	}
	return s, nil
}

// setUp creates the tables in the server's folder.
func (s *Server) setUp(env []string, binary, config string) error {
	cmd := exec.CommandContext(context.Background(), binary, "--config", config, "schema")
	cmd.Env = append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("set up the tables of a Cadence server: %w\n%s", err, tail(text))
	}
	return nil
}

// start starts the process and waits until workflows can run. It fails with the end of the
// server's log if the process ends first, or after readyWithin.
func (s *Server) start() error {
	var err error
	s.pid, err = s.guard.start()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for {
		err := s.probe(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !runs(s.pid) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log")) // there may be none
			return fmt.Errorf("the Cadence server at %s does not come up: %w\n%s", s.GRPCAddr, err, tail(text))
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// probe calls each service that a workflow needs. Its connection is
// new each time: one that failed would wait before it tries again.
func (s *Server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.GRPCAddr)
	if err != nil {
		return err
	}
	if err := raw.Close(); err != nil {
		return err
	}
	conn, err := cadenceworker.Dial(s.GRPCAddr)
	if err != nil {
		return err
	}
	return errors.Join(answers(ctx, conn.Service), conn.Close(ctx))
}

// answers returns nil if the services matching and history answer calls about a tasklist and a
// workflow that do not exist. The frontend passes the calls on to them.
func answers(ctx context.Context, service workflowserviceclient.Interface) error {
	system, nothing, kind := "cadence-system", "none", shared.TaskListTypeActivity
	_, err := service.DescribeTaskList(ctx, &shared.DescribeTaskListRequest{
		Domain: &system, TaskList: &shared.TaskList{Name: &nothing}, TaskListType: &kind,
	})
	if err != nil {
		return fmt.Errorf("matching: %w", err)
	}
	_, err = service.DescribeWorkflowExecution(ctx, &shared.DescribeWorkflowExecutionRequest{
		Domain: &system, Execution: &shared.WorkflowExecution{WorkflowId: &nothing},
	})
	if missing := new(shared.EntityNotExistsError); !errors.As(err, &missing) {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Stop kills the server, without an orderly end. Its data stay, and so do its ports.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.mustOwn(t)
	if err := s.guard.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
}

// Restart starts the server again, on the same ports and with its data. A server that
// runs is killed first. It returns when workflows can run.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.mustOwn(t)
	if err := s.start(); err != nil {
		t.Fatalf("start: %v", err)
	}
}

func (s *Server) mustOwn(t testing.TB) {
	t.Helper()
	if !s.own {
		t.Fatal("other tests share this Cadence server: a test that stops one takes StartOwn")
	}
}

// Dial returns a new connection to the server, which is closed when the test ends.
func (s *Server) Dial(t testing.TB) *cadenceworker.Conn {
	t.Helper()
	conn, err := cadenceworker.Dial(s.GRPCAddr)
	if err != nil {
		t.Fatalf("cadenceworker.Dial: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := conn.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return conn
}

// Client returns a client that starts and signals workflows in domain. Its connection is closed
// when the test ends.
func (s *Server) Client(t testing.TB, domain string, propagators ...workflow.ContextPropagator) client.Client {
	t.Helper()
	return client.NewClient(s.Dial(t).Service, domain, &client.Options{ContextPropagators: propagators})
}

// Work runs the workflows and activities that register registers, in this process, on
// a tasklist of domain until the test ends. A workflow that a test starts needs a worker of its
// type; the activities under test run in a cadenceworker.Supervisor instead.
func (s *Server) Work(t testing.TB, domain, tasklist string, register func(worker.Worker), propagators ...workflow.ContextPropagator) {
	t.Helper()
	w, err := worker.NewV2(s.Dial(t).Service, domain, tasklist, worker.Options{
		DisableStickyExecution: true, // or a burst of workflows may stall for a minute
		Logger:                 zap.NewNop(),
		ContextPropagators:     propagators,
	})
	if err != nil {
		t.Fatalf("worker.NewV2: %v", err)
	}
	register(w)
	if err := w.Start(); err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(w.Stop)
}

// Domain registers a domain with a random name, and returns the name.
func (s *Server) Domain(t testing.TB) string {
	t.Helper()
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		t.Fatalf("Read: %v", err)
	}
	name := "test-" + hex.EncodeToString(random)
	s.Register(t, name)
	return name
}

// Register registers a domain of the given name, which keeps ended workflows for a day.
func (s *Server) Register(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	days := int32(1)
	err := client.NewDomainClient(s.Dial(t).Service, nil).Register(ctx, &shared.RegisterDomainRequest{
		Name: &name, WorkflowExecutionRetentionPeriodInDays: &days,
	})
	if err != nil {
		t.Fatalf("register domain %s: %v", name, err)
	}
}

// tail returns the end of a log.
func tail(text []byte) []byte {
	const most = 4_000
	return bytes.TrimSpace(text[max(0, len(text)-most):])
}
