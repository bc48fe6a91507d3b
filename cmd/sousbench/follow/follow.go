// Package follow has the followers of events of the benchmark: connections that read streams of
// server-sent events, and note how late each event is.
package follow

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

const (
	// Rate is the number of events a second, of both tenants.
	Rate = 100
	// queuesOfTenant is the number of queues of a tenant. Each follower follows one.
	queuesOfTenant = 50
	// settle is how long the last events may take.
	settle = 500 * time.Millisecond
)

// tenants have the events: one tenant may have half of the requests that wait.
var tenants = []string{"t_bench0", "t_bench1"}

// RaiseFileLimit raises the soft limit of open files to the hard one, and, as root, the hard one to what
// the followers and the server need. If that is refused, the benchmark fails when it has no more files.
func RaiseFileLimit(followers int) {
	need := uint64(4 * followers)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= need {
		return
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit.Max, Max: limit.Max})
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: max(need, limit.Max), Max: max(need, limit.Max)})
}

// Group is a set of followers that grows.
type Group struct {
	server    string // host:port
	namespace string
	queues    []*client.Queue
	rdb       *redis.Client

	work   sync.WaitGroup
	conns  []net.Conn
	record atomic.Bool // delays of events are kept
	mu     sync.Mutex
	delays []time.Duration
	failed error
}

// New returns a Group without followers, of a server and its store, both host:port, and configures the
// queues of the namespace, whose events they follow.
func New(ctx context.Context, server, store, namespace string) (*Group, error) {
	f := &Group{server: server, namespace: namespace, rdb: redis.NewClient(&redis.Options{Addr: store})}
	for _, t := range tenants {
		c, err := client.New("http://"+server, client.Config{})
		if err != nil {
			return nil, err
		}
		ns := c.Tenant(t).Namespace(namespace)
		for i := range queuesOfTenant {
			q := ns.Queue(fmt.Sprint("q", i))
			if _, err := q.Configure(ctx, client.QueueChange{Events: new("all")}); err != nil {
				return nil, err
			}
			f.queues = append(f.queues, q)
		}
	}
	return f, nil
}

// Measured is the result of a phase.
type Measured struct {
	Delays   []time.Duration // sorted
	Commands float64         // of the store, a second
}

// Phase raises the number of followers to count and measures for length.
func (f *Group) Phase(ctx context.Context, count int, length time.Duration) (Measured, error) {
	for len(f.conns) < count {
		if err := f.follow(ctx, len(f.conns)); err != nil {
			return Measured{}, err
		}
	}
	before, err := f.processed(ctx)
	if err != nil {
		return Measured{}, err
	}
	begin := time.Now()
	f.record.Store(true)
	for i := 0; time.Since(begin) < length; i++ {
		if _, err := f.queues[i%len(f.queues)].Enqueue(ctx, "", api.NewJob{}); err != nil {
			return Measured{}, err
		}
		time.Sleep(time.Until(begin.Add(time.Duration(i+1) * time.Second / Rate)))
	}
	elapsed := time.Since(begin)
	time.Sleep(settle) // the last events are on their way
	f.record.Store(false)
	after, err := f.processed(ctx)
	if err != nil {
		return Measured{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := Measured{Delays: f.delays, Commands: float64(after-before) / elapsed.Seconds()}
	f.delays = nil
	slices.Sort(out.Delays)
	if len(out.Delays) == 0 && f.failed == nil {
		f.failed = errors.New("no event reached a follower")
	}
	return out, f.failed
}

// processed returns the number of commands that the store has processed.
func (f *Group) processed(ctx context.Context) (int64, error) {
	info, err := f.rdb.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	text, _, _ := strings.Cut(rest, "\r")
	return strconv.ParseInt(text, 10, 64)
}

// follow adds the nth follower. Two loopback addresses share them: one address may have three
// quarters of the requests that wait.
func (f *Group) follow(ctx context.Context, n int) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n%2))}}
	conn, err := d.DialContext(ctx, "tcp", f.server)
	if err != nil {
		return err
	}
	f.conns = append(f.conns, conn)
	_, err = fmt.Fprintf(conn, "GET /v1/tenants/%s/events:follow?namespace=%s&queue=q%d HTTP/1.1\r\nHost: %s\r\n\r\n",
		tenants[n%len(tenants)], f.namespace, n/len(tenants)%queuesOfTenant, f.server)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	status, err := in.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return fmt.Errorf("follower %d: got %q and error %w, want 200", n, status, err)
	}
	f.work.Go(func() { f.read(in) })
	return nil
}

// read notes the delays of the events of one follower, from their own time to now, until the connection
// ends.
func (f *Group) read(in *bufio.Reader) {
	const name = `"time":"`
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		at := bytes.Index(line, []byte(name))
		if !f.record.Load() || !bytes.HasPrefix(line, []byte("data: ")) || at < 0 {
			continue
		}
		text, _, _ := bytes.Cut(line[at+len(name):], []byte(`"`))
		made, err := time.Parse(time.RFC3339, string(text))
		f.mu.Lock()
		if err != nil {
			f.failed = err
		}
		f.delays = append(f.delays, time.Since(made))
		f.mu.Unlock()
	}
}

// Close ends the followers.
func (f *Group) Close() {
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.work.Wait()
	_ = f.rdb.Close()
}
