// Package sdk tests the workers in TypeScript and Python, which are in the folders of that
// name, with servers: each test runs a program of the language against a sous that it
// starts.
package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/cmd/sous/platformtest"
)

// patience bounds the wait for a state that must come. Machines that test are busy.
const patience = 60 * time.Second

// folder has the copies of the packages, for the time of the tests.
var folder string

func TestMain(m *testing.M) {
	var err error
	folder, err = os.MkdirTemp("", "sous-sdk")
	if err != nil {
		fmt.Fprintln(os.Stderr, "os.MkdirTemp:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder) // the system removes it otherwise
	os.Exit(code)
}

// language is a language of workers.
type language struct {
	name string
	// prepare copies the package, installs what it needs, and returns the copy's folder.
	prepare func() (string, error)
	// program is the command of the worker of the tests, in that folder.
	program []string
}

var languages = []*language{
	{"typescript", sync.OnceValues(prepareTypeScript), []string{"node", "dist/test/program.js"}},
	{"python", sync.OnceValues(preparePython), []string{python, "-B", "tests/program.py"}},
}

// python is that of the system, which has Debian's modules.
const python = "/usr/bin/python3"

// dir returns the folder of the language's package. It skips the test under -short.
func (l *language) dir(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: installs packages and starts servers")
	}
	dir, err := l.prepare()
	if err != nil {
		t.Fatalf("prepare %s: %v", l.name, err)
	}
	return dir
}

// prepareTypeScript installs the packages that the lock file pins, and compiles the worker, which
// checks its types.
func prepareTypeScript() (string, error) {
	dir, err := copied("typescript", "node_modules", "dist")
	if err != nil {
		return "", err
	}
	if _, err := run(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", fmt.Errorf("tools/need-npm.sh installs npm: %w", err)
	}
	_, err = run(dir, "node", "node_modules/typescript/bin/tsc")
	return dir, err
}

func preparePython() (string, error) {
	dir, err := copied("python", ".mypy_cache")
	if err != nil {
		return "", err
	}
	if _, err := run(dir, python, "-B", "-c", "import grpc, google.protobuf"); err != nil {
		return "", fmt.Errorf("tools/need-python-worker.sh installs the modules: %w", err)
	}
	return dir, nil
}

// copied copies a folder without some of its folders, and returns the copy. Reading the files lets go
// test notice when they change.
func copied(name string, without ...string) (string, error) {
	to := filepath.Join(folder, name)
	all, err := os.ReadDir(name)
	if err != nil {
		return "", err
	}
	for _, entry := range all {
		from, at := filepath.Join(name, entry.Name()), filepath.Join(to, entry.Name())
		switch {
		case slices.Contains(without, entry.Name()):
		case entry.IsDir():
			err = errors.Join(err, os.CopyFS(at, os.DirFS(from)))
		default:
			text, failed := os.ReadFile(from)
			err = errors.Join(err, failed, os.MkdirAll(to, 0o700), os.WriteFile(at, text, 0o600))
		}
	}
	return to, err
}

// run runs a command in a folder, and returns its output. An error has the output, too.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out), nil
}

// event is a line that the program of the tests prints.
type event struct {
	Event   string
	ID      string
	Attempt int
	Reason  string
	Text    string
}

// process is a running worker.
type process struct {
	cmd    *exec.Cmd
	exited chan error

	mu     sync.Mutex
	events []event
	said   bytes.Buffer
}

// workers is the concurrency of the workers of the tests, and lease the duration of their leases.
const (
	workers = 8
	lease   = 3 * time.Second
)

// start starts the language's worker for the server at url.
func (l *language) start(t *testing.T, url, key, transport string) *process {
	t.Helper()
	args := append(slices.Clone(l.program[1:]), "--url", url, "--tenant", platformtest.Tenant, "--transport", transport,
		"--concurrency", strconv.Itoa(workers), "--lease", strconv.FormatInt(lease.Milliseconds(), 10))
	p := &process{cmd: exec.Command(l.program[0], args...), exited: make(chan error, 1)}
	p.cmd.Dir = l.dir(t)
	p.cmd.Env = append(os.Environ(), "SOUS_KEY="+key, "PYTHONPATH=.")
	p.begin(t)
	return p
}

// begin starts the process, and collects its events. It is killed at the end of the test.
func (p *process) begin(t *testing.T) {
	t.Helper()
	lines, out := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("Start: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.read(lines)
	}()
	go func() {
		p.exited <- p.cmd.Wait()
		_ = out.Close() // closing a pipe does not fail
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT) // the process may have ended
		_ = p.cmd.Process.Kill()
		<-ended
		if said := p.output(); strings.Contains(said, "sous_") {
			t.Errorf("output of the worker: got its key in\n%s\nwant no key", said)
		}
		if t.Failed() {
			t.Logf("the worker said:\n%s", p.output())
		}
	})
}

// read collects the events until the output ends.
func (p *process) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		failed := json.Unmarshal(lines.Bytes(), &e)
		p.mu.Lock()
		p.said.Write(lines.Bytes())
		p.said.WriteByte('\n')
		if failed == nil {
			p.events = append(p.events, e)
		}
		p.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, from) // a line too long must not block the process
}

// output returns all that the worker has printed.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// count returns how many events match.
func (p *process) count(match func(event) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.events {
		if match(e) {
			n++
		}
	}
	return n
}

// await waits until n events match.
func (p *process) await(t *testing.T, what string, n int, match func(event) bool) {
	t.Helper()
	platformtest.Eventually(t, patience, what, func() error {
		if got := p.count(match); got < n {
			return fmt.Errorf("got %d events, want %d", got, n)
		}
		return nil
	})
}

// named matches the events of that name.
func named(name string) func(event) bool {
	return func(e event) bool { return e.Event == name }
}

// signal sends a signal to the worker.
func (p *process) signal(t *testing.T, which syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(which); err != nil {
		t.Fatalf("Signal: %v", err)
	}
}

// wait waits until the worker has ended, and returns its exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("the worker: got no end within %s, want one", patience)
		return 0
	}
}
