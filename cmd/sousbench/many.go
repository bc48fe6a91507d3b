package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// nthSource returns the source of a function that is unlike the others: versions of equal
// source would share the compiled script in the pool's cache.
func nthSource(n int) string {
	return fmt.Sprintf("const n = %d;\nexport default () => ({ hello: \"world\", n });\n", n)
}

func nthName(n int) string { return fmt.Sprintf("fn-%06d", n) }

// publishMany publishes functions 0 to count-1, each of another source, four at a time.
func publishMany(ctx context.Context, p *process, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for n := range count {
		group.Go(func() error { return publish(ctx, p, nthName(n), nthSource(n), "{}") })
	}
	return group.Wait()
}

// callEach calls functions 0 to count-1 once, one after the other on one connection, with
// think between the end of a call and the next.
func callEach(ctx context.Context, p *process, count int, think time.Duration) (result, error) {
	var r result
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.addr)
	if err != nil {
		return r, err
	}
	defer func() { _ = conn.Close() }() // the measurement is over
	in := bufio.NewReader(conn)
	for n := range count {
		request := httpGet(p.addr, webPath(nthName(n)))()
		begin := time.Now()
		status, err := exchange(conn, in, request)
		if err != nil {
			return r, err
		}
		if status != http.StatusOK {
			r.errors++
			continue
		}
		r.sorted = append(r.sorted, time.Since(begin))
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(think):
		}
	}
	slices.Sort(r.sorted)
	return r, nil
}

// coldStart measures the first call of versions that the replica has never seen. They
// are published through another replica, so nothing of them is cached. Back to back, a call
// may find no spare sandbox and wait for one to start; with pauses it finds one.
func coldStart(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	const functions = 300
	if err := publishMany(ctx, b.sous, functions); err != nil {
		return nil, err
	}
	b.sous.stop()
	var rows []row
	for _, round := range []struct {
		name  string
		think time.Duration
	}{{"back to back", 0}, {"50 ms apart", 50 * time.Millisecond}} {
		fresh, err := startSous(ctx, o, b.store)
		if err != nil {
			return nil, err
		}
		r, err := callEach(ctx, fresh, functions, round.think)
		fresh.stop()
		if err != nil {
			return nil, err
		}
		p50, p99 := r.quantile(0.5), r.quantile(0.99)
		rows = append(rows,
			row{"p50, " + round.name, ms(p50), "< 10 ms", p50 < 10*time.Millisecond},
			row{"p99, " + round.name, ms(p99), "< 30 ms", p99 < 30*time.Millisecond && r.errors == 0})
	}
	return rows, nil
}

// thousandFunctions calls many versions in turn, with room for 100 sandboxes: most calls have
// to end the warm sandbox of another version.
func thousandFunctions(ctx context.Context, o options) ([]row, error) {
	// The budget is the memory that 100 children may use in the worst case: 2.2 times the
	// default limit of a version, 128 MiB.
	const functions, room, budgetMiB = 1000, 100, 100 * 128 * 11 / 5
	b, err := newTestbed(ctx, o, "--sandbox-max", fmt.Sprint(room), "--sandbox-memory-budget", fmt.Sprint(budgetMiB))
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publishMany(ctx, b.sous, functions); err != nil {
		return nil, err
	}
	r, err := callEach(ctx, b.sous, functions, 0)
	if err != nil {
		return nil, err
	}
	used, children, err := b.sous.childrenMemory()
	if err != nil {
		return nil, err
	}
	return []row{
		{"calls without error", fmt.Sprintf("%d of %d", len(r.sorted), functions), "all", r.errors == 0},
		{"p50, p99", ms(r.quantile(0.5)) + ", " + ms(r.quantile(0.99)), "", true},
		{"sandboxes at the end", fmt.Sprint(children), fmt.Sprintf("≤ %d and spares", room), children <= room+4},
		{"their memory", fmt.Sprintf("%d MiB", used>>20), fmt.Sprintf("≤ %d MiB", budgetMiB), used>>20 <= budgetMiB},
	}, nil
}

// parallelFetch measures a function that starts ten fetches of 50 ms at the same time: one
// after the other they would take 500 ms.
func parallelFetch(ctx context.Context, o options) ([]row, error) {
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(50 * time.Millisecond):
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
		}
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	upstream := &http.Server{Handler: slow, ReadHeaderTimeout: time.Second}
	go func() { _ = upstream.Serve(listener) }() // ends with Close
	defer func() { _ = upstream.Close() }()      // the measurement is over
	b, err := newTestbed(ctx, o, "--egress-allow", "127.0.0.1/32")
	if err != nil {
		return nil, err
	}
	defer b.close()
	source := fmt.Sprintf(`export default async () => {
  const all = await Promise.all([...Array(10).keys()].map((n) => fetch("http://%s/" + n)));
  return { statuses: all.map((r) => r.status) };
};`, listener.Addr())
	config := fmt.Sprintf(`{"capabilities": {"http": {"allowHosts": [%q]}}}`, listener.Addr())
	if err := publish(ctx, b.sous, "fetches", source, config); err != nil {
		return nil, err
	}
	r, err := load{b.sous.addr, httpGet(b.sous.addr, webPath("fetches")), 1, o.seconds / 2}.run(ctx)
	if err != nil {
		return nil, err
	}
	p50 := r.quantile(0.5)
	return []row{
		{"ten fetches of 50 ms, p50", ms(p50), "< 80 ms", p50 < 80*time.Millisecond && r.errors == 0},
		{"p99", ms(r.quantile(0.99)), "", true},
	}, nil
}
