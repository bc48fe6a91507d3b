package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
)

// Records on the large side of the growth comparison, times options.scale; the small side has
// ten of each.
const (
	storedFunctions   = 100_000
	storedActivations = 1_000_000
)

// growth compares the throughput over a full store with that over a nearly empty one. The
// requirement holds if no operation of a call depends on the number of records.
func growth(ctx context.Context, o options) ([]row, error) {
	small, err := newTestbed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer small.close()
	large, err := newTestbed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer large.close()
	functions, activations := int(storedFunctions*o.scale), int(storedActivations*o.scale)
	for _, side := range []struct {
		bed                    *testbed
		functions, activations int
	}{{small, 10, 10}, {large, functions, activations}} {
		if err := publish(ctx, side.bed.sous, "hello", helloSource, "{}"); err != nil {
			return nil, err
		}
		if err := fill(ctx, side.bed.store, side.functions, side.activations); err != nil {
			return nil, err
		}
	}
	target := func(b *testbed) load {
		return load{b.sous.addr, httpGet(b.sous.addr, webPath("hello")), 64, o.seconds}
	}
	rl, rs, err := compare(ctx, o, target(large), target(small))
	if err != nil {
		return nil, err
	}
	ratio := rl.perSecond / rs.perSecond
	return []row{
		{name: "10 functions, 10 activations stored", value: loadText(rs)},
		{name: fmt.Sprintf("%d functions, %d activations stored", functions, activations), value: loadText(rl)},
		{"throughput, share of the empty store's", fmt.Sprintf("%.2f", ratio), "≥ 0.9", ratio >= 0.9},
	}, nil
}

// fill writes records through the repositories, many at a time so that they
// leave in large batches. The activations all belong to the measured function.
func fill(ctx context.Context, store *process, functions, runs int) error {
	s, err := storage.Open(ctx, storage.Config{URL: "redis://" + store.addr})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // all has been written
	repo := storage.NewFunctions(s)
	err = inParallel(ctx, 64, functions, func(ctx context.Context, n int) error {
		_, err := repo.Create(ctx, api.Function{
			Tenant: tenant, Namespace: namespace, Name: "stored-" + nthName(n), Runtime: api.RuntimeJS,
			Entry: api.DefaultEntry, Handler: api.DefaultHandler, CreatedAtMS: s.NowMS(),
		})
		return err
	})
	if err != nil {
		return err
	}
	// Start times are a millisecond apart and end now, like those of a busy function.
	records := activations.New(s)
	now := s.NowMS()
	return inParallel(ctx, 512, runs, func(ctx context.Context, n int) error {
		_, _, err := records.RecordEnded(ctx, storedHello(now-int64(runs-n)), nil)
		return err
	})
}

// storedHello returns the record that a call of hello leaves, started at startMS.
func storedHello(startMS int64) *activations.Record {
	return &activations.Record{Activation: api.Activation{
		ActivationID: uuid.Must(uuid.NewV7()).String(), Tenant: tenant, Namespace: namespace, Function: "hello",
		Ref: api.Ref{Alias: "prod", Version: 1}, Trigger: api.Trigger{Type: api.TriggerHTTP}, RequestID: api.NewRequestID(startMS),
		Status: api.StatusSuccess, StartMS: startMS, EndMS: startMS + 1, DurationMS: 1, DeadlineMS: startMS + api.DefaultTimeoutMS,
		Attempt: 1, Result: []byte(`{"hello":"world"}`), CPUMS: 0.1, MemoryPeakBytes: 8 << 20,
	}}
}

// inParallel calls do for 0 to n-1 in some goroutines, and returns the first error.
func inParallel(ctx context.Context, workers, n int, do func(ctx context.Context, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range workers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := do(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
