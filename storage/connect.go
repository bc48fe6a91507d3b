package storage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/codesous/sous/api"
)

// URL schemes beside redis, rediss and unix, which name a single server.
const (
	schemeCluster  = "redis-cluster://"
	schemeSentinel = "redis-sentinel://"
)

// Bounds of one command: a store that is gone is reported within a few seconds.
const (
	dialTimeout  = time.Second
	readTimeout  = 3 * time.Second
	writeTimeout = 3 * time.Second
	poolTimeout  = 2 * time.Second
	maxRetries   = 1
	// minRetryBackoff and maxRetryBackoff stand between the tries.
	minRetryBackoff = 8 * time.Millisecond
	maxRetryBackoff = 100 * time.Millisecond
)

const defaultPoolSize = 64

// connect makes the client that cfg names, without contacting the server. cluster reports
// whether the store is a cluster.
func connect(cfg Config) (client redis.UniversalClient, cluster bool, err error) {
	o, err := universalOptions(cfg)
	if err != nil {
		return nil, false, err
	}
	// Each failure is returned to its caller; the client would print it as well.
	redis.SetLogger(&logging.VoidLogger{})
	o.Protocol = 2 // RESP3 is off by default on KVRocks
	o.DisableIdentity = true
	// For a managed service's maintenance notices the client would resolve the server's
	// name immediately, even one that DNS does not know.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ContextTimeoutEnabled = true
	o.DialTimeout = dialTimeout
	o.DialerRetries = 1
	o.ReadTimeout = readTimeout
	o.WriteTimeout = writeTimeout
	o.PoolTimeout = poolTimeout
	o.MaxRetries = maxRetries
	o.MinRetryBackoff = minRetryBackoff
	o.MaxRetryBackoff = maxRetryBackoff
	o.PipelinePoolSize = -1 // one pool: half as many connections to keep
	o.PoolSize = cfg.PoolSize
	return redis.NewUniversalClient(o), o.IsClusterMode, nil
}

func universalOptions(cfg Config) (*redis.UniversalOptions, error) {
	if cfg.Embedded != nil {
		dial := cfg.Embedded.Dial
		return &redis.UniversalOptions{
			Addrs:  []string{"embedded"},
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		}, nil
	}
	if rest, ok := strings.CutPrefix(cfg.URL, schemeCluster); ok {
		o, err := manyHosts(rest)
		if err != nil {
			return nil, err
		}
		o.IsClusterMode = true
		return o, nil
	}
	if rest, ok := strings.CutPrefix(cfg.URL, schemeSentinel); ok {
		return sentinelOptions(rest)
	}
	single, err := redis.ParseURL(cfg.URL)
	if err != nil {
		return nil, badURL(cfg.URL, err)
	}
	return &redis.UniversalOptions{
		Addrs:     []string{single.Addr},
		DB:        single.DB,
		Username:  single.Username,
		Password:  single.Password,
		TLSConfig: single.TLSConfig,
	}, nil
}

// sentinelOptions reads [user:password@]host:port,…/master.
func sentinelOptions(rest string) (*redis.UniversalOptions, error) {
	hosts, master, ok := strings.Cut(rest, "/")
	if !ok || master == "" {
		return nil, badURL(schemeSentinel+rest, fmt.Errorf("the master's name is missing: %shost:port/master", schemeSentinel))
	}
	o, err := manyHosts(hosts)
	if err != nil {
		return nil, err
	}
	o.MasterName = master
	return o, nil
}

// manyHosts reads [user:password@]host:port,host:port,…
func manyHosts(rest string) (*redis.UniversalOptions, error) {
	first, others, _ := strings.Cut(strings.TrimSuffix(rest, "/"), ",")
	single, err := redis.ParseURL("redis://" + first)
	if err != nil {
		return nil, badURL(rest, err)
	}
	o := &redis.UniversalOptions{Addrs: []string{single.Addr}, Username: single.Username, Password: single.Password}
	for host := range strings.SplitSeq(others, ",") {
		if host == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			return nil, badURL(host, err)
		}
		o.Addrs = append(o.Addrs, host)
	}
	return o, nil
}

// badURL returns the error for a store URL. It leaves a password out of the text.
func badURL(text string, cause error) error {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		text = "…" + text[at:]
	}
	var parse *url.Error
	if errors.As(cause, &parse) {
		cause = parse.Err // its text repeats the whole URL
	}
	return api.Wrap(api.CodeInvalid, cause, fmt.Sprintf("store URL %q is not one of redis://, rediss://, unix://, %s, %s",
		text, schemeCluster, schemeSentinel))
}
