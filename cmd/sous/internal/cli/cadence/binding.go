// Package cadence holds the commands about Cadence worker bindings.
package cadence

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands are the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about Cadence worker bindings.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{commands{a}.cadenceCommand()}
}

func (a commands) cadenceCommand() *cobra.Command {
	return a.RemoteGroup("cadence", "Run functions as the activities of Cadence workflows",
		command.Group("worker", "Say which activities of which tasklist functions run",
			a.bindingCreateCommand(), a.bindingListCommand(),
			a.bindingStateCommand("get", "Show a worker binding and its state", (*client.Binding).Get, bindingText),
			a.bindingStateCommand("status", "Show how the workers of a binding get on, on each replica", (*client.Binding).Get, bindingStatusText),
			a.bindingUpdateCommand(),
			a.bindingEnableCommand("enable", "Let a binding's workers take tasks", true),
			a.bindingEnableCommand("disable", "Let them take no more tasks; those that they have go on", false),
			a.bindingDeleteCommand()))
}

// bindingTarget is the target of a command about a worker binding.
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

func (a commands) bindingListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's worker bindings with how they get on", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		items, more, err := command.Collect(client.All(cmd.Context(), t.Namespace.Bindings, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		a.NoteMore(more)
		return command.PrintList(a.App, items, append([]string{"WORKER", "DOMAIN", "TASKLIST"}, countsHeader...), func(b api.BindingStatus) []string {
			return append([]string{b.Name, b.Domain, b.Tasklist}, countsRow(&b.Status)...)
		})
	}
	return cmd
}

var countsHeader = []string{"STATE", "LAST POLL", "TAKEN", "COMPLETED", "FAILED", "CANCELLED", "IN FLIGHT"}

func countsRow(c *api.BindingCounts) []string {
	row := []string{string(c.State), command.TimeText(c.LastPollMS)}
	for _, n := range []int64{c.Taken, c.Completed, c.Failed, c.Cancelled, c.InFlight} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	return row
}

// bindingStateCommand is a command that prints the binding as it is after do.
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
		[]string{"AT ONCE", strconv.Itoa(b.Limits.MaxInflightTasks)},
		[]string{"STATE", stateText(&b.Status)},
		[]string{"REVISION", strconv.FormatInt(b.Revision, 10)},
	)
	return command.Table([]string{"WORKER", b.Name}, rows)
}

// stateText is a state, with what is the matter.
func stateText(c *api.BindingCounts) string {
	if c.Reason == "" {
		return string(c.State)
	}
	return string(c.State) + ": " + c.Reason
}

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

func (a commands) bindingDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a worker binding; activities that run go on to their end", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			binding, err := a.bindingTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.Confirm(yes, fmt.Sprintf("Delete worker binding %s?", args[0])); err != nil {
				return err
			}
			if err := binding.Delete(cmd.Context(), 0); err != nil {
				return err
			}
			a.Note("%s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
