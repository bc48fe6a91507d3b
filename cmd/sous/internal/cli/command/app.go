// Package command holds what the commands of sous share: the streams and the forms of
// output, the server that a command works on (target and profile), arguments that are
// JSON, questions, and the exit codes.
package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// App is what every command shares: the streams, and the flags that stand on
// all commands that print or speak to a server.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Output string // formatText or formatJSON
	remote remoteFlags
}

// Group makes a command that only holds others.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short, Args: NoSuchCommand, RunE: ShowHelp,
	}
	group.AddCommand(children...)
	return group
}

// ShowHelp is what a command without work of its own does; with it, cobra takes a
// misspelt subcommand for the surplus argument that it is.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// suggestWithin is how many letters a misspelt command may be off.
const suggestWithin = 2

// NoSuchCommand refuses the surplus argument, and says what may have been meant.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	cmd.SuggestionsMinimumDistance = suggestWithin
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(meant, " or "))
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}
