package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/codesous/sous/storage/storeserver"
)

// helloSource is the function of most benchmarks. It does nothing, so that a figure is the cost
// of the platform.
const helloSource = `export default () => ({ hello: "world" });`

// testbed is a store with a server over it, and the comparison over the same store.
type testbed struct {
	dir                   string
	store, sous, baseline *process
}

// newTestbed starts the three processes, the server with args. The caller closes it; if
// newTestbed fails, it has closed it.
func newTestbed(ctx context.Context, o options, args ...string) (*testbed, error) {
	b := &testbed{}
	var err error
	b.dir, err = os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	b.store, err = startStore(ctx, o, b.dir)
	if err == nil {
		b.sous, err = startSous(ctx, o, b.store, args...)
	}
	if err == nil {
		b.baseline, err = startBaseline(ctx, b.store)
	}
	if err != nil {
		b.close()
	}
	return b, err
}

func (b *testbed) close() {
	b.baseline.stop()
	b.sous.stop()
	b.store.stop()
	_ = os.RemoveAll(b.dir) // the system clears its temporary files
}

// compare loads two servers in turn and returns the round of each with the median
// throughput. The first round of each warms up and is not counted.
func compare(ctx context.Context, o options, a, b load) (ra, rb result, err error) {
	warm := func(l load) load { l.length = min(l.length, 2*time.Second); return l }
	for _, l := range []load{warm(a), warm(b)} {
		if _, err := l.run(ctx); err != nil {
			return ra, rb, err
		}
	}
	var as, bs []result
	for range o.rounds {
		for _, side := range []struct {
			load load
			into *[]result
		}{{a, &as}, {b, &bs}} {
			r, err := side.load.run(ctx)
			if err != nil {
				return ra, rb, err
			}
			*side.into = append(*side.into, r)
		}
	}
	return median(as), median(bs), nil
}

// median returns the result with the median throughput; its latencies are of the same round.
func median(rs []result) result {
	slices.SortFunc(rs, func(a, b result) int { return int(a.perSecond - b.perSecond) })
	return rs[len(rs)/2]
}

// throughput compares calls of hello over HTTP, each with a durable activation, with the
// bare handler, at 64 connections. The share of the bare handler's throughput is the cost of
// everything that the platform does beyond one HTTP request and one write.
func throughput(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "hello", helloSource, "{}"); err != nil {
		return nil, err
	}
	const connections = 64
	sous := load{b.sous.addr, httpGet(b.sous.addr, webPath("hello")), connections, o.seconds}
	bare := load{b.baseline.addr, httpGet(b.baseline.addr, "/"), connections, o.seconds}
	commands, err := commandsOfACall(ctx, b.store, sous)
	if err != nil {
		return nil, err
	}
	stopProfile := startProfile(ctx, o, "throughput")
	rs, rb, err := compare(ctx, o, sous, bare)
	stopProfile()
	if err != nil {
		return nil, err
	}
	share := o.want(0.45, 0.40)
	ratio, tail := rs.perSecond/rb.perSecond, float64(rs.quantile(0.99))/float64(rb.quantile(0.99))
	return []row{
		{name: "bare chi + one key, 64 connections", value: loadText(rb)},
		{name: "sous web invoke, 64 connections", value: loadText(rs), want: "no error", ok: rs.errors == 0},
		{"throughput, share of bare", fmt.Sprintf("%.2f", ratio), fmt.Sprintf("≥ %.2f (after 0.50)", share), ratio >= share},
		{"p99, multiple of bare", fmt.Sprintf("%.2f", tail), "≤ 2.5 (after 2)", tail <= 2.5},
		{"store commands of a call", commands.String(), "≤ 2, no script", commands.writes < 2+leased && commands.scripts < leased},
	}, nil
}

// leased is the number of commands of a call from which on they are more than those with which
// the replica leases shares of the tenants' rates, once a second.
const leased = 0.005

// callCommands are the store's commands for each call of a function; scripts are among writes.
type callCommands struct{ writes, scripts float64 }

func (c callCommands) String() string {
	return fmt.Sprintf("%.2f, %.2f of them scripts", c.writes, c.scripts)
}

// commandsOfACall counts the commands that write records, over a second of one
// connection: under load calls share some. The reads that the server makes periodically,
// with or without calls, are not counted.
func commandsOfACall(ctx context.Context, store *process, calls load) (c callCommands, err error) {
	calls.connections, calls.length = 1, time.Second
	if _, err := calls.run(ctx); err != nil { // resolves the function, starts its sandbox
		return c, err
	}
	client := storeserver.Client(store.addr)
	defer func() { _ = client.Close() }() // it only read
	before, err := storeserver.Calls(ctx, client)
	if err != nil {
		return c, err
	}
	r, err := calls.run(ctx)
	if err != nil {
		return c, err
	}
	after, err := storeserver.Calls(ctx, client)
	if err != nil {
		return c, err
	}
	n := float64(len(r.sorted))
	c.scripts = float64(after["evalsha"]-before["evalsha"]+after["eval"]-before["eval"]) / n
	c.writes = c.scripts
	for _, name := range []string{"set", "zadd", "hset", "pexpire"} {
		c.writes += float64(after[name]-before[name]) / n
	}
	return c, nil
}

// loadText returns the cell of a load in the table, with its first error.
func loadText(r result) string {
	text := fmt.Sprintf("%.0f/s, p50 %s, p99 %s", r.perSecond, ms(r.quantile(0.5)), ms(r.quantile(0.99)))
	if r.errors > 0 {
		text += fmt.Sprintf(", %d errors (%v)", r.errors, r.firstErr)
	}
	return text
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// latency compares the latency of calls of hello with that of the bare handler, on one
// connection: nothing waits for a processor or shares a write.
func latency(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "hello", helloSource, "{}"); err != nil {
		return nil, err
	}
	rs, rb, err := compare(ctx, o,
		load{b.sous.addr, httpGet(b.sous.addr, webPath("hello")), 1, o.seconds},
		load{b.baseline.addr, httpGet(b.baseline.addr, "/"), 1, o.seconds})
	if err != nil {
		return nil, err
	}
	p50 := rs.quantile(0.5)
	return []row{
		{name: "bare chi + one key, 1 connection", value: loadText(rb)},
		{name: "sous web invoke, 1 connection", value: loadText(rs), want: "no error", ok: rs.errors == 0},
		{"p50", ms(p50), "< 0.6 ms", p50 < 600*time.Microsecond},
	}, nil
}

// profileArgs returns the arguments with which a server serves profiles, nil unless -profile
// is set: the admin listener would be part of the measurement.
func profileArgs(o options) []string {
	if o.profile == "" {
		return nil
	}
	return []string{"--admin-listen", adminAddr}
}

// adminAddr is the admin address of the one server that is profiled or scraped. It is fixed,
// so two runs of sousbench with -profile exclude each other.
const adminAddr = "127.0.0.1:6161"

// startProfile takes a CPU profile of the server's next ten seconds and writes it to
// name.pprof in the directory of -profile. wait waits for it. A profile that fails is logged
// and does not fail the benchmark.
func startProfile(ctx context.Context, o options, name string) (wait func()) {
	if o.profile == "" {
		return func() {}
	}
	done := make(chan error, 1)
	go func() { done <- fetchProfile(ctx, o, name) }()
	return func() {
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "sousbench: profile:", err)
		}
	}
}

// fetchProfile reads a profile of ten seconds. The load must last that long: -for 8s with
// three rounds of two sides does.
func fetchProfile(ctx context.Context, o options, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+adminAddr+"/debug/pprof/profile?seconds=10", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errNoAnswer, resp.Status)
	}
	file, err := os.Create(filepath.Join(o.profile, name+".pprof"))
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, resp.Body); err != nil {
		return err
	}
	return file.Close()
}
