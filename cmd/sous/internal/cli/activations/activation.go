package activations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

func (a commands) activationCommand() *cobra.Command {
	return a.RemoteGroup("activation", "Show and cancel activations",
		a.activationListCommand(), a.searchCommand(), a.statsCommand(), a.activationGetCommand(), a.activationCancelCommand(), a.activationLogsCommand())
}

// activationStatuses are the values of --status of activation list.
var activationStatuses = []string{
	string(api.StatusQueued), string(api.StatusRunning),
	string(api.StatusSuccess), string(api.StatusError), string(api.StatusTimeout), string(api.StatusCancelled),
}

var listHeader = []string{"ACTIVATION", "FUNCTION", "STARTED", "STATUS", "DURATION", "REF", "TRIGGER", "ERROR"}

// activationListCommand returns sous activation list.
func (a commands) activationListCommand() *cobra.Command {
	var filter client.ActivationFilter
	var since time.Duration
	var all bool
	cmd := &cobra.Command{
		Use: "list [FUNCTION]", Short: "List activations, newest first", Args: cobra.MaximumNArgs(1),
		Long: "List the activations of a function, of the namespace, or with --all-namespaces of the tenant,\nnewest first.",
		Example: `  sous activation list
  sous activation list checkout --status error --since 1h
  sous activation list --all-namespaces --limit 100`,
	}
	limit := command.RegisterLimit(cmd)
	flags := cmd.Flags()
	flags.StringVar((*string)(&filter.Status), "status", "", "only those with this status: queued, running, success, error, timeout or cancelled")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(activationStatuses, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	flags.StringVar(&filter.Trigger, "trigger", "", "only those with this trigger: http, api, schedule, queue or cadence")
	flags.DurationVar(&since, "since", 0, "only those that started within this time before now, such as 15m")
	flags.BoolVarP(&all, "all-namespaces", "A", false, "activations of all namespaces of the tenant")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		header := slices.Clone(listHeader)
		switch {
		case len(args) == 1 && all:
			return errors.New("--all-namespaces is for a list without a function")
		case len(args) == 1:
			filter.Function = args[0]
			if err := api.ValidateName("function", args[0]); err != nil {
				return err
			}
			header = slices.Delete(header, 1, 2)
		}
		if !all {
			filter.Namespace = t.NamespaceName
		}
		if since > 0 {
			filter.FromMS = time.Now().Add(-since).UnixMilli()
		}
		items, more, err := command.Collect(client.All(cmd.Context(), activationsOf(t, filter), client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		if len(items) == 0 && filter.Function != "" {
			// A deleted function still has activations. A misspelt name has none.
			if _, err := t.Namespace.Function(filter.Function).Get(cmd.Context()); err != nil {
				return err
			}
		}
		a.NoteMore(more)
		return command.PrintList(a.App, items, header, func(act api.Activation) []string { return a.activationRow(act, &filter) })
	}
	return cmd
}

// activationsOf returns the list call of the activations that f admits, for client.All.
func activationsOf(t *command.Target, f client.ActivationFilter) func(context.Context, client.PageOptions) (api.Page[api.Activation], error) {
	return func(ctx context.Context, o client.PageOptions) (api.Page[api.Activation], error) {
		return t.Tenant.Activations(ctx, f, o)
	}
}

// activationRow returns the cells of an activation in a list that filter selected.
func (a commands) activationRow(act api.Activation, filter *client.ActivationFilter) []string {
	reason := ""
	if act.Error != nil {
		reason = command.ErrorSummary(act.Error)
	}
	row := []string{act.ActivationID, act.Function, command.TimeText(act.StartMS), string(act.Status), fmt.Sprintf("%d ms", act.DurationMS),
		act.Ref.String(), act.Trigger.Type, reason}
	switch {
	case filter.Function != "":
		return slices.Delete(row, 1, 2)
	case filter.Namespace == "":
		row[1] = act.Namespace + "/" + act.Function
	}
	return row
}

func (a commands) activationGetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show an activation with its result", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, id, err := a.activationTarget(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			act, err := t.Tenant.Activation(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.Print(act, activationText(act))
		},
	}
}

// activationText returns an activation as a table, then its error or its result.
func activationText(act api.Activation) string {
	var b strings.Builder
	rows := [][]string{
		{"FUNCTION", fmt.Sprintf("%s/%s/%s", act.Tenant, act.Namespace, act.Function)},
		{"VERSION", versionText(act.Ref)},
		{"TRIGGER", act.Trigger.Type},
		{"STATUS", string(act.Status)},
		{"STARTED", command.TimeText(act.StartMS)},
		{"DURATION", fmt.Sprintf("%d ms (%.1f ms of CPU)", act.DurationMS, act.CPUMS)},
		{"MEMORY PEAK", command.SizeText(act.MemoryPeakBytes)},
		{"COLD START", command.Mark(act.ColdStart, "yes")},
		{"ATTEMPT", fmt.Sprint(act.Attempt)},
		{"JOB", cmp.Or(act.JobID, "-")},
		{"RETRY OF", cmp.Or(act.RetryOf, "-")},
	}
	if act.FirstByteMS > 0 { // a streamed answer that has sent something
		rows = append(rows, []string{"STREAMED", fmt.Sprintf("%s, the first byte after %.1f ms",
			command.SizeText(act.StreamBytes), act.FirstByteMS)})
	}
	b.WriteString(command.Table([]string{"ACTIVATION", act.ActivationID}, rows))
	if act.Error != nil {
		b.WriteString("\n" + command.FunctionErrorText(act.Error))
	}
	if act.Result != nil {
		b.WriteString("\n" + command.IndentJSON(act.Result))
	}
	return b.String()
}

// versionText returns the version of r, with its alias. An activation that has not started
// has an alias only.
func versionText(r api.Ref) string {
	if r.Version == 0 {
		return r.Alias
	}
	return fmt.Sprintf("%d (%s)", r.Version, r)
}

// activationCancelCommand returns sous activation cancel. A running function is interrupted on
// the replica that runs it. CodeActivationTerminal if it has ended already.
func (a commands) activationCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "End a queued or running activation", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, id, err := a.activationTarget(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			act, err := t.Tenant.CancelActivation(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.Print(act, fmt.Sprintf("%s is %s\n", act.ActivationID, act.Status))
		},
	}
}

// activationLogsCommand returns sous activation logs. With --follow it ends with the
// activation, so an interrupt before that is an error.
func (a commands) activationLogsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Print an activation's log lines", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, id, err := a.activationTarget(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if follow {
				return t.Tenant.FollowLogs(cmd.Context(), id, a.printLog)
			}
			for line, err := range t.Tenant.LogLines(cmd.Context(), id) {
				if err != nil {
					return err
				}
				if err := a.printLog(line); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new lines until the activation has ended")
	return cmd
}

// printLog prints one line of an activation that the user named.
func (a commands) printLog(line api.LogLine) error {
	return a.PrintLine(line, a.LogText(line))
}
