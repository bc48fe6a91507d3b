// Package access holds the commands about API keys, secrets and the audit.
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
