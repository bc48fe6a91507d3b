package server

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// networkSettings are the settings of the listener: TLS, the limit of connections, and the
// delay before a drain.
type networkSettings struct {
	TLSCert        string        `koanf:"tls-cert"` // "": plain HTTP; see certificate
	TLSKey         string        `koanf:"tls-key"`
	MaxConnections int           `koanf:"max-connections"` // 0: see maxConnections
	DrainDelay     time.Duration `koanf:"drain-delay"`     // 0: none
}

// registerNetwork adds the settings of the listener to flags.
func registerNetwork(flags *pflag.FlagSet) {
	flags.String("tls-cert", "", "PEM file of the certificate chain to answer HTTPS with; read again when it changes")
	flags.String("tls-key", "", "PEM file of the certificate's private key")
	flags.Int("max-connections", 0, "largest number of open connections (0: derived from the limit of open files, less those of the store and of sandboxes)")
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
	if n.DrainDelay < 0 {
		return errors.New("drain-delay: cannot be negative")
	}
	return nil
}

// scheme returns the scheme of the server's URL.
func (n *networkSettings) scheme() string {
	if n.TLSCert != "" {
		return "https"
	}
	return "http"
}
