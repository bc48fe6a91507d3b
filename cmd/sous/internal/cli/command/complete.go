package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

const (
	completeWithin = time.Second // a shell waits this long for the server
	completeLimit  = 200         // names that a completion offers
)

// RegisterCompletions adds the completion of names to root and all commands below it whose
// usage takes a queue, a function or a schedule as the first argument. If the server cannot be
// reached, they complete nothing.
func (a *App) RegisterCompletions(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		a.RegisterCompletions(cmd)
	}
	words := strings.Fields(root.Use)
	if len(words) < 2 || root.ValidArgsFunction != nil || words[0] == "create" || words[0] == "init" {
		return
	}
	var names func(context.Context, *Target) ([]string, error)
	switch {
	case words[1] == "QUEUE":
		names = queueNames
	case words[1] == "NAME" && root.Parent().Name() == "fn":
		names = functionNames
	case words[1] == "NAME" && root.Parent().Name() == "schedule":
		names = scheduleNames
	default:
		return
	}
	root.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		t, err := a.Target()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, _ := names(ctx, t) // an error leaves nothing to complete
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func queueNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Queues, func(q api.Queue) string { return q.Queue })
}

func functionNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Functions, func(f api.Function) string { return f.Name })
}

func scheduleNames(ctx context.Context, t *Target) ([]string, error) {
	return namesOf(ctx, t.Namespace.Schedules, func(s api.ScheduleStatus) string { return s.Name })
}

// namesOf returns the names of the first completeLimit items of a listing.
func namesOf[T any](ctx context.Context, list func(context.Context, client.PageOptions) (api.Page[T], error), name func(T) string) ([]string, error) {
	items, _, err := Collect(client.All(ctx, list, client.PageOptions{}), completeLimit)
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, name(item))
	}
	return out, err
}
