// Package access holds the commands about API keys, secrets and the audit.
//
//	sous keys    keys.go            create, list, revoke
//	             keys_bootstrap.go  bootstrap
//	sous secret  secret.go          set, list, show, delete
//	             secret_keys.go     keygen, rewrap
//	             secret_source.go   where set takes the value from
//	sous audit   audit.go
//
// Most commands call a server. Three work without one, for the time before there is a key or
// for the operator of the store: keys bootstrap and secret rewrap --store write to the store
// itself, and secret keygen writes a file. Those that write to the store append their events
// to the audit themselves, with the caller "local".
//
// No command prints a secret's value. A new API key is printed once, alone on the last line
// of stdout.
package access

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about API keys, secrets and the audit.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.keysCommand(), c.secretCommand(), c.auditCommand()}
}
