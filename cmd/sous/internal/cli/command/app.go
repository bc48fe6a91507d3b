// Package command holds the parts that the commands of sous share: the streams and the forms
// of output, the server that a command works on (target and profile), arguments that are
// JSON, questions, and the exit codes.
//
// A command of a package above is a method that returns a *cobra.Command. Its RunE
//
//  1. validates names and reads arguments (arguments.go),
//  2. asks App.Target for the server, tenant and namespace (target.go, profile.go),
//  3. asks App.Confirm, if it deletes a resource (confirm.go),
//  4. calls a method of api/client, within App.Working if that may take seconds (progress.go),
//  5. and prints the result through Print, PrintLine or PrintList (output.go).
//
// It returns errors and prints none of them: cli.Run passes them to App.Report and ExitCode
// (exit.go). Stdout has the result only, so that it can be piped; notes, progress and errors
// go to stderr. Under --output json a result is one JSON value and there are no notes.
package command

import (
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// App is the state that every command shares: the streams, and the flags of all commands
// that print or call a server. One process runs one command, so App locks only its line of progress.
type App struct {
	Stdin  io.Reader // an *os.File on a terminal enables questions
	Stdout io.Writer
	Stderr io.Writer
	Output string         // FormatText or FormatJSON; set when the flags are parsed
	Quiet  bool           // neither notes nor progress are printed; set when the flags are parsed
	Flags  *pflag.FlagSet // of the command that runs, which messages name; set when they are parsed
	remote remoteFlags    // set when the flags of a command that calls a server are parsed

	transfer transfer // of the requests of Target, for the bar of Working

	screen sync.Mutex // guards the terminal while a line of progress may be on it
	drawn  bool       // a line of progress is on the terminal
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
// the commands that were probably meant: "sous fn invok" suggests invoke.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	if meant := similarCommands(cmd, args[0]); len(meant) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, asAlternatives(meant))
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}
