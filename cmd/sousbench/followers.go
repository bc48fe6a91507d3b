package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/codesous/sous/cmd/sousbench/follow"
)

const (
	fewFollowers  = 100
	manyFollowers = 10_000
	// followLimit is the bound of the p99 from the change to the follower.
	followLimit = 250 * time.Millisecond
)

// followers measures streams of events: their delay, and the commands that they cost the store. Each
// event is an enqueue, and goes to the followers of its queue, one in a hundred of all. The followers
// are goroutines of this process, with a connection each.
func followers(ctx context.Context, o options) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	follow.RaiseFileLimit(manyFollowers)
	store, err := startStore(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer store.stop()
	server, err := startSous(ctx, o, store, append(profileArgs(o), "--max-waiting", strconv.Itoa(2*manyFollowers))...)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	f, err := follow.New(ctx, server.addr, store.addr, namespace)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	few, err := f.Phase(ctx, fewFollowers, o.seconds)
	if err != nil {
		return nil, err
	}
	defer startProfile(ctx, o, "followers")()
	many, err := f.Phase(ctx, manyFollowers, o.seconds)
	if err != nil {
		return nil, err
	}
	p99, ratio := quantile(many.Delays, 0.99), many.Commands/few.Commands
	return []row{
		{name: fmt.Sprintf("%d followers, %d events/s: deliveries", manyFollowers, follow.Rate), value: fmt.Sprintf("%.0f/s", float64(len(many.Delays))/o.seconds.Seconds())},
		{name: "its delay, p50", value: ms(quantile(many.Delays, 0.5))},
		{name: "its delay, p99", value: ms(p99), want: "< " + ms(followLimit), ok: p99 < followLimit},
		{name: fmt.Sprintf("its store commands, multiple of those of %d followers", fewFollowers), value: fmt.Sprintf("%.2f (%.0f/s)", ratio, many.Commands), want: "≤ 1.10", ok: ratio <= 1.1},
	}, nil
}
