package functions

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// applyTriggers creates the queue triggers that sous.json names, and changes those that differ.
// It leaves all others alone. changed are the queues of those that it wrote. A trigger that was
// disabled stays so unless sous.json says otherwise.
func applyTriggers(ctx context.Context, t *command.Target, function, alias string, wanted manifest.Triggers) (changed []string, err error) {
	for _, w := range wanted.Queues {
		remote := t.Namespace.Trigger(w.Queue)
		now, err := remote.Get(ctx)
		if err != nil && api.ErrorCode(err) != api.CodeTriggerNotFound {
			return changed, fmt.Errorf("trigger of queue %s: %w", w.Queue, err)
		}
		n := trigger.NewQueueTrigger{Function: function, Alias: alias, BatchSize: w.BatchSize, WindowMS: w.WindowMS, Concurrency: w.Concurrency, Enabled: w.Enabled}
		if err == nil && w.Enabled == nil {
			n.Enabled = &now.Enabled
		}
		if want := n.Trigger(w.Queue); want.Same(&now) {
			continue
		}
		if _, err := remote.Put(ctx, n, 0); err != nil {
			return changed, fmt.Errorf("trigger of queue %s: %w", w.Queue, err)
		}
		changed = append(changed, w.Queue)
	}
	return changed, nil
}

// triggersOf returns the triggers of a function, as sous.json has them.
func triggersOf(ctx context.Context, t *command.Target, function string) (out manifest.Triggers, err error) {
	for found, err := range client.All(ctx, t.Namespace.Triggers, client.PageOptions{}) {
		if err != nil {
			return out, err
		}
		if found.Function != function {
			continue
		}
		q := manifest.QueueTrigger{Queue: found.Queue, BatchSize: found.BatchSize, WindowMS: found.WindowMS, Concurrency: found.Concurrency}
		if !found.Enabled {
			q.Enabled = &found.Enabled
		}
		out.Queues = append(out.Queues, q)
	}
	return out, nil
}
