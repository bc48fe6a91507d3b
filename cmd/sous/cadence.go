package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func (a *app) cadenceCommand() *cobra.Command {
	return a.remoteCommand("cadence", "Run functions as the activities of Cadence workflows",
		groupCommand("worker", "Say which activities of which tasklist functions run",
			a.bindingCreateCommand(), a.bindingListCommand(),
			a.bindingStateCommand("get", "Show a worker binding and its state", (*client.Binding).Get, bindingText),
			a.bindingStateCommand("status", "Show how the workers of a binding get on, on each replica", (*client.Binding).Get, bindingStatusText),
			a.bindingUpdateCommand(),
			a.bindingEnableCommand("enable", "Let a binding's workers take tasks", true),
			a.bindingEnableCommand("disable", "Let them take no more tasks; those that they have go on", false),
			a.bindingDeleteCommand()))
}

// bindingTarget is the target of a command about a worker binding.
func (a *app) bindingTarget(name string) (*client.Binding, error) {
	if err := api.ValidateName("worker", name); err != nil {
		return nil, err
	}
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	return t.namespace.Binding(name), nil
}

func (a *app) bindingListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespace's worker bindings with how they get on", Args: cobra.NoArgs}
	limit := registerLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.target()
		if err != nil {
			return err
		}
		items, more, err := collect(client.All(cmd.Context(), t.namespace.Bindings, client.PageOptions{}), *limit)
		if err != nil {
			return err
		}
		a.noteMore(more)
		return printList(a, items, append([]string{"WORKER", "DOMAIN", "TASKLIST"}, countsHeader...), func(b api.BindingStatus) []string {
			return append([]string{b.Name, b.Domain, b.Tasklist}, countsRow(&b.Status)...)
		})
	}
	return cmd
}

var countsHeader = []string{"STATE", "LAST POLL", "TAKEN", "COMPLETED", "FAILED", "CANCELLED", "IN FLIGHT"}

func countsRow(c *api.BindingCounts) []string {
	row := []string{string(c.State), timeText(c.LastPollMS)}
	for _, n := range []int64{c.Taken, c.Completed, c.Failed, c.Cancelled, c.InFlight} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	return row
}

// bindingStateCommand is a command that prints the binding as it is after do.
func (a *app) bindingStateCommand(name, short string, do func(*client.Binding, context.Context) (api.BindingStatus, error), text func(*api.BindingStatus) string) *cobra.Command {
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
			return a.print(b, text(&b))
		},
	}
}

func (a *app) bindingEnableCommand(name, short string, on bool) *cobra.Command {
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
	return table([]string{"WORKER", b.Name}, rows)
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
	text := table(append([]string{"REPLICA"}, countsHeader...), rows)
	for i := range b.Shares {
		if reason := b.Shares[i].Reason; reason != "" {
			text += printable(b.Shares[i].Replica+": "+reason) + "\n"
		}
	}
	if len(b.Shares) == 0 && b.Status.Reason != "" {
		text += printable(b.Status.Reason) + "\n"
	}
	return text
}

func (a *app) bindingDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a worker binding; activities that run go on to their end", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			binding, err := a.bindingTarget(args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, fmt.Sprintf("Delete worker binding %s?", args[0])); err != nil {
				return err
			}
			if err := binding.Delete(cmd.Context(), 0); err != nil {
				return err
			}
			a.note("%s deleted", args[0])
			return nil
		},
	}
	registerYes(cmd, &yes)
	return cmd
}
