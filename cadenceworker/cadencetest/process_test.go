package cadencetest

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// childEnv tells a test that this process was started by one, and what it is to
// work on.
const childEnv = "CADENCETEST_CHILD"

// child is a further process of this test binary that runs one test in its
// parent's place.
func child(t *testing.T, test, argument string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), childEnv+"="+argument), env...)
	return cmd
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s, want in that time: %s", what)
		}
	}
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestAKilledProcessLeavesNoServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(childEnv) != "" {
		s := Start(t)
		fmt.Printf("server %d %d %s %s\n", s.pid, s.guard.cmd.Process.Pid, s.dir, s.GRPCAddr)
		<-t.Context().Done() // it is killed before
		return
	}
	Skip(t)
	if _, _, err := program(); err != nil { // builds: not in the child
		t.Fatalf("program: %v", err)
	}
	cmd := child(t, t.Name(), "serve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("StdoutPipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("Start: %v", err)
	}
	var server, guard int
	var dir, addr string
	for lines := bufio.NewScanner(out); server == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "server %d %d %s %s", &server, &guard, &dir, &addr) // other lines do not match
	}
	if server == 0 || gone(dir) || !runs(server) {
		t.Errorf("got server process %d in folder %q, want both to exist", server, dir)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	_ = cmd.Wait() // it was killed
	eventually(t, "the server and its guard ended", func() bool { return !runs(server) && !runs(guard) })
	eventually(t, "the server's folder is removed", func() bool { return gone(dir) })
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	l.Close()
}

func TestShortRunsStartNoServer(t *testing.T) {
	t.Parallel()
	cmd := child(t, "TestAWorkflowRunsToItsEnd", "short", "XDG_CACHE_HOME="+t.TempDir(), "PATH=/nowhere")
	cmd.Args = append(cmd.Args, "-test.short")
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "--- SKIP: TestAWorkflowRunsToItsEnd") {
		t.Errorf("go test -short: got error %v, want the test skipped; output:\n%s", err, text)
	}
}

func TestPortsAreOneServersOnly(t *testing.T) {
	t.Parallel()
	first, reservation, err := reserve(len(services))
	if err != nil {
		t.Fatalf("reserve: %v", err)
	}
	if l, err := net.Listen("tcp", address(first-1)); err == nil {
		l.Close()
		t.Errorf("port %d is free, want it taken by the reservation of port %d", first-1, first)
	}
	if err := free(net.ListenConfig{}, first, len(services)); err != nil {
		t.Errorf("the ports from %d on are reserved, not taken: %v", first, err)
	}
	reservation.Close()
	l, err := net.Listen("tcp", address(first-1))
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	l.Close()
}

// tiny writes a module to build in the server's place, and a go command that
// counts its calls in the file that it returns.
func tiny(t *testing.T, text string) (module, bin, calls string) {
	t.Helper()
	dir := t.TempDir()
	module, bin, calls = filepath.Join(dir, "module"), filepath.Join(dir, "bin"), filepath.Join(dir, "calls")
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatalf("exec.LookPath: %v", err)
	}
	for path, text := range map[string]string{
		filepath.Join(module, "go.mod"):  "module tiny\n\ngo 1.26.0\n",
		filepath.Join(module, "go.sum"):  "",
		filepath.Join(module, "main.go"): "package main\n\nfunc main() { print(\"" + text + "\") }\n",
		filepath.Join(bin, "go"):         fmt.Sprintf("#!/bin/sh\necho called >>%s\nexec %s \"$@\"\n", calls, goCommand),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("os.MkdirAll: %v", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	return module, bin, calls
}

func TestOneOfManyProcessesBuilds(t *testing.T) {
	t.Parallel()
	if argument := os.Getenv(childEnv); argument != "" {
		cache, module, _ := strings.Cut(argument, "\n")
		binary, err := build(cache, module)
		if err != nil {
			t.Fatalf("build: %v", err)
		}
		text, err := exec.Command(binary).CombinedOutput()
		if err != nil || string(text) != "tiny" {
			t.Errorf("binary: got output %q and error %v, want tiny", text, err)
		}
		return
	}
	module, bin, calls := tiny(t, "tiny")
	cache := filepath.Join(t.TempDir(), "cache")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			cmd := child(t, t.Name(), cache+"\n"+module, "PATH="+bin+":"+os.Getenv("PATH"))
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process that builds: %v\n%s", err, text)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	if got := strings.Count(string(text), "called"); got != 1 {
		t.Errorf("go was called %d times, want once", got)
	}
}

func TestOtherSourcesAreAnotherBinary(t *testing.T) {
	t.Parallel()
	one, _, _ := tiny(t, "one")
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		before, err := digest(one)
		if err != nil {
			t.Fatalf("digest: %v", err)
		}
		f, err := os.OpenFile(filepath.Join(one, name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatalf("os.OpenFile: %v", err)
		}
		fmt.Fprintln(f, "// more")
		f.Close()
		if after, err := digest(one); err != nil || after == before {
			t.Errorf("digest after a change of %s: got %q and error %v, want another than %q", name, after, err, before)
		}
	}
}

func TestTheCacheIsSwept(t *testing.T) {
	t.Parallel()
	cache, now := t.TempDir(), time.Now()
	age := map[string]time.Duration{
		"cadenceserver-old":  unusedFor + time.Hour,
		"cadenceserver-new":  unusedFor - time.Hour,
		"cadenceserver.lock": unusedFor + time.Hour,
		"building-1":         0,
		"another":            unusedFor + time.Hour,
	}
	for name, age := range age {
		path := filepath.Join(cache, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatalf("os.Chtimes: %v", err)
		}
	}
	if err := sweep(cache, now); err != nil {
		t.Fatalf("sweep: %v", err)
	}
	for name, want := range map[string]bool{
		"cadenceserver-old": true, "cadenceserver-new": false, "cadenceserver.lock": false, "building-1": true, "another": false,
	} {
		if got := gone(filepath.Join(cache, name)); got != want {
			t.Errorf("%s is removed: %v, want %v", name, got, want)
		}
	}
}
