// Package soustest runs the sous binary for tests. It builds the binary once for each test
// process.
package soustest

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// waitLimit bounds the start and the stop of a server.
const waitLimit = 20 * time.Second

// Executable returns the path of the binary. It is built without -race: a sandbox child has
// too little memory for the race detector.
func Executable(t testing.TB) string {
	t.Helper()
	return sandboxtest.Sous(t)
}

// Server is a running sous dev or sous serve.
type Server struct {
	URL string
	Env []string // NAME=VALUE for commands of Sous, beside the test's own

	cmd    *exec.Cmd
	log    *output
	exited chan struct{} // closed when the process was waited for
	err    error         // the error that it ended with; valid after exited
}

// Command is a command line of sous that runs a server.
type Command struct {
	Args   []string // the subcommand, dev or serve, and its arguments
	Env    []string // added to the environment of the test; later values win
	Dir    string
	Listen string // "" is a free port
}

// Start starts sous dev with args and waits until it serves. The server is stopped when the
// test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Command{Args: append([]string{"dev", "--data-dir", t.TempDir()}, args...)}.Start(Executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return s
}

var urlPattern = regexp.MustCompile(`https?://[0-9a-z.:\[\]]*[0-9]`)

// Start starts executable and waits until it prints its URL.
func (c Command) Start(executable string) (*Server, error) {
	args := append(slices.Clone(c.Args), "--listen", cmp.Or(c.Listen, "127.0.0.1:0"))
	// No context: that of a test ends before its cleanup, which stops the server in order.
	cmd := exec.Command(executable, args...)
	state, err := os.MkdirTemp("", "sous-state-")
	if err != nil {
		return nil, err
	}
	cmd.Env, cmd.Dir = append(append(os.Environ(), "XDG_STATE_HOME="+state), c.Env...), c.Dir
	said, out := io.Pipe()
	s := &Server{cmd: cmd, log: &output{}, exited: make(chan struct{})}
	cmd.Stdout = io.MultiWriter(s.log, out)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(state))
	}
	go func() {
		s.err = errors.Join(cmd.Wait(), os.RemoveAll(state))
		_ = out.Close() // closing a pipe does not fail
		close(s.exited)
	}()
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if url := urlPattern.FindString(lines.Text()); url != "" {
				select {
				case found <- url:
				default: // only the first URL matters
				}
			}
		}
		_, _ = io.Copy(io.Discard, said) // a line too long must not block the process
	}()
	select {
	case s.URL = <-found:
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("sous ended: %w\n%s", s.err, s.log)
	case <-time.After(waitLimit):
		return nil, errors.Join(fmt.Errorf("sous did not start within %s\n%s", waitLimit, s.log), s.Kill())
	}
}

// Sous runs the command line args against the server, without saved profiles, and
// returns what it printed. A command that fails ends the test.
func (s *Server) Sous(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.TrySous(t, args...)
	if err != nil {
		t.Fatalf("sous %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TrySous is Sous for a command that may fail.
func (s *Server) TrySous(t testing.TB, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.cmd.Path, args...)
	cmd.Env = append(os.Environ(), "SOUS_URL="+s.URL, "XDG_CONFIG_HOME="+t.TempDir())
	cmd.Env = append(cmd.Env, s.Env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Output returns the text that the process wrote so far.
func (s *Server) Output() string { return s.log.String() }

// Pid returns the process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Signal sends sig to the process.
func (s *Server) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// Wait waits until the process has ended, and returns its error.
func (s *Server) Wait() error {
	select {
	case <-s.exited:
		return s.err
	case <-time.After(waitLimit):
		return fmt.Errorf("sous did not end within %s\n%s", waitLimit, s.log)
	}
}

// Stop sends SIGINT to the process, as Ctrl-C does, unless it has ended. It fails if the
// process ends with an error, or leaves child processes.
func (s *Server) Stop() error {
	select {
	case <-s.exited:
		return nil
	default:
	}
	children, err := Children(s.Pid())
	if err != nil {
		return err
	}
	if err := s.Signal(syscall.SIGINT); err != nil {
		return err
	}
	if err := s.Wait(); err != nil {
		return fmt.Errorf("sous ended with an error: %w\n%s", err, s.log)
	}
	return Gone(children)
}

// Kill sends SIGKILL to the process, unless it has ended.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.exited
	return nil
}

// Children returns the ids of the running child processes of pid.
func Children(pid int) ([]int, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, path := range tasks {
		raw, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // the thread ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(raw)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			out = append(out, child)
		}
	}
	return out, nil
}

// Gone waits until none of the processes pids runs, which may take a moment after the end of
// their parent. It fails after waitLimit.
func Gone(pids []int) error {
	deadline := time.Now().Add(waitLimit)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d still runs", pid)
			}
			time.Sleep(5 * time.Millisecond) // the end of another process's child sends no notice
		}
	}
	return nil
}

// alive reports whether pid runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the name, which is in parentheses and may hold anything.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// output collects what a process writes while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
