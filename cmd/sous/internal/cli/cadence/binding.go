// Package cadence holds the commands about Cadence worker bindings: binding.go those that
// show and switch them, write.go those that create and change them.
//
// A binding belongs to a namespace. The commands write its record; the replicas with the role
// cadence notice the change, start and stop their workers, and report their state, which get,
// list and status show. So the state that a command prints right after a change may be the
// one before it. docs/cadence.md explains bindings.
package cadence

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about Cadence worker bindings.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{commands{a}.cadenceCommand()}
}

func (a commands) cadenceCommand() *cobra.Command {
	return a.RemoteGroup("cadence", "Run functions as the activities of Cadence workflows",
		command.Group("worker", "Worker bindings: the activities of a tasklist that functions run",
			a.bindingCreateCommand(), a.bindingListCommand(),
			a.bindingStateCommand("get", "Show a worker binding and its state", (*client.Binding).Get, bindingText),
			a.bindingStateCommand("status", "Show the workers of a binding on each replica", (*client.Binding).Get, bindingStatusText),
			a.bindingUpdateCommand(),
			a.bindingEnableCommand("enable", "Start the workers of a binding", true),
			a.bindingEnableCommand("disable", "Stop the workers of a binding; running tasks continue", false),
			a.bindingDeleteCommand()))
}

// bindingTarget returns the worker binding of a command about name.
func (a commands) bindingTarget(name string) (*client.Binding, error) {
	if err := api.ValidateName("worker", name); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Namespace.Binding(name), nil
}

// bindingListCommand returns sous cadence worker list. The counts are the sums of all
// replicas.
func (a commands) bindingListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's worker bindings with their state", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		return command.PrintPages(cmd.Context(), a.App, t.Namespace.Bindings, *limit, append([]string{"WORKER", "DOMAIN", "TASKLIST"}, countsHeader...), func(b api.BindingStatus) []string {
			return append([]string{b.Name, b.Domain, b.Tasklist}, countsRow(&b.Status)...)
		})
	}
	return cmd
}

// countsHeader has the titles of the cells of countsRow.
var countsHeader = []string{"STATE", "LAST POLL", "TAKEN", "COMPLETED", "FAILED", "CANCELLED", "IN FLIGHT"}

func countsRow(c *api.BindingCounts) []string {
	row := []string{string(c.State), command.TimeText(c.LastPollMS)}
	for _, n := range []int64{c.Taken, c.Completed, c.Failed, c.Cancelled, c.InFlight} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	return row
}

// bindingStateCommand returns a command that calls do on the binding that its argument names
// and prints the binding that do returns, as text makes of it.
func (a commands) bindingStateCommand(name, short string, do func(*client.Binding, context.Context) (api.BindingStatus, error), text func(*api.BindingStatus) string) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			binding, err := a.bindingTarget(args[0])
			if err != nil {
				return err
			}
			b, err := do(binding, cmd.Context())
			if err != nil {
				return err
			}
			return a.Print(b, text(&b))
		},
	}
}

func (a commands) bindingEnableCommand(name, short string, on bool) *cobra.Command {
	return a.bindingStateCommand(name, short, func(b *client.Binding, ctx context.Context) (api.BindingStatus, error) {
		return b.Update(ctx, client.BindingChange{Enabled: &on})
	}, bindingText)
}

func bindingText(b *api.BindingStatus) string {
	rows := [][]string{
		{"DOMAIN", b.Domain},
		{"TASKLIST", b.Tasklist},
		{"IDENTITY", b.WorkerID},
	}
	for _, kind := range b.ActivityTypes() {
		target := b.ActivityMap[kind]
		rows = append(rows, []string{"ACTIVITY", kind + " = " + target.Function + "@" + target.Ref().String()})
	}
	rows = append(rows,
		[]string{"POLLERS", strconv.Itoa(b.Pollers.Activity)},
		[]string{"MAX IN FLIGHT", strconv.Itoa(b.Limits.MaxInflightTasks)},
		[]string{"STATE", stateText(&b.Status)},
		[]string{"REVISION", strconv.FormatInt(b.Revision, 10)},
	)
	return command.Table([]string{"WORKER", b.Name}, rows)
}

// stateText returns a state, with its reason.
func stateText(c *api.BindingCounts) string {
	if c.Reason == "" {
		return string(c.State)
	}
	return string(c.State) + ": " + c.Reason
}

// bindingStatusText returns the counts in total and for each replica, then the reason of each
// replica that has one, such as an unreachable Cadence.
func bindingStatusText(b *api.BindingStatus) string {
	rows := [][]string{append([]string{"all"}, countsRow(&b.Status)...)}
	for i := range b.Shares {
		rows = append(rows, append([]string{b.Shares[i].Replica}, countsRow(&b.Shares[i].BindingCounts)...))
	}
	text := command.Table(append([]string{"REPLICA"}, countsHeader...), rows)
	for i := range b.Shares {
		if reason := b.Shares[i].Reason; reason != "" {
			text += command.Printable(b.Shares[i].Replica+": "+reason) + "\n"
		}
	}
	if len(b.Shares) == 0 && b.Status.Reason != "" {
		text += command.Printable(b.Status.Reason) + "\n"
	}
	return text
}

// bindingDeleteCommand returns sous cadence worker delete. Cadence keeps the tasks that no
// worker has taken; they wait for another worker of the tasklist or time out.
func (a commands) bindingDeleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete NAME", Short: "Delete a worker binding; running activities continue", Noun: "worker binding %s",
		Find: func(name string) (func(context.Context) error, error) {
			binding, err := a.bindingTarget(name)
			return func(ctx context.Context) error { return binding.Delete(ctx, 0) }, err
		},
	})
}
