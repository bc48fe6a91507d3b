package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
	"github.com/codesous/sous/storage/storeserver"
)

// TestScripts runs each command's script against the built program. Beside
// testscript's own commands a script may use
//
//	server [NAME=VALUE …] SUBCOMMAND [ARG …]   start a server; SOUS_URL is then its address
//	stop [SIGTERM]                  end it (SIGINT), with no process left
//	prints TEXT                     wait until the server has printed TEXT
//	exits CODE COMMAND [ARG …]      run a program and demand its exit code
//	until TEXT COMMAND [ARG …]      run a program until its stdout contains TEXT
//	shows TEXT FILE                 wait until FILE contains TEXT
//	post PATH BODY                  send JSON to the server and demand a success
//	append TYPE QUEUE IDS DETAILS   add events of $TENANT to the log in $REDIS_URL
//	setvar NAME TEXT                set NAME to the first word of stdout's line with TEXT
//
// and the conditions [kvrocks], which holds where the tests' store server is KVRocks, and
// [privileged-ports], where the ports below 1024 belong to root.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts(t, "testdata/script", soustest.Executable(t)))
}

// scripts returns the parameters of the scripts in a folder, for a built program.
func scripts(t *testing.T, dir, executable string) testscript.Params {
	t.Helper()
	redis := storagetest.Redis(t, "--appendonly", "yes")
	volatile := storagetest.Redis(t, "--maxmemory-policy", "allkeys-lru", "--rename-command", "TIME", "") // keeps nothing
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "kvrocks":
				return onKVRocks(t), nil
			case "privileged-ports":
				first, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
				return strings.TrimSpace(string(first)) == "1024", err
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(e *testscript.Env) error {
			bin := filepath.Join(e.WorkDir, ".bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				return err
			}
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, ".config"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("TZ", "UTC")
			e.Setenv("REDIS_URL", redis.URL)
			e.Setenv("VOLATILE_URL", volatile.URL)
			e.Setenv("TENANT", storagetest.Tenant(t))
			e.Values[serverValue] = new(*soustest.Server)
			return os.Symlink(executable, filepath.Join(bin, "sous"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": startServer,
			"stop":   stopServer,
			"prints": prints,
			"exits":  exits,
			"until":  until,
			"shows":  shows,
			"setvar": setvar,
			"post":   post,
			"append": appendEvents,
		},
	}
}

// onKVRocks reports whether the tests' store server is KVRocks.
func onKVRocks(t *testing.T) bool {
	t.Helper()
	b, err := storeserver.Find(t.Context(), os.Getenv(storagetest.StoreServerEnv))
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	return b.Kind == storeserver.KVRocks
}

// The environment variable that holds a script's server's pid.
const pidVar = "SERVER_PID"

// The value of a script that points at its server.
const serverValue = "server"

func startServer(ts *testscript.TestScript, neg bool, args []string) {
	c := soustest.Command{Dir: ts.MkAbs("."), Env: []string{"XDG_CONFIG_HOME=" + ts.Getenv("XDG_CONFIG_HOME")}}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		c.Env, args = append(c.Env, args[0]), args[1:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: server [NAME=VALUE …] SUBCOMMAND [ARG …]")
	}
	c.Args = args
	s, err := c.Start(ts.Getenv("WORK") + "/.bin/sous")
	ts.Check(err)
	*ts.Value(serverValue).(**soustest.Server) = s
	ts.Setenv("SOUS_URL", s.URL)
	ts.Setenv(pidVar, strconv.Itoa(s.Pid()))
	ts.Defer(func() { ts.Check(s.Stop()) })
}

func stopServer(ts *testscript.TestScript, neg bool, args []string) {
	sig := syscall.SIGINT
	if len(args) == 1 && args[0] == "SIGTERM" {
		sig = syscall.SIGTERM
	} else if neg || len(args) > 0 {
		ts.Fatalf("usage: stop [SIGTERM]")
	}
	pid, err := strconv.Atoi(ts.Getenv(pidVar))
	ts.Check(err)
	children, err := soustest.Children(pid)
	ts.Check(err)
	if len(children) == 0 {
		ts.Fatalf("the server has no sandbox, want at least one that stop can check")
	}
	ts.Check(syscall.Kill(pid, sig))
	ts.Check(soustest.Gone(append(children, pid)))
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG …]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("Exec of %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\nstdout: %s\nstderr: %s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// scriptTimeout bounds the wait of a script for other processes.
const scriptTimeout = 20 * time.Second

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND [ARG …]")
	}
	waitFor(ts, func() error {
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			return err
		}
		return contains(ts.ReadFile("stdout"), args[0])
	})
}

func prints(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: prints TEXT")
	}
	s := *ts.Value(serverValue).(**soustest.Server)
	waitFor(ts, func() error { return contains(s.Output(), args[0]) })
}

func shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shows TEXT FILE")
	}
	waitFor(ts, func() error {
		raw, err := os.ReadFile(ts.MkAbs(args[1]))
		if err != nil {
			return err
		}
		return contains(string(raw), args[0])
	})
}

func contains(text, want string) error {
	if !strings.Contains(text, want) {
		return fmt.Errorf("no %q in:\n%s", want, text)
	}
	return nil
}

func waitFor(ts *testscript.TestScript, try func() error) {
	for deadline := time.Now().Add(scriptTimeout); ; {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("got error %v after %s, want none", err, scriptTimeout)
		}
		time.Sleep(20 * time.Millisecond) // a process beside the script sends no notice
	}
}

// post sends a request that no command sends: workers use HTTP.
func post(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: post PATH BODY")
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, ts.Getenv("SOUS_URL")+args[0], strings.NewReader(args[1]))
	ts.Check(err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	ts.Check(err)
	if response.StatusCode >= http.StatusMultipleChoices {
		ts.Fatalf("POST %s: got %s with %s, want a status of 2xx", args[0], response.Status, body)
	}
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
}

// appendEvents adds an entry to the log of events of the script's tenant.
func appendEvents(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: append TYPE QUEUE IDS DETAILS")
	}
	store, err := storage.Open(context.Background(), storage.Config{URL: ts.Getenv("REDIS_URL")})
	ts.Check(err)
	defer func() { ts.Check(store.Close()) }()
	ts.Check(store.Client().XAdd(context.Background(), &redis.XAddArgs{
		Stream: store.JobKeys(ts.Getenv("TENANT")).Events(),
		Values: []string{"type", args[0], "queue", args[1], "at", "1795523924998", "ids", args[2], "details", args[3]},
	}).Err())
}

// setvar keeps the first word of stdout's line that contains a text.
func setvar(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setvar NAME TEXT")
	}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if fields := strings.Fields(line); len(fields) > 0 && strings.Contains(line, args[1]) {
			ts.Setenv(args[0], fields[0])
			return
		}
	}
	ts.Fatalf("got no line with %q in stdout, want one", args[1])
}
