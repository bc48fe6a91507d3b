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

// certificateInterval is the shortest time between two checks for changed files.
const certificateInterval = time.Second

// certificate is the TLS certificate of a server. It is read again when its files change,
// so that a renewal needs no restart. Handshakes check the files, at most once in
// certificateInterval, so an idle server reads nothing. Connections that are open keep the
// certificate of their handshake.
//
// A program that renews the two files one after the other is safe: between the two writes
// they do not match, the old pair stays in use, and a handshake after the second write reads
// both.
type certificate struct {
	certFile, keyFile string
	clock             func() time.Time
	logger            *zap.Logger

	mu      sync.Mutex
	current *tls.Certificate
	state   [2]fileState // of the files that current was read from
	checked time.Time    // when the files were last compared with state
	refused string       // the error of newer files, logged already; "" if there is none
}

// fileState identifies the content of a file without reading it. Times of file systems are
// coarse, so the inode is part of it: a file that is renamed into place changes the inode.
type fileState struct {
	inode    uint64
	modified time.Time
	size     int64
}

// loadCertificate reads the certificate chain and its private key. It fails if they do not
// belong together.
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
	c.current, c.state, c.checked = &pair, state, c.clock()
	return c, nil
}

// config returns the configuration of a server: TLS 1.2 and later, and HTTP/2 if the client
// offers it.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get is the tls.Config's GetCertificate, which concurrent handshakes call. If changed files
// cannot be used (half written, or the key of another certificate), it keeps the certificate,
// logs the error once, and tries again after certificateInterval. It never returns an error.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	if now.Sub(c.checked) < certificateInterval {
		return c.current, nil
	}
	c.checked = now
	state, err := c.stat()
	if err == nil && state == c.state {
		return c.current, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.certFile, c.keyFile)
	}
	if err != nil {
		if err.Error() != c.refused { // logged once, not once a second
			c.refused = err.Error()
			c.logger.Error("the changed certificate files cannot be used; the old certificate stays in use", zap.Error(err))
		}
		return c.current, nil
	}
	c.current, c.state, c.refused = &pair, state, ""
	c.logger.Info("read the certificate again", zap.Time("not_after", pair.Leaf.NotAfter))
	return c.current, nil
}

// stat returns the states of the certificate's file and of the key's, in that order. It
// follows symbolic links, which Kubernetes exchanges when it renews a mounted secret.
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
