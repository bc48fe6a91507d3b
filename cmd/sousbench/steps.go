package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/sleep"
)

// The runs of the benchmark of steps.
const (
	stepRuns = 64  // at once
	stepsOf  = 200 // each run
)

// stepsSource is a function of stepsOf steps that do nothing. Its result is the median time of one.
const stepsSource = `export default async (n) => {
  const times = [];
  for (let i = 0; i < n; i++) { const began = performance.now(); await cs.step("s", () => i); times.push(performance.now() - began); }
  return times.sort((a, b) => a - b)[n >> 1];
};`

// steps measures durable steps: those of one run, and of stepRuns at once, compared with jobs that
// call a function which does nothing.
func steps(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, append(profileArgs(o), "--sandbox-max", fmt.Sprint(stepRuns), "--sandbox-memory-budget", "16384")...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	const config = `{"timeout_ms": 60000, "memory_mb": 64, "max_concurrency": 64}`
	for name, source := range map[string]string{"steps": stepsSource, "plain": helloSource} {
		if err := publish(ctx, b.sous, name, source, config); err != nil {
			return nil, err
		}
	}
	c, err := client.New("http://"+b.sous.addr, client.Config{})
	if err != nil {
		return nil, err
	}
	ns := c.Tenant(tenant).Namespace(namespace)
	out, err := ns.Function("steps").Enqueue(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(fmt.Sprint(stepsOf))})
	if err != nil {
		return nil, err
	}
	overhead, err := resultOf(ctx, c.Tenant(tenant), out.ActivationID)
	if err != nil {
		return nil, err
	}
	stopProfile := startProfile(ctx, o, "steps")
	var took [2]time.Duration
	for i, name := range []string{"steps", "plain"} {
		jobs := []int{stepRuns, stepRuns * stepsOf / 4}[i]
		for range 2 { // the first round warms up
			took[i], err = runAll(ctx, ns, name, jobs, stepsOf)
			if err != nil {
				return nil, err
			}
		}
	}
	stopProfile()
	perSecond, plain := stepRuns*stepsOf/took[0].Seconds(), stepRuns*stepsOf/4/took[1].Seconds()
	return []row{
		{"overhead of a step, p50", fmt.Sprintf("%.2f ms", overhead), "< 2 ms", overhead < 2},
		{name: "plain jobs that run a function", value: fmt.Sprintf("%.0f/s", plain)},
		{"steps, 64 runs at once", fmt.Sprintf("%.0f/s, %.2f of plain jobs", perSecond, perSecond/plain), "≥ 0.5", perSecond/plain >= 0.5},
	}, nil
}

// runAll enqueues jobs of a function while its queue is paused, and returns how long they took.
func runAll(ctx context.Context, ns *client.Namespace, name string, jobs, event int) (time.Duration, error) {
	q, paused := ns.Queue("fn."+name), true
	if _, err := q.Configure(ctx, client.QueueChange{Paused: &paused}); err != nil {
		return 0, err
	}
	before, err := q.Get(ctx)
	if err != nil {
		return 0, err
	}
	err = inParallel(ctx, 32, jobs, func(ctx context.Context, _ int) error {
		_, err := ns.Function(name).Enqueue(ctx, client.InvokeOptions{Ref: api.Ref{Alias: "prod"}, Event: json.RawMessage(fmt.Sprint(event))})
		return err
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := q.Resume(ctx); err != nil {
		return 0, err
	}
	for {
		state, err := q.Get(ctx)
		if err != nil {
			return 0, err
		}
		if state.Depths[api.JobDead] > 0 {
			return 0, fmt.Errorf("a run of %s failed", name)
		}
		if state.Depths[api.JobCompleted] >= before.Depths[api.JobCompleted]+int64(jobs) {
			return time.Since(began), nil
		}
		if err := sleep.For(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// resultOf waits for the end of an activation whose result is a number.
func resultOf(ctx context.Context, t *client.Tenant, id string) (result float64, err error) {
	for {
		a, err := t.Activation(ctx, id)
		if err != nil {
			return 0, err
		}
		if a.Status.Terminal() {
			return result, json.Unmarshal(a.Result, &result)
		}
		if err := sleep.For(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
}
