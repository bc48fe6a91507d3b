package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/mirror"
)

// mirrorCommand returns sous mirror.
func (a commands) mirrorCommand() *cobra.Command {
	return a.RemoteGroup("mirror", "The mirror of a replica, for searches across queues and functions",
		a.mirrorCall("status", "Show the state of the mirror of the replica that answers", (*client.Client).Mirror),
		a.mirrorCall("rebuild", "Rebuild the mirror of the replica that answers", (*client.Client).RebuildMirror))
}

// mirrorCall returns a command that prints the status that a call returns.
func (a commands) mirrorCall(use, short string, call func(*client.Client, context.Context) (mirror.Status, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, Long: short + ". It needs a key for all tenants.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			s, err := call(t.Client, cmd.Context())
			if err != nil {
				return err
			}
			text := s.State
			if s.Reason != "" {
				text += ": " + s.Reason
			}
			if s.Rebuilding {
				text += fmt.Sprintf(", %d%% done", int(100*s.Progress))
			}
			return a.PrintLine(s, fmt.Sprintf("%s\n%d jobs, %d activations, %d MiB, lag %d ms", text, s.Jobs, s.Activations, s.Bytes>>20, s.LagMS))
		},
	}
}
