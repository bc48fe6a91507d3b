package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
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
	// fewFollowers and manyFollowers follow the events of two tenants, each those of one queue.
	fewFollowers  = 100
	manyFollowers = 10_000
	// followedQueues is the number of queues of a tenant.
	followedQueues = 50
	// followedRate is the number of events a second, of both tenants.
	followedRate = 100
	// followLimit is the bound of the p99 from the change to the follower.
	followLimit = 250 * time.Millisecond
)

// followedTenants have the events: one tenant may have half of the requests that wait.
var followedTenants = []string{"t_bench0", "t_bench1"}

// followers measures streams of events: their delay, and the commands that they cost the store. Each
// event is an enqueue, and goes to the followers of its queue, one in a hundred of all. The followers
// are goroutines of this process, with a connection each.
func followers(ctx context.Context, o options) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	raiseFileLimit()
	store, err := startStore(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer store.stop()
	server, err := startSous(ctx, o, store, append(profileArgs(o), "--max-waiting", strconv.Itoa(2*manyFollowers))...)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	f, err := newFollowing(ctx, server, store)
	if err != nil {
		return nil, err
	}
	defer f.close()
	few, err := f.phase(ctx, fewFollowers, o.seconds)
	if err != nil {
		return nil, err
	}
	defer startProfile(ctx, o, "followers")()
	many, err := f.phase(ctx, manyFollowers, o.seconds)
	if err != nil {
		return nil, err
	}
	p99, ratio := quantile(many.delays, 0.99), many.commands/few.commands
	return []row{
		{name: fmt.Sprintf("%d followers, %d events/s: deliveries", manyFollowers, followedRate), value: fmt.Sprintf("%.0f/s", float64(len(many.delays))/o.seconds.Seconds())},
		{name: "its delay, p50", value: ms(quantile(many.delays, 0.5))},
		{name: "its delay, p99", value: ms(p99), want: "< " + ms(followLimit), ok: p99 < followLimit},
		{name: fmt.Sprintf("its store commands, multiple of those of %d followers", fewFollowers), value: fmt.Sprintf("%.2f (%.0f/s)", ratio, many.commands), want: "≤ 1.10", ok: ratio <= 1.1},
	}, nil
}

// raiseFileLimit raises the soft limit of open files to the hard one, and, as root, the hard one to what
// the followers and the server need. If that is refused, the benchmark fails when it has no more files.
func raiseFileLimit() {
	const need = 4 * manyFollowers
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= need {
		return
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit.Max, Max: limit.Max})
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: max(need, limit.Max), Max: max(need, limit.Max)})
}

// following is a set of followers that grows.
type following struct {
	server *process
	queues []*client.Queue
	rdb    *redis.Client

	work   sync.WaitGroup
	conns  []net.Conn
	record atomic.Bool // delays of events are kept
	mu     sync.Mutex
	delays []time.Duration
	failed error
}

func newFollowing(ctx context.Context, server, store *process) (*following, error) {
	f := &following{server: server, rdb: redis.NewClient(&redis.Options{Addr: store.addr})}
	for _, t := range followedTenants {
		c, err := client.New("http://"+server.addr, client.Config{})
		if err != nil {
			return nil, err
		}
		ns := c.Tenant(t).Namespace(namespace)
		for i := range followedQueues {
			q := ns.Queue(fmt.Sprint("q", i))
			if _, err := q.Configure(ctx, client.QueueChange{Events: new("all")}); err != nil {
				return nil, err
			}
			f.queues = append(f.queues, q)
		}
	}
	return f, nil
}

// measured is the result of a phase.
type measured struct {
	delays   []time.Duration // sorted
	commands float64         // of the store, a second
}

// phase raises the number of followers to count and measures for length.
func (f *following) phase(ctx context.Context, count int, length time.Duration) (measured, error) {
	for len(f.conns) < count {
		if err := f.follow(ctx, len(f.conns)); err != nil {
			return measured{}, err
		}
	}
	before, err := f.processed(ctx)
	if err != nil {
		return measured{}, err
	}
	begin := time.Now()
	f.record.Store(true)
	for i := 0; time.Since(begin) < length; i++ {
		if _, err := f.queues[i%len(f.queues)].Enqueue(ctx, "", api.NewJob{}); err != nil {
			return measured{}, err
		}
		time.Sleep(time.Until(begin.Add(time.Duration(i+1) * time.Second / followedRate)))
	}
	elapsed := time.Since(begin)
	time.Sleep(2 * followLimit) // the last events are on their way
	f.record.Store(false)
	after, err := f.processed(ctx)
	if err != nil {
		return measured{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := measured{delays: f.delays, commands: float64(after-before) / elapsed.Seconds()}
	f.delays = nil
	slices.Sort(out.delays)
	if len(out.delays) == 0 && f.failed == nil {
		f.failed = errors.New("no event reached a follower")
	}
	return out, f.failed
}

// processed returns the number of commands that the store has processed.
func (f *following) processed(ctx context.Context) (int64, error) {
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
func (f *following) follow(ctx context.Context, n int) error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n%2))}}
	conn, err := d.DialContext(ctx, "tcp", f.server.addr)
	if err != nil {
		return err
	}
	f.conns = append(f.conns, conn)
	_, err = fmt.Fprintf(conn, "GET /v1/tenants/%s/events:follow?namespace=%s&queue=q%d HTTP/1.1\r\nHost: %s\r\n\r\n",
		followedTenants[n%len(followedTenants)], namespace, n/len(followedTenants)%followedQueues, f.server.addr)
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
func (f *following) read(in *bufio.Reader) {
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

func (f *following) close() {
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.work.Wait()
	_ = f.rdb.Close()
}
