package main

import (
	"context"
	"fmt"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sousbench/asleep"
	"github.com/codesous/sous/storage/storeserver"
)

const (
	asleepRuns = 100_000 // times the scale
	lateRuns   = 100
	// lateLimit bounds how much later than its time a run continues.
	lateLimit = 1500 * time.Millisecond
	// idleLimit bounds the commands a second with all runs asleep, as a multiple of those with a tenth.
	// The sweep reads a page of the jobs of each queue, however many there are.
	idleLimit = 1.2
)

// sleepers measures what runs cost that sleep, and how soon others continue beside them.
func sleepers(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, append(profileArgs(o), "--sandbox-max", fmt.Sprint(stepRuns), "--sandbox-memory-budget", "16384")...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "asleep", asleep.Function, asleep.Config); err != nil {
		return nil, err
	}
	c, err := client.New("http://"+b.sous.addr, client.Config{})
	if err != nil {
		return nil, err
	}
	store := storeserver.Client(b.store.addr)
	defer func() { _ = store.Close() }() // it only read
	ns := c.Tenant(tenant).Namespace(namespace)
	runs := asleep.Runs{Tenant: c.Tenant(tenant), Function: ns.Function("asleep"), Queue: ns.Queue("fn.asleep"), Commands: func(ctx context.Context) (float64, error) {
		s, err := readStats(ctx, store)
		return s.commands, err
	}}
	if _, err := runs.Late(ctx, 1, 2*time.Second); err != nil { // starts what the first run starts
		return nil, err
	}
	n := int(asleepRuns * o.scale)
	var idle [2]float64
	for i, all := range []int{n / 10, n} {
		if err := runs.Put(ctx, all); err != nil {
			return nil, err
		}
		idle[i], err = runs.Idle(ctx, 2*o.seconds)
		if err != nil {
			return nil, err
		}
	}
	late, err := runs.Late(ctx, lateRuns, 3*time.Second)
	if err != nil {
		return nil, err
	}
	p99 := quantile(late, 0.99)
	return []row{
		{name: fmt.Sprintf("store commands of an idle server, %d runs asleep", n/10), value: fmt.Sprintf("%.1f/s", idle[0])},
		{fmt.Sprintf("the same with %d", n), fmt.Sprintf("%.1f/s, %.2f of that", idle[1], idle[1]/idle[0]), fmt.Sprintf("≤ %.1f", idleLimit), idle[1] <= idleLimit*idle[0]},
		{fmt.Sprintf("from the time of a run until it continues, %d at once, p50", lateRuns), ms(quantile(late, 0.5)), "", true},
		{"the same, p99", ms(p99), "< " + ms(lateLimit), p99 < lateLimit},
	}, nil
}
