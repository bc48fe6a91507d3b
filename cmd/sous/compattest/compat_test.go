// Package compattest runs packages of npm in the sandbox, as a deployed function runs them,
// and compares what they compute with Node.js.
//
// Each module of tools/compat/src uses one package. tools/compat/expected.jsonl has what
// the modules return under Node.js. The packages must be installed: see `make compat`.
package compattest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/cmd/sous/internal/cli/bundler"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// project is the folder of the modules and of node_modules.
const project = "../../../tools/compat"

// calls is how often each module is called, in one instance.
const calls = 3

// loadTimeout bounds the compilation of a bundle. It is longer than the pool's default,
// which is for a machine that is not shared with other tests.
const loadTimeout = time.Minute

var (
	update      = flag.Bool("update", false, "write what the modules return under Node.js to expected.jsonl")
	callTimeout = flag.Duration("call-timeout", 10*time.Second, "the limit of a call; a busy machine needs a longer one")
)

// A line of expected.jsonl and of the output of reference.js.
type line struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

func needPackages(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(project, "node_modules")); err != nil {
		t.Skip("the packages of tools/compat are not installed: run make compat")
	}
}

// TestReference holds expected.jsonl to Node.js.
func TestReference(t *testing.T) {
	needPackages(t)
	cmd := exec.CommandContext(t.Context(), "node", "reference.js")
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "TZ=UTC")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node reference.js: got error %v, want none\n%s", err, stderr.Bytes())
	}
	if *update {
		if err := os.WriteFile(filepath.Join(project, "expected.jsonl"), out, 0o644); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	want := expected(t)
	got := lines(t, out)
	for name, g := range got {
		if g.Error != "" {
			t.Errorf("%s under Node.js: got error %s, want a value", name, g.Error)
		} else if !bytes.Equal(g.Value, want[name].Value) {
			t.Errorf("%s under Node.js: got %s, want the value of expected.jsonl %s", name, g.Value, want[name].Value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d modules under Node.js, want %d as in expected.jsonl", len(got), len(want))
	}
}

// TestPackages runs the modules one after another: their times are reported.
func TestPackages(t *testing.T) {
	needPackages(t)
	pool := newPool(t)
	var rows []row
	want := expected(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Run(name, func(t *testing.T) {
			r := row{name: name, version: version(t, name)}
			r.err = r.try(t.Context(), pool, want[name].Value)
			rows = append(rows, r)
			if r.err != nil {
				t.Errorf("%s %s: got error %v, want the value that it has under Node.js", name, r.version, r.err)
			}
		})
	}
	t.Log(table(rows))
}

// A row is what the table shows of a module.
type row struct {
	name, version string
	size          int64 // of the bundle without its source map
	compile       time.Duration
	first, warm   time.Duration // calls
	cpu           time.Duration // of the first call
	memory        int64
	err           error
}

// try bundles the module, has a child compile it, and calls it.
func (r *row) try(ctx context.Context, pool *sandbox.Pool, want json.RawMessage) error {
	tar, size, err := bundled(r.name)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	r.size = size
	prog := &sandbox.Program{
		Key: r.name, Digest: bundle.Digest(tar), Entry: bundler.Output, MemoryMB: api.DefaultMemoryMB, Instance: true,
		Tenant: "t_compat", Namespace: "default", Function: "compat", Version: 1,
		Bundle: func(context.Context) ([]byte, error) { return tar, nil },
	}
	start := time.Now()
	if err := pool.Check(ctx, prog); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	r.compile = time.Since(start)
	for i := range calls {
		start := time.Now()
		value, cpu, err := r.call(ctx, pool, prog)
		elapsed := time.Since(start)
		if i == 0 {
			r.first = elapsed
			r.cpu = cpu
		} else {
			r.warm = elapsed
		}
		if err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
		if !bytes.Equal(value, want) {
			return fmt.Errorf("call %d: got %s", i+1, difference(value, want))
		}
	}
	return nil
}

// call is one activation in a sandbox of prog. It returns its value and processor time.
func (r *row) call(ctx context.Context, pool *sandbox.Pool, prog *sandbox.Program) (json.RawMessage, time.Duration, error) {
	s, err := pool.Acquire(ctx, prog, nil)
	if err != nil {
		return nil, 0, err
	}
	defer pool.Release(s)
	var logs []string
	result := s.Run(ctx, sandbox.Call{
		Head: wire.InvokeHead{
			ActivationID: "00000000-0000-4000-8000-000000000000",
			Ref:          json.RawMessage(`{"version":1}`),
			Trigger:      json.RawMessage(`{"type":"api"}`),
			Principal:    json.RawMessage(`{"sub":"test","roles":[]}`),
			Attempt:      1,
		},
		Event:    []byte(`{}`),
		Deadline: time.Now().Add(*callTimeout),
		Log:      func(record wire.LogRecord) { logs = append(logs, string(record.Text)) },
	})
	r.memory = max(r.memory, result.MemoryPeakBytes)
	if result.Status != api.StatusSuccess {
		return nil, result.CPU, fmt.Errorf("%s: %s: %s\n%s\nlog: %s", result.Status, result.Error.Type, result.Error.Message, result.Error.Stack, strings.Join(logs, "\n"))
	}
	return result.Value, result.CPU, nil
}

// bundled returns the upload of a module as `sous fn deploy` makes it, and the size of the
// bundle.
func bundled(name string) (tar []byte, size int64, err error) {
	b, err := bundler.Make(bundler.Folder{Root: project, Entry: "src/" + name + ".js"})
	if err != nil {
		return nil, 0, err
	}
	tar, err = bundle.Pack(map[string][]byte{bundler.Output: b.Code})
	return tar, b.Bytes, err
}

func newPool(t *testing.T) *sandbox.Pool {
	t.Helper()
	pool, err := sandbox.New(sandbox.Config{Executable: sandboxtest.Executable(t), MaxProcesses: 1, LoadTimeout: loadTimeout, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("sandbox.New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := pool.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return pool
}

func expected(t *testing.T) map[string]line {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(project, "expected.jsonl"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return lines(t, text)
}

func lines(t *testing.T, text []byte) map[string]line {
	t.Helper()
	out := map[string]line{}
	for raw := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatalf("line %.80q: %v", raw, err)
		}
		out[l.Name] = l
	}
	return out
}

// imported finds the first import of a package in a module.
var imported = regexp.MustCompile(`from "((?:@[^/"]+/)?[^/".]+(?:\.js)?)[^"]*"`)

// version returns the installed version of the package that a module imports first.
func version(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(project, "src", name+".js"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	match := imported.FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s.js: got no import of a package, want one", name)
	}
	raw, err := os.ReadFile(filepath.Join(project, "node_modules", string(match[1]), "package.json"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var pkg struct{ Version string }
	if err := json.Unmarshal(raw, &pkg); err != nil {
		t.Fatalf("package.json of %s: %v", match[1], err)
	}
	return pkg.Version
}

// difference shows got and want from where they differ.
func difference(got, want []byte) string {
	const before, after = 40, 160
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	show := func(b []byte) string {
		return string(b[min(max(at-before, 0), len(b)):min(at+after, len(b))])
	}
	return fmt.Sprintf("from byte %d\n%s\nwant\n%s", at, show(got), show(want))
}

func table(rows []row) string {
	var out strings.Builder
	failed := 0
	w := tabwriter.NewWriter(&out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "package\tversion\tbundle KB\tcompile ms\tfirst ms\tfirst cpu\twarm ms\tmemory MB\tresult\t")
	for _, r := range rows {
		result := "ok"
		if r.err != nil {
			failed++
			result, _, _ = strings.Cut(r.err.Error(), "\n")
			result = fmt.Sprintf("%.80s", result)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%d\t%s\t\n", r.name, r.version, r.size>>10,
			r.compile.Milliseconds(), milliseconds(r.first), milliseconds(r.cpu), milliseconds(r.warm), r.memory>>20, result)
	}
	w.Flush()
	return fmt.Sprintf("%d of %d packages run\n%s", len(rows)-failed, len(rows), out.String())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
