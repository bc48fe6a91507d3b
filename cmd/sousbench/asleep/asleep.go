// Package asleep measures runs that sleep: what they cost while they do, and how soon they continue.
package asleep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/sleep"
)

// Function is a function that sleeps for its event, in milliseconds. Its result is how much later it
// continued.
const Function = `export default async (ms) => {
  const due = await cs.step("due", () => Date.now() + ms);
  await cs.sleep(ms);
  return Date.now() - due;
};`

// Config is the configuration of Function.
const Config = `{"timeout_ms": 60000, "memory_mb": 64, "max_concurrency": 64}`

// Runs starts runs of a function that has the source Function and waits for them.
type Runs struct {
	Tenant   *client.Tenant
	Function *client.Function
	Queue    *client.Queue // of the function's jobs
	// Commands counts the commands that the store has processed.
	Commands func(ctx context.Context) (float64, error)
}

// Idle returns the commands a second of the store during a time.
func (r Runs) Idle(ctx context.Context, length time.Duration) (float64, error) {
	before, err := r.Commands(ctx)
	if err != nil {
		return 0, err
	}
	if err := sleep.For(ctx, length); err != nil {
		return 0, err
	}
	after, err := r.Commands(ctx)
	return (after - before) / length.Seconds(), err
}

// Put lets further runs fall asleep for a day, until n sleep.
func (r Runs) Put(ctx context.Context, n int) error {
	state, err := r.Queue.Get(ctx)
	if err != nil {
		return err
	}
	if _, err := r.start(ctx, n-int(state.Depths[api.JobScheduled]), 24*time.Hour); err != nil {
		return err
	}
	for {
		state, err := r.Queue.Get(ctx)
		if err != nil {
			return err
		}
		if state.Depths[api.JobDead] > 0 {
			return errors.New("a run failed")
		}
		if state.Depths[api.JobScheduled] >= int64(n) {
			return nil
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// Late lets n runs sleep for a time, and returns how much later each continued, in order.
func (r Runs) Late(ctx context.Context, n int, length time.Duration) ([]time.Duration, error) {
	ids, err := r.start(ctx, n, length)
	if err != nil {
		return nil, err
	}
	out := make([]time.Duration, n)
	for i := range out {
		for {
			a, err := r.Tenant.Activation(ctx, ids[i])
			if err != nil {
				return nil, err
			}
			if a.Status.Terminal() {
				var ms int64
				if err := json.Unmarshal(a.Result, &ms); err != nil {
					return nil, fmt.Errorf("a run ended as %s: %w", a.Status, err)
				}
				out[i] = time.Duration(ms) * time.Millisecond
				break
			}
			if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// start starts n runs, and returns the ids of their activations.
func (r Runs) start(ctx context.Context, n int, length time.Duration) ([]string, error) {
	ids := make([]string, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i := range ids {
		group.Go(func() error {
			out, err := r.Function.Enqueue(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(fmt.Sprint(length.Milliseconds()))})
			ids[i] = out.ActivationID
			return err
		})
	}
	return ids, group.Wait()
}
