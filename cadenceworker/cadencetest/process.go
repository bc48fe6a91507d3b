package cadencetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// guardScript starts and kills the server as it is told, and outlives this
// process by a moment: when its standard input ends, however the test process
// ended, it kills the server and removes its folder. SIGKILL saves half a minute, which the
// server takes to end after SIGTERM. Its protocol has one line for each order and answer:
//
//	start  kills the server if it runs, starts it, answers with its process id
//	stop   kills the server if it runs, answers with 0
const guardScript = `dir=$1; shift; pid=
while read -r order; do
	[ -z "$pid" ] || { kill -9 $pid; wait $pid; pid=; } 2>/dev/null
	case $order in start) "$@" >>"$dir/log" 2>&1 & pid=$!; echo $pid ;; *) echo 0 ;; esac
done
[ -z "$pid" ] || { kill -9 $pid; wait $pid; } 2>/dev/null
rm -rf "$dir"`

// guard is the process that owns a server's process and its folder. It is not safe for
// concurrent use. The test process holds the writing end of its standard input, which the kernel
// closes when the test process ends in any way.
type guard struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	pids   *bufio.Reader
}

// newGuard starts a guard for the command, which the guard runs when it is told to start. The
// guard inherits the reservation of the ports and holds it as long as it or the server runs.
func newGuard(dir string, env []string, reservation *os.File, command ...string) (*guard, error) {
	g := &guard{cmd: exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", guardScript, "cadence-guard", dir}, command...)...)}
	g.cmd.Env = append(os.Environ(), env...)
	g.cmd.ExtraFiles = []*os.File{reservation}
	// A signal to the tests' process group must not end the guard before the server.
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	g.orders, err = g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.pids = bufio.NewReader(out)
	return g, g.cmd.Start()
}

// start starts the server, after killing the one that runs.
func (g *guard) start() (pid int, err error) { return g.order("start") }

// stop kills the server and waits for its end. Its data stay.
func (g *guard) stop() error {
	_, err := g.order("stop")
	return err
}

// order sends an order to the guard and returns the number that it answers.
func (g *guard) order(order string) (int, error) {
	if _, err := fmt.Fprintln(g.orders, order); err != nil {
		return 0, fmt.Errorf("%s the Cadence server: %w", order, err)
	}
	line, err := g.pids.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("%s the Cadence server: %w", order, err)
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

// end kills the server, removes its data, and waits for the guard's end.
func (g *guard) end() {
	_ = g.orders.Close() // the guard may have ended by itself
	_ = g.cmd.Wait()
}

// runs reports whether the process runs. A process that has ended is a zombie until the guard's
// next order, because the guard collects its exit status only then.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// These ports lie below the system's ephemeral ports, from which outgoing connections take theirs,
// so a port stays free while its server is stopped.
const (
	lowestPort  = 12_000
	highestPort = 32_000
)

// reserve finds count consecutive free ports. They belong to its caller until the
// last copy of the reservation is closed: it is a listener on the port before. Other calls, also
// of other processes, try the same port first and go elsewhere. Programs that do not use reserve
// may take the ports nevertheless.
func reserve(count int) (first int, reservation *os.File, err error) {
	var config net.ListenConfig
	for range 100 {
		block := lowestPort + rand.IntN((highestPort-lowestPort)/(count+1))*(count+1)
		var l net.Listener
		l, err = config.Listen(context.Background(), "tcp", address(block))
		if err != nil {
			continue // another server's
		}
		err = free(config, block+1, count)
		if err == nil {
			reservation, err = file(l)
			return block + 1, reservation, err
		}
		_ = l.Close()
	}
	return 0, nil, fmt.Errorf("find free ports: %w", err)
}

// file returns the listener's socket as a file, which a child process can inherit, and closes the
// listener.
func file(l net.Listener) (*os.File, error) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.New("find free ports: not a TCP listener")
	}
	f, err := tcp.File()
	return f, errors.Join(err, l.Close())
}

// free returns nil if it could listen on each of count ports from first on.
func free(config net.ListenConfig, first, count int) error {
	for port := first; port < first+count; port++ {
		l, err := config.Listen(context.Background(), "tcp", address(port))
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
