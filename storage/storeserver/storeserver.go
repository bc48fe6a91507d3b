// Package storeserver starts store servers for tests and benchmarks: redis-server,
// or KVRocks with the settings of deploy/kvrocks.conf.
package storeserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/deploy"
)

// Kind is a store server's program, by the name of its executable.
type Kind string

// ErrOtherServer reports that a port belongs to a server that the caller did not start.
var ErrOtherServer = errors.New("another server listens on the port")

// The kinds of store servers.
const (
	Redis   Kind = "redis-server"
	KVRocks Kind = "kvrocks"
)

// Binary is an executable store server.
type Binary struct {
	Path    string
	Kind    Kind
	Version string // the first line that --version prints
}

// Find returns the store server at path. An empty path means the redis-server of
// the PATH.
func Find(ctx context.Context, path string) (Binary, error) {
	if path == "" {
		path = string(Redis)
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return Binary{}, fmt.Errorf("find the store server %s (`make test` installs redis-server): %w", path, err)
	}
	out, err := exec.CommandContext(ctx, found, "--version").Output()
	if err != nil {
		return Binary{}, fmt.Errorf("run %s --version: %w", found, err)
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	switch {
	case strings.HasPrefix(version, string(KVRocks)):
		return Binary{found, KVRocks, version}, nil
	case strings.HasPrefix(version, "Redis server"):
		return Binary{found, Redis, version}, nil
	}
	return Binary{}, fmt.Errorf("%s is neither redis-server nor kvrocks: --version prints %q", found, version)
}

// Config configures a server that is started.
type Config struct {
	Port int    // on 127.0.0.1
	Dir  string // an existing directory for its data
	// Cluster makes the server a node of a cluster, without slots so far.
	Cluster bool
	// Without is a command that the server does not know; "" for none.
	Without string
	// RedisArgs are further arguments for redis-server, which does not persist its data
	// without them. KVRocks, which always does, ignores them.
	RedisArgs []string
}

// Args returns the arguments that start b in the foreground; it does not start it. For KVRocks it
// writes a configuration file to cfg.Dir: that of production with other paths, another
// port and no backups. KVRocks ignores settings that its version does not know.
func (b Binary) Args(cfg Config) ([]string, error) {
	if b.Kind == KVRocks {
		return kvrocksArgs(cfg)
	}
	args := []string{
		"--port", strconv.Itoa(cfg.Port), "--bind", "127.0.0.1", "--dir", cfg.Dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning",
	}
	if cfg.Cluster {
		args = append(args, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
	}
	if cfg.Without != "" {
		args = append(args, "--rename-command", cfg.Without, "")
	}
	return append(args, cfg.RedisArgs...), nil
}

// kvrocksArgs writes the configuration file and returns the arguments. Arguments on the command
// line override the settings of the file.
func kvrocksArgs(cfg Config) ([]string, error) {
	file := filepath.Join(cfg.Dir, "kvrocks.conf")
	var text strings.Builder
	for line := range strings.Lines(deploy.KVRocksConf) {
		if !strings.HasPrefix(line, "bgsave-cron ") {
			text.WriteString(line)
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of KVRocks: %w", err)
	}
	args := []string{
		"-c", file, "--port", strconv.Itoa(cfg.Port), "--bind", "127.0.0.1", "--dir", cfg.Dir,
		"--backup-dir", filepath.Join(cfg.Dir, "backup"), "--pidfile", filepath.Join(cfg.Dir, "kvrocks.pid"),
		"--log-level", "warning",
	}
	if cfg.Cluster {
		args = append(args, "--cluster-enabled", "yes")
	}
	if cfg.Without != "" {
		args = append(args, "--rename-command", cfg.Without+` ""`)
	}
	return args, nil
}

// The range of ports. The port of redis-server's cluster bus is 10,000 higher. Both are
// below the ports of outgoing connections on Linux, which could take the port of a server
// that was killed and is started again.
const (
	firstPort = 10_000
	lastPort  = 22_000
)

// FreePort returns a port that was free at the time of the call. Another process can take it
// before the server does; Ready then returns ErrOtherServer, and the caller tries another.
func FreePort(ctx context.Context) (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		var l net.Listener
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", Addr(port))
		if err != nil {
			continue // it is taken
		}
		err = l.Close()
		if err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// Addr returns the address of the server on a port.
func Addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Client returns a client for tests and measurements. It sends no commands by itself and
// does not retry, so the server's statistics count only the caller's commands.
func Client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
}

// Ready returns nil once the process pid serves the data on a port. Its error
// wraps ErrOtherServer if another process listens there.
func Ready(ctx context.Context, port, pid int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", Addr(port))
	if err != nil {
		return err // before the client would log it
	}
	_ = conn.Close() // nothing was sent
	client := Client(Addr(port))
	defer func() { _ = client.Close() }() // it only read
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return err
	}
	if got := info["Server"]["process_id"]; got != strconv.Itoa(pid) {
		return fmt.Errorf("port %d: %w", port, ErrOtherServer)
	}
	// redis-server answers INFO while it still loads its data.
	return client.Ping(ctx).Err()
}

// Calls returns how often a server has executed each command since its start, including
// commands of scripts, by lower-case name. Compare two results: KVRocks cannot reset its
// statistics.
func Calls(ctx context.Context, client redis.UniversalClient) (map[string]int64, error) {
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, err
	}
	calls := map[string]int64{}
	for line := range strings.Lines(text) {
		command, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		figure, _, _ := strings.Cut(rest, ",")
		calls[command], err = strconv.ParseInt(figure, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the statistics of %s: %w", command, err)
		}
	}
	return calls, nil
}
