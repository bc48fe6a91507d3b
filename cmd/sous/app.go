package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// app is what every command shares: the streams, and the flags that stand on
// all commands that print or speak to a server.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	output string // formatText or formatJSON
	remote remoteFlags
}

// execute runs one command line and gives the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if asksForJSON(args) { // perhaps behind the flag that was not understood
			a.output = formatJSON
		}
		return err
	})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	a.report(err)
	return exitCode(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sous",
		Short: "Publish and run functions",
		Long: `sous is the code-sous platform: server, command line and sandbox in one program.

  sous dev                 start everything on this machine
  sous fn init hello       write a function to begin with
  sous fn deploy hello     publish it and print the URL to curl

Exit codes: 0 success, 1 the command or its input is wrong, 2 the server failed
or cannot be reached, 3 the function failed.`,
		Version:       buildVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          showHelp,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return validateFormat(a.output)
		},
	}
	root.SetVersionTemplate("sous {{.Version}}\n")
	root.PersistentFlags().StringVarP(&a.output, "output", "o", formatText, "what to print: text or json")
	root.AddCommand(
		a.devCommand(), a.serveCommand(),
		a.fnCommand(), a.activationCommand(),
		a.jobCommand(), a.queueCommand(), a.batchCommand(), a.taskCommand(), a.scheduleCommand(), a.workerCommand(), a.cadenceCommand(),
		a.storageCommand(), a.installCommand(), a.secretCommand(), a.keysCommand(), a.auditCommand(),
		a.profileCommand(), a.doctorCommand(), a.healthCommand(), a.versionCommand(),
	)
	return root
}

// groupCommand makes a command that only holds others.
func groupCommand(use, short string, children ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short, Args: noSuchCommand, RunE: showHelp,
	}
	group.AddCommand(children...)
	return group
}

// showHelp is what a command without work of its own does; with it, cobra takes a
// misspelt subcommand for the surplus argument that it is.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// suggestWithin is how many letters a misspelt command may be off.
const suggestWithin = 2

// noSuchCommand refuses the surplus argument, and says what may have been meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
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

// asksForJSON says whether a command line that could not be parsed asks for it.
func asksForJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == formatJSON {
				return true
			}
		case "-o" + formatJSON, "-o=" + formatJSON, "--output=" + formatJSON:
			return true
		}
	}
	return false
}
