package client

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config configures a Client. Zero fields mean the documented defaults.
type Config struct {
	// Key is sent as a bearer token; "" sends none.
	Key string
	// UserAgent names the program to the server; default "sous-client".
	UserAgent string
	// Transport sends the requests; default a transport of its own without a timeout
	// for whole requests, which contexts bound.
	Transport http.RoundTripper
	// MaxAttempts is the number of times that a request is sent at most; default 4.
	MaxAttempts int
	// MaxRetryWait bounds the wait before a request is sent again, and before a
	// broken log stream is opened again; default 10 s.
	MaxRetryWait time.Duration
}

const (
	defaultUserAgent    = "sous-client"
	defaultMaxAttempts  = 4
	defaultMaxRetryWait = 10 * time.Second
	dialTimeout         = 5 * time.Second
)

func (c Config) withDefaults() Config {
	if c.UserAgent == "" {
		c.UserAgent = defaultUserAgent
	}
	if c.Transport == nil {
		c.Transport = NewTransport()
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultMaxAttempts
	}
	if c.MaxRetryWait == 0 {
		c.MaxRetryWait = defaultMaxRetryWait
	}
	return c
}

// NewTransport returns the transport of a client whose Config names none, for a caller that
// wraps it.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base string // scheme, host and path prefix, without a trailing slash
	http *http.Client
	cfg  Config
}

// New returns a client of the server at baseURL, an http or https URL without query or
// fragment. It does not connect. It fails if baseURL is malformed.
func New(baseURL string, cfg Config) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil && !strings.Contains(baseURL, "://") {
		return nil, fmt.Errorf("server URL %q: want http://host:port or https://host", baseURL) // 127.0.0.1:8080 has no other fault
	}
	if err != nil {
		return nil, fmt.Errorf("server URL: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("server URL %q: want http://host:port or https://host", u.Redacted())
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("server URL %q: no user, query or fragment is allowed", u.Redacted())
	}
	if cfg.MaxAttempts < 0 || cfg.MaxRetryWait < 0 {
		return nil, fmt.Errorf("client: MaxAttempts and MaxRetryWait cannot be negative")
	}
	cfg = cfg.withDefaults()
	return &Client{
		base: strings.TrimRight(u.String(), "/"),
		cfg:  cfg,
		http: &http.Client{
			Transport: cfg.Transport,
			// The API never redirects. Following a redirect could send a body and a
			// key to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// URL returns the normalized base URL of the server.
func (c *Client) URL() string { return c.base }

// Tenant returns the handle of a tenant. It sends no request.
func (c *Client) Tenant(name string) *Tenant { return &Tenant{c: c, name: name} }

// Tenant is one tenant: its namespaces, activations, batches and API keys. Like every handle
// it is immutable, cheap, and safe for concurrent use.
type Tenant struct {
	c    *Client
	name string
}

// path returns the escaped path of a resource below the tenant.
func (t *Tenant) path(rest ...string) string {
	return joinPath(append([]string{"v1", "tenants", t.name}, rest...)...)
}

// Namespace returns the handle of a namespace of t. It sends no request.
func (t *Tenant) Namespace(name string) *Namespace { return &Namespace{tenant: t, name: name} }

// Namespace is one namespace: its functions, queues, schedules, secrets and bindings.
type Namespace struct {
	tenant *Tenant
	name   string
}

func (n *Namespace) path(rest ...string) string {
	return n.tenant.path(append([]string{"namespaces", n.name}, rest...)...)
}

// joinPath joins escaped segments, so that no name can change the path.
func joinPath(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}
