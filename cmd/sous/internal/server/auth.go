package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/storage"
	storeaccess "github.com/codesous/sous/storage/access"
)

// The values of --auth.
const (
	authOff  = "off"  // every caller is an administrator
	authKeys = "keys" // API keys
)

// registerAuth adds --auth with the default mode.
func registerAuth(flags *pflag.FlagSet, mode string) {
	flags.String("auth", mode, "who may call: keys (callers with an API key), or off (every caller, as an administrator; loopback addresses only)")
}

// validateAuth refuses an unknown mode. With auth off it refuses an address that other
// machines can reach. The server then also refuses requests whose Host header is not a
// loopback name, so that web pages cannot call it through the user's browser.
func (s *settings) validateAuth() error {
	switch s.Auth {
	case authOff:
		return checkLoopback("listen", s.Listen)
	case authKeys:
		return checkAddress("listen", s.Listen)
	}
	return fmt.Errorf("auth %q: want %s or %s", s.Auth, authKeys, authOff)
}

// checkAddress refuses a listen that is not HOST:PORT.
func checkAddress(setting, listen string) error {
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return fmt.Errorf("%s %q: %w", setting, listen, err)
	}
	return nil
}

// checkLoopback refuses an address that other machines can reach.
func checkLoopback(setting, listen string) error {
	if err := checkAddress(setting, listen); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(listen) // checkAddress split it
	if host == "localhost" {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s %q: with auth off only loopback addresses (127.0.0.1, ::1, localhost) are allowed, "+
		"because every caller is an administrator; --auth keys allows any", setting, listen)
}

// errKeysEmbedded refuses --auth keys on the embedded store: sous keys bootstrap could not
// create the first key, because only the server has that store open.
var errKeysEmbedded = errors.New("auth keys: sous dev needs a store server for that (--store redis://…): " +
	"the first key is made by sous keys bootstrap, which cannot open the embedded store while dev has it")

// authMode returns the mode of --auth as the control plane knows it.
func (s *settings) authMode() access.Mode {
	if s.Auth == authOff {
		return access.Off
	}
	return access.Keys
}

// noteKeys logs how to create the first API key if there is none. A replica that serves no
// API does not ask.
func (p *platform) noteKeys(ctx context.Context, store *storage.Store, s settings) error {
	if s.Auth == authOff || !s.has(roleAPI) {
		return nil
	}
	exists, err := storeaccess.NewAPIKeys(store).Any(ctx)
	if err != nil || exists {
		return err
	}
	p.logger.Warn("there is no API key, so every call is refused; create the first one on the same store",
		zap.String("command", "sous keys bootstrap --store URL"))
	return nil
}
