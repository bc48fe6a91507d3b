package main

import (
	"context"
	"io"

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
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          showHelp,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return validateFormat(a.output)
		},
	}
	root.PersistentFlags().StringVarP(&a.output, "output", "o", formatText, "what to print: text or json")
	root.AddCommand(
		a.devCommand(), a.serveCommand(),
		a.fnCommand(), a.activationCommand(),
		a.profileCommand(), a.doctorCommand(), a.versionCommand(),
	)
	return root
}

// groupCommand makes a command that only holds others.
func groupCommand(use, short string, children ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, RunE: showHelp,
	}
	group.AddCommand(children...)
	return group
}

// showHelp is what a command without work of its own does; with it, cobra takes a
// misspelt subcommand for the surplus argument that it is.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }
