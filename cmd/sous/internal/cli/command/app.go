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

// App is the state that every command shares: the streams, and the flags of all commands
// that print or call a server.
type App struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Output string // FormatText or FormatJSON
	remote remoteFlags
}

// Group returns a command that only holds children: alone it prints its help.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short, Args: NoSuchCommand, RunE: ShowHelp,
	}
	group.AddCommand(children...)
	return group
}

// ShowHelp prints the help of a command that only holds others. Because the command
// can run, cobra passes a misspelt subcommand to NoSuchCommand as an argument.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// suggestWithin is the largest edit distance of a command that is suggested.
const suggestWithin = 2

// NoSuchCommand is a cobra.PositionalArgs that refuses any argument. Its error suggests
// the subcommands whose names are similar.
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
