package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codesous/sous/cmd/sousbench/brokers"
	"github.com/redis/go-redis/v9"
)

// The work that both sides of the queue benchmark do.
const (
	queueProducers  = 16 // goroutines that enqueue
	queueBatch      = brokers.Batch
	queueIdleProbes = 300 // single jobs on the idle queue
	benchQueue      = brokers.Queue
)

var queuePayload = brokers.Payload

// queueBench compares the job queue with asynq, side by side on one store, in each
// of its modes.
func queueBench(ctx context.Context, o options) ([]row, error) {
	var rows []row
	for _, mode := range o.storeModes() {
		more, err := queueOn(ctx, o, mode)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	more, err := queueDepth(ctx, o)
	return append(rows, more...), err
}

// queueOn compares the sides on one mode of the store. The sides alternate in each round, and
// the median round of each counts.
func queueOn(ctx context.Context, o options, mode storeMode) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := startStore(ctx, o, dir, mode.args...)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	// sous runs twice: asynq has no calls for several jobs, so the second side compares equal
	// calls, and the third shows what batches save.
	ours := func(ctx context.Context, addr string) (brokers.Broker, error) { return brokers.NewSous(ctx, addr) }
	sides := []struct {
		name string
		open func(context.Context, string) (brokers.Broker, error)
		size int
	}{
		{"asynq", func(_ context.Context, addr string) (brokers.Broker, error) { return brokers.NewAsynq(addr), nil }, 1},
		{"sous, one by one", ours, 1},
		{"sous, batches of 64", ours, queueBatch},
	}
	figures := make([]queueFigures, len(sides))
	for range o.rounds {
		for i, side := range sides {
			f, err := measureQueue(ctx, o, server.addr, side.open, side.size)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side.name, err)
			}
			figures[i].add(f)
		}
	}
	var rows []row
	for i, side := range sides {
		rows = append(rows, row{name: mode.name + ": " + side.name, value: figures[i].String()})
	}
	base, single, batch := figures[0].median(), figures[1].median(), figures[2].median()
	ratio := func(name string, got, of, want float64) row {
		return row{mode.name + ": " + name, fmt.Sprintf("%.2f", got/of), fmt.Sprintf("≥ %.1f", want), got >= want*of}
	}
	return append(rows,
		ratio("lifecycle in batches, multiple of asynq", batch.lifecycle, base.lifecycle, o.want(4, 15)),
		ratio("lifecycle one by one, multiple of asynq", single.lifecycle, base.lifecycle, 1.2),
		ratio("enqueue in batches, multiple of asynq", batch.enqueue, base.enqueue, 1.5),
		row{mode.name + ": p99 to the handler on an idle queue", ms(single.p99), "< 10 ms", single.p99 < 10*time.Millisecond},
	), nil
}

// queueFigure is the result of one round of one side.
type queueFigure struct {
	enqueue, lifecycle float64       // jobs a second: enqueued only; enqueued and handled
	p50, p99           time.Duration // from enqueue to the handler, on an idle queue
	commands, bytes    float64       // of the store, for each job of the lifecycle
}

// queueFigures are the rounds of one side.
type queueFigures struct{ all []queueFigure }

func (f *queueFigures) add(one queueFigure) { f.all = append(f.all, one) }

// median returns the round with the median lifecycle: its figures belong together.
func (f *queueFigures) median() queueFigure {
	sorted := slices.Clone(f.all)
	slices.SortFunc(sorted, func(a, b queueFigure) int { return int(a.lifecycle - b.lifecycle) })
	return sorted[len(sorted)/2]
}

func (f *queueFigures) String() string {
	m := f.median()
	return fmt.Sprintf("enqueue %.0f/s, lifecycle %.0f/s, idle p50 %s p99 %s, %.1f commands and %.0f bytes a job",
		m.enqueue, m.lifecycle, ms(m.p50), ms(m.p99), m.commands, m.bytes)
}

// measureQueue measures three things of one side: enqueueing alone, the lifecycle with
// producers and workers at the same time, and single jobs on an idle queue. It begins with an
// empty store, and empties it before the lifecycle.
func measureQueue(ctx context.Context, o options, addr string, open func(context.Context, string) (brokers.Broker, error), size int) (f queueFigure, err error) {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true, Protocol: 2})
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	b, err := open(ctx, addr)
	if err != nil {
		return f, err
	}
	defer b.Close()
	begin := time.Now()
	made, err := produce(ctx, b, size, begin.Add(o.seconds/4))
	if err != nil {
		return f, err
	}
	f.enqueue = float64(made) / time.Since(begin).Seconds()
	if err := client.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	before, err := readStats(ctx, client)
	if err != nil {
		return f, err
	}
	begin = time.Now()
	done, err := lifecycleOf(ctx, b, size, begin.Add(o.seconds/2))
	if err != nil {
		return f, err
	}
	f.lifecycle = float64(done) / time.Since(begin).Seconds()
	after, err := readStats(ctx, client)
	if err != nil {
		return f, err
	}
	f.commands, f.bytes = (after.commands-before.commands)/float64(done), (after.bytes-before.bytes)/float64(done)
	f.p50, f.p99, err = idleLatency(ctx, b)
	return f, err
}

// produce enqueues size jobs a call from all producers until the time until, and returns the
// number of jobs. One producer's error does not end the others.
func produce(ctx context.Context, b brokers.Broker, size int, until time.Time) (int64, error) {
	var made atomic.Int64
	errs := make(chan error, queueProducers)
	var work sync.WaitGroup
	for range queueProducers {
		work.Go(func() {
			for time.Now().Before(until) {
				if err := b.Enqueue(ctx, size); err != nil {
					errs <- err
					return
				}
				made.Add(int64(size))
			}
		})
	}
	work.Wait()
	close(errs)
	return made.Load(), <-errs
}

// lifecycleOf runs producers until the time until and workers beside them, and returns the
// number of jobs when all of them are handled. It fails if that takes a minute longer.
func lifecycleOf(ctx context.Context, b brokers.Broker, size int, until time.Time) (int64, error) {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var done atomic.Int64
	served := make(chan error, 1)
	go func() { served <- b.Serve(serving, func([]byte) { done.Add(1) }) }()
	made, err := produce(ctx, b, size, until)
	for deadline := time.Now().Add(time.Minute); err == nil && done.Load() < made; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			err = fmt.Errorf("%d of %d jobs were handled", done.Load(), made)
		}
	}
	stop()
	return made, cmp.Or(err, <-served)
}

// idleLatency enqueues single jobs and measures the time until the handler has each. The
// pauses are random, so that they do not fall into step with a poll of the worker.
func idleLatency(ctx context.Context, b brokers.Broker) (p50, p99 time.Duration, err error) {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	arrived := make(chan time.Duration, queueIdleProbes)
	served := make(chan error, 1)
	go func() {
		served <- b.Serve(serving, func(payload []byte) {
			if sent, err := strconv.ParseInt(string(payload), 10, 64); err == nil {
				arrived <- time.Duration(time.Now().UnixNano() - sent)
			}
		})
	}()
	var took []time.Duration
	for range queueIdleProbes {
		time.Sleep(time.Duration(3+rand.IntN(7)) * time.Millisecond)
		if err := b.EnqueuePayload(ctx, strconv.AppendInt(nil, time.Now().UnixNano(), 10)); err != nil {
			return 0, 0, err
		}
		select {
		case d := <-arrived:
			took = append(took, d)
		case <-time.After(30 * time.Second):
			return 0, 0, errors.New("a job did not arrive")
		}
	}
	stop()
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], <-served
}

// storeStats are the counters of the store since its start: commands, and bytes in both
// directions.
type storeStats struct{ commands, bytes float64 }

// readStats reads the counters from INFO stats. Commands that scripts call count too.
func readStats(ctx context.Context, c *redis.Client) (storeStats, error) {
	text, err := c.Info(ctx, "stats").Result()
	var s storeStats
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "total_commands_processed":
			s.commands = n
		case "total_net_input_bytes", "total_net_output_bytes":
			s.bytes += n
		}
	}
	return s, err
}

// queueDepth compares the rate of fetching from a queue of a million jobs, times
// options.scale, with that from a queue of a thousand. Each round takes a thousand jobs from
// both, and adds as many, so that the depths stay.
func queueDepth(ctx context.Context, o options) ([]row, error) {
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := startStore(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	s, err := brokers.NewSous(ctx, server.addr)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	depths := map[string]int{"small": 1000, "large": int(1_000_000 * o.scale)}
	rates := map[string][]float64{}
	for name, depth := range depths {
		if err := s.Fill(ctx, name, depth); err != nil {
			return nil, err
		}
	}
	for range max(9, o.rounds) {
		for name := range depths {
			rate, err := s.Drain(ctx, name, 1000)
			if err != nil {
				return nil, err
			}
			rates[name] = append(rates[name], rate)
			if err := s.Fill(ctx, name, 1000); err != nil { // as deep as before
				return nil, err
			}
		}
	}
	median := func(name string) float64 {
		slices.Sort(rates[name])
		return rates[name][len(rates[name])/2]
	}
	small, large := median("small"), median("large")
	return []row{
		{name: "fetch and ack from 1,000 pending", value: fmt.Sprintf("%.0f/s", small)},
		{name: fmt.Sprintf("fetch and ack from %d pending", depths["large"]), value: fmt.Sprintf("%.0f/s", large)},
		{"deep queue, share of the shallow one's", fmt.Sprintf("%.2f", large/small), "≥ 0.9", large >= 0.9*small},
	}, nil
}
