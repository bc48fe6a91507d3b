// Command sousbench compares sous with minimal alternatives on the same machine and prints a
// table. The rounds of both sides of a comparison alternate in one run, because machines are
// noisy: the ratio is the result, and the absolute numbers are context.
//
//	main.go       the list of benchmarks, the flags, the table
//	servers.go    processes: a store, a sous over it, a comparison
//	load.go       a closed loop of HTTP requests on some connections
//	invoke.go     throughput and latency against baseline.go, a bare handler
//	overload.go   ten times the load that a replica can carry
//	many.go       cold starts, a thousand functions, concurrent fetches
//	instances.go  hello in an instance against a fresh scope for each activation
//	packages.go   a function of packages from npm against hello
//	streams.go    streamed answers
//	cryptography.go  crypto.subtle against Go's own cryptography
//	wasm.go       WebAssembly in a function against wazero in this process
//	growth.go     throughput with many stored records; disk.go: their bytes
//	queue.go      the job queue against asynq; queue_http.go: over HTTP
//	followers.go  streams of events to thousands of followers
//	mirror.go     searches across queues: their times, and the delay of what they find
//	schedules.go  the cost and the lag of the ticker
//	cadence.go    activities against those of a Go worker
//	documents.go  the document storage
//
// Each benchmark starts the processes that it needs, on free ports and in temporary folders,
// and stops them. The exit code is 1 if a benchmark fails or a figure misses its requirement.
// docs/benchmarks.md has the results and says how they were measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/codesous/sous/storage/storeserver"
)

// options are the options of every benchmark.
type options struct {
	sous    string             // path of the binary under test
	store   storeserver.Binary // the store server under test
	seconds time.Duration      // of load for each measured round; some benchmarks take a part
	rounds  int                // of each side of a comparison; the median counts
	profile string             // directory for CPU profiles of the server, or ""
	scale   float64            // of stored records in the growth benchmark
}

// row is one line of the table. want is the requirement as text, "" for context; ok reports
// whether value meets it, and is ignored without a requirement.
type row struct {
	name, value, want string
	ok                bool
}

// benchmark is one subject; it starts and stops all that it needs. A benchmark that does not
// apply to the store under test returns no rows.
type benchmark struct {
	name string
	run  func(ctx context.Context, o options) ([]row, error)
}

var benchmarks = []benchmark{
	{"throughput", throughput},
	{"latency", latency},
	{"overload", overload},
	{"coldstart", coldStart},
	{"thousand", thousandFunctions},
	{"fetch", parallelFetch},
	{"instances", instances},
	{"packages", packages},
	{"streams", streams},
	{"crypto", cryptography},
	{"wasm", webAssembly},
	{"growth", growth},
	{"disk", disk},
	{"steps", steps},
	{"sleepers", sleepers},
	{"queue", queueBench},
	{"queue-http", queueHTTP},
	{"queue-stream", queueStream},
	{"followers", followers},
	{"mirror", mirrorBench},
	{"schedules", scheduleBench},
	{"cadence", cadenceBench},
	{"documents", documentOperations},
	{"documents-growth", documentsGrowth},
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == baselineArg { // started by startBaseline
		exit(serveBaseline(os.Args[2]))
	}
	var o options
	flag.StringVar(&o.sous, "sous", "bin/sous", "the sous binary under test")
	flag.DurationVar(&o.seconds, "for", 8*time.Second, "length of each measured round")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each side of a comparison, in turn")
	flag.StringVar(&o.profile, "profile", "", "write CPU profiles of the server under load to this directory")
	flag.Float64Var(&o.scale, "scale", 1, "share of the growth benchmark's stored records to create")
	store := flag.String("store-server", "", "the store server to measure on, a redis-server or a kvrocks; empty for the redis-server of the PATH")
	only := flag.String("run", ".", "regular expression of the benchmarks to run: "+names())
	flag.Parse()
	// The queues of both sides run in this process, which collects garbage as sous serve
	// does: see serverGCPercent in cmd/sous/internal/server.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	exit(run(o, *store, *only))
}

// names returns the names of all benchmarks, for the help.
func names() string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return strings.Join(all, ", ")
}

// exit ends the process: a benchmark has stopped its own processes by then.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sousbench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs the benchmarks whose names match the regular expression only, one after the other,
// and prints the rows of each when it ends. It stops at the first benchmark that fails; a
// figure that misses its requirement does not stop it.
func run(o options, store, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.store, err = storeserver.Find(ctx, store)
	if err != nil {
		return err
	}
	fmt.Println(machine(ctx, o))
	missed := 0
	for _, b := range benchmarks {
		if !pattern.MatchString(b.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "running %s …\n", b.name)
		rows, err := b.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		missed += printRows(b.name, rows)
	}
	if missed > 0 {
		return fmt.Errorf("%d figures miss their requirement", missed)
	}
	return nil
}

// printRows prints a benchmark's part of the table and returns the number of rows that miss
// their requirement.
func printRows(name string, rows []row) (missed int) {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		verdict := ""
		switch {
		case r.want == "":
		case r.ok:
			verdict = "ok"
		default:
			verdict = "MISSED"
			missed++
		}
		// An error is kept until Flush.
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, r.name, r.value, r.want, verdict)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "sousbench:", err)
	}
	return missed
}

// machine returns the head of the table: the machine, the versions of the store and of sous,
// and the command that repeats the run.
func machine(ctx context.Context, o options) string {
	version := func(name string, args ...string) string {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return name + ": " + err.Error()
		}
		return strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("machine: %d × %s, %s\nstore: %s, %s\nversions: %s; %s\ncommand: sousbench %s",
		runtime.NumCPU(), cpuModel(), version("uname", "-sr"),
		o.store.Kind, o.store.Version, runtime.Version(), version(o.sous, "version"),
		strings.Join(os.Args[1:], " "))
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	if m := regexp.MustCompile(`model name\s*:\s*(.*)`).FindSubmatch(info); m != nil {
		return string(m[1])
	}
	return runtime.GOARCH
}

// errNoAnswer is the error of a request that was answered with another status than 200.
var errNoAnswer = errors.New("the server answered with an error")
