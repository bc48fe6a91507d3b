package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sousbench/brokers"
	"github.com/codesous/sous/storage/storeserver"
)

// The tenant and namespace of all that is measured.
const (
	tenant    = brokers.Tenant
	namespace = brokers.Namespace
)

// process is a server that a benchmark started. Its stop must be called, once.
type process struct {
	cmd  *exec.Cmd
	addr string // host:port
}

// stop ends the process as its operator would, or kills it after ten seconds. It does nothing
// for a nil process, so that a testbed that was started in part can be closed.
func (p *process) stop() {
	if p == nil || p.cmd.Process == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // it was signalled; its exit status does not matter
		close(done)
	}()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill() // likewise
		<-done
	}
}

// freeAddr returns a loopback address that was free a moment ago. Another process may take it
// before it is used; the benchmark then fails.
func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// appendEverySecond are the arguments with which redis-server keeps an append-only file that
// it flushes every second: a power failure loses about a second.
var appendEverySecond = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// storeMode is one way to run the store: redis-server without persistence or with
// its append-only file, KVRocks with its data on disk, which is its only way.
type storeMode struct {
	name  string
	args  []string
	bound bool // the requirements apply to it; otherwise its figures are context
}

// want returns the requirement of a figure that depends on the store under test.
func (o options) want(redisServer, kvrocks float64) float64 {
	if o.store.Kind == storeserver.KVRocks {
		return kvrocks
	}
	return redisServer
}

// storeModes are the modes of the store under test, the plain one first.
func (o options) storeModes() []storeMode {
	if o.store.Kind == storeserver.KVRocks {
		return []storeMode{{name: "KVRocks", bound: true}}
	}
	return []storeMode{{name: "AOF off", bound: true}, {name: "AOF on", args: appendEverySecond}}
}

// startStore runs the store under test in dir and waits until it answers. A redis-server
// keeps no data unless redisArgs say otherwise.
func startStore(ctx context.Context, o options, dir string, redisArgs ...string) (*process, error) {
	port, err := storeserver.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	args, err := o.store.Args(storeserver.Config{Port: port, Dir: dir, RedisArgs: redisArgs})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.store.Path, args...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, addr: storeserver.Addr(port)}
	return p, p.await(ctx, func() error { return storeserver.Ready(ctx, port, cmd.Process.Pid) })
}

// startSous runs `sous serve` over a store, without API keys, rates of clients and a mirror, and waits
// until it is ready. Flags in args override the ones that it sets.
func startSous(ctx context.Context, o options, store *process, args ...string) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	args = append([]string{"serve", "--auth", "off", "--store", "redis://" + store.addr, "--listen", addr, "--roles", "api,invoker,scheduler,cadence", "--log-level", "error", "--client-read-rate", "0", "--client-write-rate", "0"}, args...)
	cmd := exec.CommandContext(ctx, o.sous, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, addr: addr}
	return p, p.await(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("readyz answers %s", resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	})
}

// startBaseline runs the comparison over a store: this program with the argument
// baselineArg. Its first line of output is its address, and it serves from then on.
func startBaseline(ctx context.Context, store *process) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, baselineArg, "redis://"+store.addr)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return &process{cmd: cmd, addr: strings.TrimSpace(line)}, err
}

// serveOn serves on a free port, which it prints, until it is signalled. startBaseline reads
// the line in the parent process.
func serveOn(handler http.Handler) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close() // the measurement is over
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// await calls ready until it returns nil, for at most fifteen seconds. If it fails, it has
// stopped the process.
func (p *process) await(ctx context.Context, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			p.stop()
			return fmt.Errorf("%s did not become ready: %w", filepath.Base(p.cmd.Path), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// childrenMemory returns the resident size of the process's children, in bytes, with shared
// pages counted in proportion (PSS): sandboxes share the pages of their program. Sandboxes are
// direct children of the server, although the nursery forks them.
func (p *process) childrenMemory() (bytes int64, children int, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	seen := map[string]bool{}
	for _, task := range tasks {
		pids, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that ended
		}
		for _, pid := range strings.Fields(string(pids)) {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			size, err := proportionalSize(pid)
			if err != nil {
				continue // a child that ended
			}
			bytes += size
			children++
		}
	}
	return bytes, children, nil
}

// proportionalSize returns the PSS of a process in bytes, from /proc/PID/smaps_rollup.
func proportionalSize(pid string) (int64, error) {
	rollup, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(rollup)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no Pss line")
}

// publish creates a function of one file in tenant and namespace on p, publishes it, and points
// prod at its version.
func publish(ctx context.Context, p *process, name, source, config string) error {
	return publishFor(ctx, p, tenant, name, source, config)
}

// publishFor is publish for another tenant. config is JSON; "{}" leaves the defaults.
func publishFor(ctx context.Context, p *process, tenant, name, source, config string) error {
	c, err := client.New("http://"+p.addr, client.Config{})
	if err != nil {
		return err
	}
	ns := c.Tenant(tenant).Namespace(namespace)
	if _, err := ns.CreateFunction(ctx, client.NewFunction{Name: name}); err != nil {
		return err
	}
	draft, err := ns.Function(name).UploadFiles(ctx, map[string][]byte{bundle.EntryJS: []byte(source)})
	if err != nil {
		return err
	}
	_, err = ns.Function(name).Publish(ctx, client.Publish{DraftID: draft.DraftID, Config: []byte(config), Alias: "prod"})
	return err
}

// webPath returns the path of the endpoint of a function of tenant.
func webPath(name string) string {
	return "/v1/web/" + tenant + "/" + namespace + "/" + name + "/prod"
}
