package server

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// certificateInterval is how often handshakes look for new files at most.
const certificateInterval = time.Second

// certificate is a server's certificate, read again when its files change, so
// that a renewal needs no restart.
type certificate struct {
	certFile, keyFile string
	clock             func() time.Time
	logger            *zap.Logger

	mu      sync.Mutex
	current *tls.Certificate
	state   [2]fileState // of the files that current was read from
	looked  time.Time
	refused string // why newer files were, as the log has it
}

// fileState tells whether a file is another than before. Clocks of file systems
// tick in milliseconds: a file that was renamed to its place tells by its inode.
type fileState struct {
	inode    uint64
	modified time.Time
	size     int64
}

// loadCertificate reads the pair, and refuses one that does not fit.
func loadCertificate(certFile, keyFile string, logger *zap.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, clock: time.Now, logger: logger}
	state, err := c.stat()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c.current, c.state, c.looked = &pair, state, c.clock()
	return c, nil
}

// config is for a server: TLS 1.2 and later, HTTP/2 where the client wants it.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get is asked at each handshake. Files that cannot be used (half written, the
// key of another certificate) leave the certificate that was.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	if now.Sub(c.looked) < certificateInterval {
		return c.current, nil
	}
	c.looked = now
	state, err := c.stat()
	if err == nil && state == c.state {
		return c.current, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	if err != nil {
		if err.Error() != c.refused { // told once, not once a second
			c.refused = err.Error()
			c.logger.Error("the certificate's new files cannot be used; the old certificate stays", zap.Error(err))
		}
		return c.current, nil
	}
	c.current, c.state, c.refused = &pair, state, ""
	c.logger.Info("read the certificate again", zap.Time("not_after", pair.Leaf.NotAfter))
	return c.current, nil
}

func (c *certificate) stat() (state [2]fileState, err error) {
	for i, path := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return [2]fileState{}, err
		}
		state[i] = fileState{modified: info.ModTime(), size: info.Size()}
		if raw, ok := info.Sys().(*syscall.Stat_t); ok {
			state[i].inode = raw.Ino
		}
	}
	return state, nil
}
