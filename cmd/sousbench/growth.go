package main

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// What the large side of the growth comparison stores; the small one stores ten
// of each.
const (
	storedFunctions   = 100_000
	storedActivations = 1_000_000
)

// growth: throughput over a full store against that over a nearly empty one.
func growth(ctx context.Context, o options) ([]row, error) {
	small, err := newBed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer small.close()
	large, err := newBed(ctx, o)
	if err != nil {
		return nil, err
	}
	defer large.close()
	functions, activations := int(storedFunctions*o.scale), int(storedActivations*o.scale)
	for _, side := range []struct {
		bed                    *bed
		functions, activations int
	}{{small, 10, 10}, {large, functions, activations}} {
		if err := publish(ctx, side.bed.sous, "hello", helloSource, "{}"); err != nil {
			return nil, err
		}
		if err := fill(ctx, side.bed.store, side.functions, side.activations); err != nil {
			return nil, err
		}
	}
	target := func(b *bed) load {
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
		{"throughput, share of the empty store's", fmt.Sprintf("%.2f", ratio), "within 10%", math.Abs(1-ratio) <= 0.1 || ratio > 1},
	}, nil
}

// fill writes records through the repositories, many at a time so that they
// leave in large batches. The activations all belong to the measured function.
func fill(ctx context.Context, store *process, functions, activations int) error {
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
	records := storage.NewActivations(s)
	now := s.NowMS()
	return inParallel(ctx, 512, activations, func(ctx context.Context, n int) error {
		a := &storage.StoredActivation{Activation: api.Activation{
			ActivationID: uuid.NewString(), Tenant: tenant, Namespace: namespace, Function: "hello",
			Ref: api.Ref{Alias: "prod", Version: 1}, Trigger: api.Trigger{Type: api.TriggerHTTP},
			Status: api.StatusRunning, StartMS: now - int64(activations-n), DeadlineMS: now, Attempt: 1,
		}}
		if _, _, err := records.Start(ctx, a); err != nil {
			return err
		}
		a.Status, a.EndMS, a.Result = api.StatusSuccess, a.StartMS+1, []byte(`{"hello":"world"}`)
		_, _, err := records.Finish(ctx, a, a.Attempt)
		return err
	})
}

// inParallel does n pieces of work by some workers.
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
