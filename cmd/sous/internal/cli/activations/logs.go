package activations

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// logRuns is the default number of activations whose lines fn logs prints first.
const logRuns = 10

// fnLogsCommand returns sous fn logs.
func (a commands) fnLogsCommand() *cobra.Command {
	var runs uint
	var follow bool
	var selection tailSelection
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log lines of a function's latest activations",
		Long: `Print the log lines of a function's latest activations, each behind the end of its
activation's id, which other commands accept. The last line of an activation that failed has
the error. sous tail shows several functions and the outcome of each activation.`,
		Example: `  sous fn logs checkout --follow
  sous fn logs checkout --status error --since 1h --runs 0
  sous fn logs checkout --level warn --grep 'order [0-9]+'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			fn, err := t.Function(args[0])
			if err != nil {
				return err
			}
			if _, err := fn.Get(cmd.Context()); err != nil {
				return err // a misspelt name would be followed for ever
			}
			l, err := selection.tail(a.App, t, client.ActivationFilter{Namespace: t.NamespaceName, Function: args[0]})
			if err != nil {
				return err
			}
			return l.run(cmd.Context(), runs, follow)
		},
	}
	cmd.Flags().UintVar(&runs, "runs", logRuns, "number of the latest activations to start with; 0: all, with --since")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print the lines of new activations too, until interrupted")
	selection.register(cmd.Flags())
	return cmd
}

// noteMissing names the functions that do not exist: they may be misspelt, or deployed later.
func (a commands) noteMissing(ctx context.Context, t *command.Target, functions []string) {
	for _, name := range functions {
		fn, err := t.Function(name)
		if err == nil {
			_, err = fn.Get(ctx)
		}
		if api.ErrorCode(err) == api.CodeFunctionNotFound {
			suggestion := ""
			if meant := command.SimilarFunction(ctx, t, name); meant != "" {
				suggestion = fmt.Sprintf("; did you mean %q?", meant)
			}
			a.Note("function %q does not exist in namespace %s%s", name, t.NamespaceName, suggestion)
		}
	}
}

// tailCommand returns sous tail.
func (a commands) tailCommand() *cobra.Command {
	var functions []string
	var all bool
	var selection tailSelection
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the logs and outcomes of all functions as they happen",
		Long: `Print the log lines and the outcome of each activation as they happen, for all functions of
the namespace, until interrupted. Each line has the end of the activation's id, which other
commands accept. Activations that began before the command are shown with --since.`,
		Example: `  sous tail
  sous tail --all-namespaces --status error
  sous tail --function checkout --function refund --level warn --since 10m
  sous tail --sampling 0.01 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			for _, name := range functions {
				if err := api.ValidateName("function", name); err != nil {
					return err
				}
			}
			filter := client.ActivationFilter{Namespace: t.NamespaceName}
			if all {
				filter.Namespace = ""
			}
			if len(functions) == 1 && !all {
				filter.Function = functions[0]
			}
			l, err := selection.tail(a.App, t, filter)
			if err != nil {
				return err
			}
			l.functions, l.outcomes = functions, true
			if !all {
				a.noteMissing(cmd.Context(), t, functions)
			}
			a.Note("waiting for activations; Ctrl-C ends it")
			return l.run(cmd.Context(), 0, true)
		},
	}
	cmd.Flags().StringSliceVar(&functions, "function", nil, "only these functions (default all)")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "functions of all namespaces of the tenant")
	selection.register(cmd.Flags())
	a.RegisterRemote(cmd.Flags())
	return cmd
}
