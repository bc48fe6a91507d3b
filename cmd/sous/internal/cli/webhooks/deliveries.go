package webhooks

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// queue returns the command that has call add a delivery and prints its event's id.
func (a commands) queue(cmd *cobra.Command, call func(ctx context.Context, w *client.Webhook, args []string) (webhook.QueuedDelivery, error)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := a.handle(args[0])
		if err != nil {
			return err
		}
		queued, err := call(cmd.Context(), w, args)
		if err != nil {
			return err
		}
		return a.Print(queued, queued.EventID)
	}
	return cmd
}

func (a commands) testCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Send an event webhook.test to a webhook", Args: cobra.ExactArgs(1),
		Long: "Send an event webhook.test to a webhook, once. sous webhook deliveries shows the result.",
	}
	return a.queue(cmd, func(ctx context.Context, w *client.Webhook, _ []string) (webhook.QueuedDelivery, error) {
		return w.Test(ctx)
	})
}

func (a commands) redeliverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "redeliver NAME DELIVERY", Short: "Deliver the event of an attempt again", Args: cobra.ExactArgs(2),
		Long: "Deliver the event of an attempt again, with the same webhook-id. sous webhook deliveries lists the attempts with their ids.",
	}
	return a.queue(cmd, func(ctx context.Context, w *client.Webhook, args []string) (webhook.QueuedDelivery, error) {
		return w.Redeliver(ctx, args[1])
	})
}

func (a commands) deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "deliveries NAME", Short: "List the attempts to deliver events to a webhook, the latest first", Args: cobra.ExactArgs(1)}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := a.handle(args[0])
		if err != nil {
			return err
		}
		header := []string{"ID", "TIME", "TYPE", "SUBJECT", "ATTEMPT", "RESULT", "STATUS", "ERROR"}
		return command.PrintPages(cmd.Context(), a.App, w.Deliveries, *limit, header, func(d webhook.Delivery) []string {
			return []string{d.ID, command.TimeText(d.AtMS), d.Event.Type, d.Event.Subject, strconv.Itoa(d.Attempt), d.Result, statusText(d.Status), d.Error}
		})
	}
	return cmd
}
