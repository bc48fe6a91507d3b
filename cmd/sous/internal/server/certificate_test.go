package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// writeCertificate writes a certificate of 127.0.0.1, signed by itself, and its
// key to dir.
func writeCertificate(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("GenerateKey: %v", err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatalf("CreateCertificate: %v", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("MarshalPKCS8PrivateKey: %v", err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: cert},
		keyFile:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	return certFile, keyFile
}

func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := writeCertificate(t, dir, "first")
	core, logged := observer.New(zap.ErrorLevel)
	c, err := loadCertificate(certFile, keyFile, zap.New(core))
	if err != nil {
		t.Fatalf("loadCertificate: %v", err)
	}
	now := time.Now()
	c.clock, c.checked = func() time.Time { return now }, now
	serves := func(want string) {
		t.Helper()
		cert, err := c.get(nil)
		if err != nil || cert.Leaf.Subject.CommonName != want {
			t.Fatalf("serves %q, %v, want %q", cert.Leaf.Subject.CommonName, err, want)
		}
	}
	serves("first")
	writeCertificate(t, dir, "the second")
	now = now.Add(certificateInterval - time.Millisecond)
	serves("first") // not looked yet
	now = now.Add(time.Millisecond)
	serves("the second")

	// Half a renewal: the key of another certificate, then no key at all.
	other, otherKey := writeCertificate(t, t.TempDir(), "the other one")
	if err := os.Rename(otherKey, keyFile); err != nil {
		t.Fatalf("os.Rename: %v", err)
	}
	for range 3 {
		now = now.Add(certificateInterval)
		serves("the second")
	}
	if logged.Len() != 1 {
		t.Errorf("logged %d errors, want one for one mistake", logged.Len())
	}
	moved := keyFile + "~"
	if err := os.Rename(keyFile, moved); err != nil {
		t.Fatalf("os.Rename: %v", err)
	}
	now = now.Add(certificateInterval)
	serves("the second")
	if err := os.Rename(other, certFile); err != nil {
		t.Fatalf("os.Rename: %v", err)
	}
	if err := os.Rename(moved, keyFile); err != nil {
		t.Fatalf("os.Rename: %v", err)
	}
	now = now.Add(certificateInterval)
	serves("the other one")
}

func TestCertificateRefused(t *testing.T) {
	t.Parallel()
	certFile, keyFile := writeCertificate(t, t.TempDir(), "one")
	_, otherKey := writeCertificate(t, t.TempDir(), "other")
	for name, pair := range map[string][2]string{
		"absent":          {certFile + "x", keyFile},
		"key of another":  {certFile, otherKey},
		"key for a chain": {keyFile, keyFile},
	} {
		if _, err := loadCertificate(pair[0], pair[1], zap.NewNop()); err == nil {
			t.Errorf("loadCertificate of %s = nil, want an error", name)
		}
	}
}
