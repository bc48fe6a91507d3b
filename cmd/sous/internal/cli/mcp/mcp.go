// Package mcp has the command sous mcp, which connects clients that speak the Model Context Protocol over
// stdin and stdout with the endpoint /v1/mcp of a server.
package mcp

import (
	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// Commands returns the command.
func Commands(a *command.App) []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Connect an MCP client over stdin and stdout with the server",
		Long: `Connect an MCP client over stdin and stdout with the server.

Agents that start MCP servers as programs start this one. It passes messages on to /v1/mcp of
the server, with the key of the profile. The tools are those of the tenant and the namespace:
the platform's own, and each function with an input_schema.

Only messages of the protocol are printed on stdout. Errors are printed on stderr.`,
		Example: `  sous mcp --profile staging
  claude mcp add code-sous -- sous mcp --namespace default`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			b := newBridge(t.Namespace.PostMCP, a.Stdout, func(err error) { a.Note("%s", command.ErrorText(err)) })
			return b.run(cmd.Context(), a.Stdin)
		},
	}
	a.RegisterRemote(cmd.Flags())
	return []*cobra.Command{cmd}
}
