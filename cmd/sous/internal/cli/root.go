// Package cli is the command line of sous: its root command, and the commands about this
// machine and about the server as a whole. The packages below it hold the other commands,
// one package for each group.
//
//	root.go     Run, sous
//	serve.go    sous serve       dev.go      sous dev
//	doctor.go   sous doctor      health.go   sous health
//	profile.go  sous profile     version.go  sous version
//	namespace.go  sous namespace  whoami.go  sous whoami
//	open.go     sous open        top.go      sous top
//
//	access      sous keys, secret, audit
//	activations  sous activation, tail, fn logs
//	cadence     sous cadence
//	documents   sous storage, owner
//	domains     sous domain
//	functions   sous fn, deploy, diff, pull
//	jobs        sous job, run, queue, batch, task, worker
//	schedules   sous schedule
//	usage       sous usage, limits, kv
//	webhooks    sous webhook
//	providers   sous provider
//	mcp         sous mcp
//
// Package command stands below all of them: it holds what commands share, such as output,
// targets, profiles and exit codes. Imports point from cli to the commands to command. Only
// serve, dev, doctor, fn test, schedule next and the commands that open a store use packages
// of the server; all other commands use api/client, as programs of users do.
//
// docs/cli.md lists every command. Scripts in cmd/sous/testdata/script test each of them on
// the built program.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/cmd/sous/internal/build"
	"github.com/codesous/sous/cmd/sous/internal/cli/access"
	"github.com/codesous/sous/cmd/sous/internal/cli/activations"
	"github.com/codesous/sous/cmd/sous/internal/cli/approvals"
	"github.com/codesous/sous/cmd/sous/internal/cli/cadence"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
	"github.com/codesous/sous/cmd/sous/internal/cli/documents"
	"github.com/codesous/sous/cmd/sous/internal/cli/domains"
	"github.com/codesous/sous/cmd/sous/internal/cli/functions"
	"github.com/codesous/sous/cmd/sous/internal/cli/jobs"
	"github.com/codesous/sous/cmd/sous/internal/cli/mcp"
	"github.com/codesous/sous/cmd/sous/internal/cli/providers"
	"github.com/codesous/sous/cmd/sous/internal/cli/schedules"
	"github.com/codesous/sous/cmd/sous/internal/cli/usage"
	"github.com/codesous/sous/cmd/sous/internal/cli/webhooks"
)

// Run executes the command line args (without the program's name) and returns the
// exit code of the process. ctx ends when the process is interrupted. Run prints the error
// of a command, once, in the format that --output names.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &command.App{Stdin: stdin, Stdout: stdout, Stderr: stderr}
	root := rootCommand(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command.ExplainArguments(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if asksForJSON(args) { // --output may stand after the flag that cannot be parsed
			a.Output = command.FormatJSON
		}
		return command.FlagError(cmd, err)
	})
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return command.ExitOK
	}
	err = a.SuggestName(ctx, cmd, command.MissingFlags(cmd, err))
	a.Report(err)
	return command.ExitCode(err)
}

// rootCommand returns the command sous with all commands below it. cobra prints neither
// errors nor usage: Run reports errors, and the usage of a command would hide its error.
func rootCommand(a *command.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "sous",
		Short: "Publish and run functions",
		Long: `sous is the code-sous platform: server, command line and sandbox in one program.

  sous dev                 start everything on this machine
  sous fn init hello       write a function to begin with
  sous fn deploy hello     publish it and print the URL to curl

Exit codes: 0 success, 1 the command or its input is wrong, 2 the server failed
or cannot be reached, 3 the function failed.`,
		Version:       build.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          command.NoSuchCommand,
		RunE:          command.ShowHelp,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.Flags = cmd.Flags()
			return command.ValidateFormat(a.Output)
		},
	}
	root.SetVersionTemplate("sous {{.Version}}\n")
	root.PersistentFlags().StringVarP(&a.Output, "output", "o", command.FormatText, "what to print: text or json")
	root.PersistentFlags().BoolVar(&a.Quiet, "quiet", false, "print neither notes nor progress on stderr")
	own := commands{a}
	root.AddCommand(own.devCommand(), own.serveCommand(), own.profileCommand(), own.doctorCommand(), own.healthCommand(), own.versionCommand(), own.namespaceCommand(), own.whoamiCommand(), own.openCommand(), own.topCommand(), own.mirrorCommand())
	for _, commands := range [][]*cobra.Command{
		functions.Commands(a), activations.Commands(a), jobs.Commands(a), approvals.Commands(a), documents.Commands(a), domains.Commands(a), schedules.Commands(a), cadence.Commands(a), access.Commands(a), usage.Commands(a), webhooks.Commands(a), providers.Commands(a), mcp.Commands(a),
	} {
		root.AddCommand(commands...)
	}
	a.RegisterCompletions(root)
	return root
}

// commands builds the commands about this machine and about the server as a whole. The
// packages below have a type of the same name for theirs.
type commands struct{ *command.App }

// asksForJSON reports whether args, which could not be parsed, ask for --output json. It knows
// the forms -o json, -ojson, -o=json, --output json and --output=json.
func asksForJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == command.FormatJSON {
				return true
			}
		case "-o" + command.FormatJSON, "-o=" + command.FormatJSON, "--output=" + command.FormatJSON:
			return true
		}
	}
	return false
}
