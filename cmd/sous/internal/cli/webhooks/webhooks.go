// Package webhooks holds the commands about webhooks: sous webhook create, list, get, update, delete,
// rotate, test, deliveries and redeliver.
package webhooks

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about webhooks.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.RemoteGroup("webhook", "Webhooks to which events are sent",
		c.createCommand(), c.listCommand(), c.getCommand(), c.updateCommand(), c.deleteCommand(),
		c.rotateCommand(), c.testCommand(), c.deliveriesCommand(), c.redeliverCommand())}
}

// handle returns the webhook that a command names.
func (a commands) handle(name string) (*client.Webhook, error) {
	if err := api.ValidateName("webhook", name); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	return t.Tenant.Webhook(name), nil
}

// settings are the flags of create and update.
type settings struct {
	url, namespace, queue, function string
	events                          []string
	ordered, enabled                bool
	retryLimit                      int
}

// register adds the flags to cmd.
func (s *settings) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.events, "event", nil, "types of events, comma-separated, such as job.dead, or job.* for all that begin so")
	flags.StringVar(&s.namespace, "of-namespace", "", "only events of this namespace")
	flags.StringVar(&s.queue, "queue", "", "only events of the jobs of queues with this name")
	flags.StringVar(&s.function, "function", "", "only events of the jobs of functions with this name")
	flags.BoolVar(&s.ordered, "ordered", false, "send the events of one subject one after the other")
	flags.BoolVar(&s.enabled, "enabled", true, "send events")
	flags.IntVar(&s.retryLimit, "retry-limit", webhook.DefaultRetryLimit, "how often a delivery that failed is repeated")
	_ = cmd.RegisterFlagCompletionFunc("event", cobra.FixedCompletions(event.Types, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// change returns the change that the given flags make.
func (s *settings) change(cmd *cobra.Command) webhook.HookChange {
	var c webhook.HookChange
	for name, apply := range map[string]func(){
		"url": func() { c.URL = &s.url }, "event": func() { c.Events = &s.events }, "of-namespace": func() { c.Namespace = &s.namespace },
		"queue": func() { c.Queue = &s.queue }, "function": func() { c.Function = &s.function }, "ordered": func() { c.Ordered = &s.ordered },
		"enabled": func() { c.Enabled = &s.enabled }, "retry-limit": func() { c.RetryLimit = &s.retryLimit },
	} {
		if cmd.Flags().Changed(name) {
			apply()
		}
	}
	return c
}

func (a commands) createCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "create NAME URL", Short: "Create a webhook, and print the secret that signs its deliveries",
		Long: `Create a webhook: the events that follow, and that it selects, are sent to the URL by POST. The
secret that signs them is printed once, and no other command shows it.`,
		Example: `  sous webhook create alerts https://example.com/hooks --event job.dead,webhook.disabled
  sous webhook create orders https://example.com/orders --event 'job.*' --queue orders --ordered`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := a.handle(args[0])
			if err != nil {
				return err
			}
			made, err := w.Create(cmd.Context(), webhook.HookSettings{
				URL: args[1], Events: s.events, Namespace: s.namespace, Queue: s.queue, Function: s.function,
				Enabled: &s.enabled, Ordered: s.ordered, RetryLimit: &s.retryLimit,
			})
			if err != nil {
				return err
			}
			a.Note("keep the secret: it is not shown again")
			return a.print(made)
		},
	}
	s.register(cmd)
	_ = cmd.MarkFlagRequired("event") // the flag exists
	return cmd
}

// print prints a webhook.
func (a commands) print(w webhook.Webhook) error {
	rows := [][]string{
		{"URL", w.URL}, {"EVENTS", strings.Join(w.Events, ",")}, {"ENABLED", strconv.FormatBool(w.Enabled)},
		{"ORDERED", strconv.FormatBool(w.Ordered)}, {"RETRY LIMIT", strconv.Itoa(w.RetryLimit)},
	}
	optional := [][]string{
		{"NAMESPACE", w.Namespace}, {"QUEUE", w.Queue}, {"FUNCTION", w.Function}, {"SECRET", w.Secret}, {"LAST ERROR", w.LastError},
	}
	if w.LastDeliveryAtMS > 0 {
		optional = append(optional, []string{"LAST DELIVERY", command.TimeText(w.LastDeliveryAtMS)}, []string{"LAST STATUS", statusText(w.LastStatus)})
	}
	if w.PreviousSecretUntilMS > 0 {
		optional = append(optional, []string{"PREVIOUS SECRET UNTIL", command.TimeText(w.PreviousSecretUntilMS)})
	}
	for _, row := range optional {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	rows = append(rows, []string{"PENDING", strconv.FormatInt(w.Pending, 10)}, []string{"REVISION", strconv.FormatInt(w.Revision, 10)})
	return a.Print(w, command.Table([]string{"WEBHOOK", w.Name}, rows))
}

// statusText returns an HTTP status, or - for none.
func statusText(status int) string {
	if status == 0 {
		return "-"
	}
	return strconv.Itoa(status)
}

func (a commands) listCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the tenant's webhooks", Args: cobra.NoArgs}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.Target()
		if err != nil {
			return err
		}
		header := []string{"WEBHOOK", "ENABLED", "EVENTS", "LAST STATUS", "PENDING", "URL"}
		return command.PrintPages(cmd.Context(), a.App, t.Tenant.Webhooks, *limit, header, func(w webhook.Webhook) []string {
			return []string{w.Name, strconv.FormatBool(w.Enabled), strings.Join(w.Events, ","), statusText(w.LastStatus), strconv.FormatInt(w.Pending, 10), w.URL}
		})
	}
	return cmd
}

// one completes a command that calls an operation of one webhook and prints the result.
func (a commands) one(cmd *cobra.Command, call func(ctx context.Context, w *client.Webhook) (webhook.Webhook, error)) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := a.handle(args[0])
		if err != nil {
			return err
		}
		found, err := call(cmd.Context(), w)
		if err != nil {
			return err
		}
		return a.print(found)
	}
	return cmd
}

func (a commands) getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME", Short: "Show a webhook and its status"}
	return a.one(cmd, func(ctx context.Context, w *client.Webhook) (webhook.Webhook, error) { return w.Get(ctx) })
}

func (a commands) rotateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rotate NAME", Short: "Make a new secret for a webhook, and print it",
		Long: `Make a new secret for a webhook, and print it once. For 24 hours deliveries are signed with the new and
with the previous secret, so that receivers can change to the new one in the meantime.`,
	}
	return a.one(cmd, func(ctx context.Context, w *client.Webhook) (webhook.Webhook, error) { return w.Rotate(ctx, 0) })
}

func (a commands) updateCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change a webhook, or enable or disable it",
		Long: `Change a webhook: flags that are not given leave their settings. A disabled webhook drops the deliveries
that wait; enabled again, it begins with the next event.`,
		Example: `  sous webhook update alerts --event job.dead,job.cancelled
  sous webhook update alerts --enabled=false`,
	}
	s.register(cmd)
	cmd.Flags().StringVar(&s.url, "url", "", "where events are sent to")
	return a.one(cmd, func(ctx context.Context, w *client.Webhook) (webhook.Webhook, error) {
		return w.Update(ctx, s.change(cmd), 0)
	})
}

func (a commands) deleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete NAME", Short: "Delete a webhook with its deliveries and their log",
		Noun: "webhook %s", Done: "webhook %s",
		Find: func(name string) (func(context.Context) error, error) {
			w, err := a.handle(name)
			return func(ctx context.Context) error { return w.Delete(ctx, 0) }, err
		},
	})
}
