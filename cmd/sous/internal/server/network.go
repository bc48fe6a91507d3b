package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/codesous/sous/controlplane/admission"
	"github.com/codesous/sous/controlplane/jobs"
	"github.com/codesous/sous/queue"
)

// networkSettings are the settings of the listener: TLS, the limits of connections and of
// memory, the proxies before it, and the delay before a drain.
type networkSettings struct {
	TLSCert        string        `koanf:"tls-cert"` // "": plain HTTP; see certificate
	TLSKey         string        `koanf:"tls-key"`
	MaxConnections int           `koanf:"max-connections"` // 0: see maxConnections
	MaxWaiting     int           `koanf:"max-waiting"`     // 0: see maxWaits
	ReadRate       int           `koanf:"client-read-rate"`
	WriteRate      int           `koanf:"client-write-rate"`
	QueueFetches   int           `koanf:"queue-fetches"`
	StreamFrames   int           `koanf:"stream-frames"`
	StreamRate     int           `koanf:"stream-frame-rate"`
	StreamErrors   int           `koanf:"stream-errors"`
	DrainDelay     time.Duration `koanf:"drain-delay"`     // 0: none
	TrustedProxies []string      `koanf:"trusted-proxies"` // CIDR; nil: none
	MemoryLimit    int64         `koanf:"memory-limit"`    // MiB; 0: see deriveMemoryLimit
	BodyBudget     int64         `koanf:"body-budget"`     // MiB; 0: see bodyBudget
	FunctionDomain string        `koanf:"function-domain"` // "": functions have no hosts
	DomainResolver string        `koanf:"domain-resolver"` // host:port; "": the DNS servers of this machine
	OwnDomains     []string      `koanf:"reserved-domains"`
}

// registerNetwork adds the settings of the listener to flags.
func registerNetwork(flags *pflag.FlagSet) {
	flags.String("tls-cert", "", "PEM file of the certificate chain to answer HTTPS with; read again when it changes")
	flags.String("tls-key", "", "PEM file of the certificate's private key")
	flags.Int("max-connections", 0, "largest number of open connections (0: derived from the limit of open files, less those of the store and of sandboxes)")
	flags.Int("max-waiting", 0, "largest number of requests that wait: fetches of jobs and followed logs, events and feeds (0: 1,024, or half of max-connections if that is less; never more than three quarters of max-connections)")
	flags.Int("client-read-rate", admission.DefaultReads, "requests of the API that read, and fetches of jobs, that one API key (without keys: one address) may send to this replica each second (0: no limit)")
	flags.Int("client-write-rate", admission.DefaultWrites, "requests of the API that write, other than invocations, that one API key (without keys: one address) may send to this replica each second (0: no limit)")
	flags.Int("queue-fetches", queue.DefaultFetches, "fetches that may take jobs of one queue on this replica at the same time (0: the default)")
	flags.Int("stream-frames", jobs.DefaultStreamFrames, "frames of workers' streams that this replica handles at the same time (0: the default)")
	flags.Int("stream-frame-rate", jobs.DefaultStreamFrameRate, "frames of one worker's stream that are read each second (0: the default)")
	flags.Int("stream-errors", jobs.DefaultStreamErrors, "answers with an error in a row after which a worker's stream is closed (0: the default)")
	flags.StringSlice("trusted-proxies", nil, "address ranges (CIDR, comma-separated) of the proxies whose X-Forwarded-For names the client; by default none")
	flags.Int64("memory-limit", 0, "MiB that the server itself should use, without sandboxes (0: derived from the memory of this machine or container and the sandbox budget; GOMEMLIMIT overrides it)")
	flags.Int64("body-budget", 0, "MiB of request bodies and answers in memory (0: a quarter of memory-limit)")
	flags.String("function-domain", "", "domain below which each function has a host, and so a browser origin, of its own: FUNCTION--NAMESPACE--TENANT.DOMAIN, with ALIAS-- before it for another alias than prod")
	flags.String("domain-resolver", "", "DNS server (host:port) that is asked for the records of custom domains; by default those of this machine")
	flags.StringSlice("reserved-domains", nil, "domains (comma-separated) of the operator: no tenant can have them, or names below them, as custom domains. Those of function-domain and listen are reserved always")
	flags.Duration("drain-delay", 0, "how long to accept connections after a signal while /readyz answers 503, so that load balancers choose other replicas")
}

// validate refuses settings that contradict each other or are negative.
func (n *networkSettings) validate() error {
	if (n.TLSCert == "") != (n.TLSKey == "") {
		return errors.New("tls-cert and tls-key: want both or neither")
	}
	if n.MaxConnections < 0 {
		return errors.New("max-connections: cannot be negative")
	}
	if n.ReadRate < 0 || n.WriteRate < 0 {
		return errors.New("client-read-rate and client-write-rate: want a number of requests a second, or 0 for no limit")
	}
	for name, value := range map[string]int{
		"max-waiting": n.MaxWaiting, "queue-fetches": n.QueueFetches, "stream-frames": n.StreamFrames, "stream-frame-rate": n.StreamRate, "stream-errors": n.StreamErrors,
	} {
		if value < 0 {
			return fmt.Errorf("%s: want a positive number, or 0 for the default", name)
		}
	}
	if n.DrainDelay < 0 {
		return errors.New("drain-delay: cannot be negative")
	}
	for _, m := range []struct {
		name       string
		mib, least int64
	}{{"memory-limit", n.MemoryLimit, leastMemoryLimit >> 20}, {"body-budget", n.BodyBudget, admission.MinBudget >> 20}} {
		if m.mib != 0 && (m.mib < m.least || m.mib > maxBudgetMiB) {
			return fmt.Errorf("%s: %d MiB: want at least %d, at most %d, or 0 for the default", m.name, m.mib, m.least, maxBudgetMiB)
		}
	}
	if n.FunctionDomain != "" && !isDomain(n.FunctionDomain) {
		return fmt.Errorf("function-domain %q: want a domain in lower case such as apps.example.com, without port", n.FunctionDomain)
	}
	for _, name := range n.OwnDomains {
		if !isDomain(name) {
			return fmt.Errorf("reserved-domains %q: want domains in lower case such as api.example.com, without port", name)
		}
	}
	if n.DomainResolver != "" {
		if host, port, err := net.SplitHostPort(n.DomainResolver); err != nil || host == "" || port == "" {
			return fmt.Errorf("domain-resolver %q: want the host and the port of a DNS server such as 10.0.0.2:53", n.DomainResolver)
		}
	}
	_, err := n.proxies()
	return err
}

// reserved returns the domains that no tenant can have: those of the operator, and the name that
// the server listens on, if it is one.
func (n *networkSettings) reserved(listen string) []string {
	own := slices.Clone(n.OwnDomains)
	if host, _, err := net.SplitHostPort(listen); err == nil && isDomain(strings.ToLower(host)) {
		own = append(own, strings.ToLower(host))
	}
	return own
}

// proxies returns the addresses of the proxies whose X-Forwarded-For is believed.
func (n *networkSettings) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, cidr := range n.TrustedProxies {
		p, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("trusted-proxies %q: want a range such as 10.20.0.0/16, or 10.20.0.5/32 for one proxy", cidr)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// isDomain reports whether s is a domain: labels of lower-case letters, digits and inner hyphens.
// The last one is no number, so that an IP address is none.
func isDomain(s string) bool {
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(s) <= 253 && strings.Trim(last, "0123456789") != ""
}

// scheme returns the scheme of the server's URL.
func (n *networkSettings) scheme() string {
	if n.TLSCert != "" {
		return "https"
	}
	return "http"
}
