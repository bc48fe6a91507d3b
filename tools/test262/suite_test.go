package test262

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// The environment of a run: the checkout, the part of the paths to run and not to
// run, the file of failures, the number of workers.
const (
	envRoot     = "TEST262"
	envOnly     = "TEST262_ONLY"
	envWithout  = "TEST262_WITHOUT"
	envFailures = "TEST262_FAILURES"
	envWorkers  = "TEST262_WORKERS"
)

// workerArg makes the test binary a worker.
const workerArg = "test262-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == workerArg {
		if err := work(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "test262 worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestConformance runs the suite and prints the figures. It fails only where the run
// itself does: the figures are for docs/javascript.md.
func TestConformance(t *testing.T) {
	root := os.Getenv(envRoot)
	if root == "" {
		t.Skipf("set %s to a checkout of the suite", envRoot)
	}
	skips := readSkips(t)
	cases := selectCases(t, root, os.Getenv(envOnly), skips)
	if len(cases) == 0 {
		t.Fatalf("got no tests below %s, want some", root)
	}
	begun := time.Now()
	verdicts := runAll(t, root, cases)
	r := newReport(cases, verdicts)
	r.skipped = skips.counted
	r.print(os.Stdout)
	fmt.Printf("\n%d tests in %v\n", len(cases), time.Since(begun).Round(time.Second))
	if name := os.Getenv(envFailures); name != "" {
		if err := r.writeFailures(name); err != nil {
			t.Fatalf("write failures: %v", err)
		}
	}
}

// selectCases returns the tests to run, in the order of their paths.
func selectCases(t *testing.T, root, only string, skips *skips) []*testCase {
	t.Helper()
	var cases []*testCase
	for _, folder := range []string{"test/language", "test/built-ins"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".js") || strings.Contains(entry.Name(), "_FIXTURE") {
				return err
			}
			path, err := filepath.Rel(root, name)
			without := os.Getenv(envWithout)
			if err != nil || !strings.Contains(path, only) || without != "" && strings.Contains(path, without) {
				return err
			}
			c, err := readCase(root, path)
			if err == nil && !skips.skip(c) {
				cases = append(cases, c)
			}
			return err
		})
		if err != nil {
			t.Fatalf("read the suite: %v", err)
		}
	}
	return cases
}

// runAll returns the verdict of each test, "ok" or why it failed.
func runAll(t *testing.T, root string, cases []*testCase) []string {
	t.Helper()
	workers := runtime.GOMAXPROCS(0)
	if n := os.Getenv(envWorkers); n != "" {
		if _, err := fmt.Sscan(n, &workers); err != nil {
			t.Fatalf("%s: got %q, want a number: %v", envWorkers, n, err)
		}
	}
	verdicts := make([]string, len(cases))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			w := &worker{root: root}
			defer w.stop()
			for i := range next {
				verdicts[i] = w.run(cases[i].path)
			}
		})
	}
	for i := range cases {
		next <- i
	}
	close(next)
	group.Wait()
	return verdicts
}

// worker is a process that runs tests, replaced when it dies or hangs.
type worker struct {
	root    string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	ran     int
}

// testsPerWorker bounds what a worker can leak.
const testsPerWorker = 500

func (w *worker) run(path string) string {
	if w.process == nil || w.ran >= testsPerWorker {
		w.stop()
		if err := w.start(); err != nil {
			return "start a worker: " + err.Error()
		}
	}
	w.ran++
	if _, err := fmt.Fprintln(w.in, path); err != nil {
		w.stop()
		return "the worker died: " + err.Error()
	}
	watchdog := time.AfterFunc(patience, func() { _ = w.process.Process.Kill() })
	line, err := w.out.ReadString('\n')
	if !watchdog.Stop() {
		w.stop()
		return "the worker did not return and was killed"
	}
	if err != nil {
		w.stop()
		return "the worker died"
	}
	return strings.TrimSuffix(line, "\n")
}

func (w *worker) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.process = exec.Command(self, workerArg, w.root)
	w.process.Env = append(os.Environ(), "GOMAXPROCS=2", "GOGC=300", "GOTRACEBACK=none")
	w.in, err = w.process.StdinPipe()
	if err != nil {
		return err
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return err
	}
	w.out, w.ran = bufio.NewReader(out), 0
	return w.process.Start()
}

func (w *worker) stop() {
	if w.process == nil {
		return
	}
	_ = w.in.Close()
	_ = w.process.Process.Kill()
	_ = w.process.Wait()
	w.process = nil
}
