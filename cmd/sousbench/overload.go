package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// busySource is a function that computes for some 40 ms, so that the processors are the
// bottleneck and a refusal costs little beside a call: the clients run on the same machine.
const busySource = `export default () => { let x = 1; for (let i = 0; i < 200000; i++) x = (x * 31 + i) % 1000003; return { x }; };`

// overloadTimes is the offered load, as a multiple of the peak.
const overloadTimes = 10

// overload compares the throughput of a replica with ten times the load that it can carry with
// its peak, and measures how fast it refuses the rest. The peak is that of a closed loop, in which
// nothing is refused; the overload is an open one, whose clients do not slow down. Of several
// rounds of both the median counts: the speed of a shared machine changes by a tenth.
func overload(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "busy", busySource, "{}"); err != nil {
		return nil, err
	}
	request := httpGet(b.sous.addr, webPath("busy"))
	closed := load{b.sous.addr, request, 16, o.seconds}
	if _, err := closed.run(ctx); err != nil { // warms up
		return nil, err
	}
	stopProfile := startProfile(ctx, o, "overload")
	var rounds []overloadRound
	for range o.rounds + 1 {
		r, err := overloadOnce(ctx, closed)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, r)
	}
	stopProfile()
	rounds = rounds[1:] // the limit adapts in the first one
	slices.SortFunc(rounds, func(a, b overloadRound) int { return cmp.Compare(a.share(), b.share()) })
	middle := rounds[len(rounds)/2]
	var refusals []time.Duration
	errors := 0
	for _, r := range rounds {
		refusals = append(refusals, r.flood.refusals...)
		errors += r.peak.errors + r.flood.errors
	}
	slices.Sort(refusals)
	refusal := quantile(refusals, 0.99)
	return []row{
		{name: "peak, 16 connections", value: loadText(middle.peak)},
		{name: fmt.Sprintf("offered %.0f/s", middle.flood.offered), value: fmt.Sprintf("%.0f/s served, %.0f/s refused, p99 of the served %s",
			middle.flood.served, middle.flood.refused, ms(quantile(middle.flood.answers, 0.99)))},
		{name: "processors left by the clients", value: fmt.Sprintf("%.2f at the peak, %.2f under overload", middle.peakLeft, middle.floodLeft)},
		{"throughput of these under overload, share of peak", fmt.Sprintf("%.2f, from %.2f to %.2f", middle.share(), rounds[0].share(), rounds[len(rounds)-1].share()), "≥ 0.90", middle.share() >= 0.9},
		{"p99 of a refusal", ms(refusal), "≤ 10 ms", refusal <= 10*time.Millisecond && len(refusals) > 0},
		{name: "errors and failed connections", value: fmt.Sprint(errors), want: "0", ok: errors == 0},
	}, nil
}

// overloadRound is a peak, and the overload that follows it. peakLeft and floodLeft are the
// processors that the clients, which run on the same machine, left to the replica.
type overloadRound struct {
	peak                result
	flood               openResult
	peakLeft, floodLeft float64
}

// share returns the throughput under overload as a share of the peak, both for each processor that
// the clients left: ten times the requests cost ten times the clients.
func (r overloadRound) share() float64 {
	return r.flood.served / r.floodLeft / (r.peak.perSecond / r.peakLeft)
}

// overloadOnce measures a peak, and an overload by it.
func overloadOnce(ctx context.Context, closed load) (r overloadRound, err error) {
	r.peakLeft, err = processorsLeft(func() error {
		r.peak, err = closed.run(ctx)
		return err
	})
	if err != nil {
		return r, err
	}
	r.floodLeft, err = processorsLeft(func() error {
		r.flood, err = openLoad{
			addr: closed.addr, request: closed.request(), perSecond: overloadTimes * r.peak.perSecond, connections: 400, length: closed.length,
		}.run(ctx)
		return err
	})
	return r, err
}

// processorsLeft runs f and returns how many processors this process did not use meanwhile.
func processorsLeft(f func() error) (float64, error) {
	begin, before := time.Now(), processorTime()
	err := f()
	used := (processorTime() - before).Seconds() / time.Since(begin).Seconds()
	return float64(runtime.NumCPU()) - used, err
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it fails for a wrong argument only
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// openLoad is an open loop: requests are due at a rate, whatever the answers take. A connection
// that waits for an answer skips no request: it sends the next one as soon as it can.
type openLoad struct {
	addr        string
	request     []byte
	perSecond   float64
	connections int
	length      time.Duration
}

// openResult is the measurement of an openLoad.
type openResult struct {
	offered, served, refused float64 // a second
	answers, refusals        []time.Duration
	errors                   int
}

// run puts the load on and measures.
func (l openLoad) run(ctx context.Context) (openResult, error) {
	ctx, cancel := context.WithTimeout(ctx, l.length)
	defer cancel()
	var all openResult
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	every := time.Duration(float64(l.connections) / l.perSecond * float64(time.Second))
	for i := range l.connections {
		wg.Go(func() {
			first := begin.Add(every * time.Duration(i) / time.Duration(l.connections))
			r := l.connection(ctx, first, every)
			mu.Lock()
			defer mu.Unlock()
			all.answers = append(all.answers, r.answers...)
			all.refusals = append(all.refusals, r.refusals...)
			all.errors += r.errors
		})
	}
	wg.Wait()
	elapsed := time.Since(begin).Seconds()
	slices.Sort(all.answers)
	slices.Sort(all.refusals)
	all.served, all.refused = float64(len(all.answers))/elapsed, float64(len(all.refusals))/elapsed
	all.offered = all.served + all.refused
	if len(all.answers) == 0 {
		return all, fmt.Errorf("no request of %d succeeded: %w", len(all.refusals)+all.errors, errNoAnswer)
	}
	return all, nil
}

// connection sends a request each time one is due, until ctx ends.
func (l openLoad) connection(ctx context.Context, due time.Time, every time.Duration) (r openResult) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		r.errors++
		return r
	}
	defer func() { _ = conn.Close() }() // the measurement is over
	in := bufio.NewReaderSize(conn, 4<<10)
	for ; ctx.Err() == nil; due = due.Add(every) {
		if wait := time.Until(due); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				return r
			case <-timer.C:
			}
		}
		begin := time.Now()
		status, err := exchange(conn, in, l.request)
		switch took := time.Since(begin); {
		case err != nil:
			r.errors++
			return r
		case status == 200:
			r.answers = append(r.answers, took)
		default:
			r.refusals = append(r.refusals, took)
		}
	}
	return r
}

// quantile returns the duration that the share q of sorted did not exceed, 0 for none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
