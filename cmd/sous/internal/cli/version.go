package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/build"
)

func (a commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := build.Read()
			return a.Print(b, fmt.Sprintf("sous %s (%s, %s)\n", b.Version, b.Go, b.Platform))
		},
	}
}
