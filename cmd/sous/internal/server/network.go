package server

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// networkSettings are those of the listener itself: TLS, how many connections
// there may be, and how a load balancer learns that this replica leaves.
type networkSettings struct {
	TLSCert        string        `koanf:"tls-cert"`
	TLSKey         string        `koanf:"tls-key"`
	MaxConnections int           `koanf:"max-connections"` // 0: see maxConnections
	DrainDelay     time.Duration `koanf:"drain-delay"`
}

func registerNetwork(flags *pflag.FlagSet) {
	flags.String("tls-cert", "", "PEM file of the certificate chain to answer HTTPS with; read again when it changes")
	flags.String("tls-key", "", "PEM file of the certificate's private key")
	flags.Int("max-connections", 0, "most connections at once (0: what the limit of open files leaves beside store and sandboxes)")
	flags.Duration("drain-delay", 0, "how long to accept connections after a signal while /readyz answers 503, for load balancers to look elsewhere")
}

func (n *networkSettings) validate() error {
	if (n.TLSCert == "") != (n.TLSKey == "") {
		return errors.New("tls-cert and tls-key: want both or neither")
	}
	if n.MaxConnections < 0 {
		return errors.New("max-connections: cannot be negative")
	}
	if n.DrainDelay < 0 {
		return errors.New("drain-delay: cannot be negative")
	}
	return nil
}

// scheme is how URLs of this server begin.
func (n *networkSettings) scheme() string {
	if n.TLSCert != "" {
		return "https"
	}
	return "http"
}
