package visibility

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestVisibility(t *testing.T) {
	t.Parallel()
	errWrite := errors.New("the store does not answer")
	for name, test := range map[string]func(t *testing.T, v *Visibility, writes *atomic.Int32){
		"an end before the time writes nothing": func(t *testing.T, v *Visibility, writes *atomic.Int32) {
			time.Sleep(visibleAfter - time.Nanosecond)
			if written, err := v.End(); written || err != nil {
				t.Errorf("end: got %v, %v; want false, nil", written, err)
			}
			time.Sleep(time.Minute)
			if err := v.Ensure(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("ensure behind the end: got %v, want %v", err, context.Canceled)
			}
			if got := writes.Load(); got != 0 {
				t.Errorf("got %d writes, want 0", got)
			}
		},
		"the time writes": func(t *testing.T, v *Visibility, writes *atomic.Int32) {
			time.Sleep(visibleAfter)
			synctest.Wait()
			if got := writes.Load(); got != 1 {
				t.Errorf("after %s: got %d writes, want 1", visibleAfter, got)
			}
			if written, err := v.End(); !written || !errors.Is(err, errWrite) {
				t.Errorf("end: got %v, %v; want true and the write's error", written, err)
			}
		},
		"effects write once and wait": func(t *testing.T, v *Visibility, writes *atomic.Int32) {
			begin := time.Now()
			for range 3 {
				if err := v.Ensure(t.Context()); !errors.Is(err, errWrite) {
					t.Errorf("ensure: got %v, want the write's error", err)
				}
			}
			if took := time.Since(begin); took != time.Second {
				t.Errorf("ensure returned after %s, want 1s, the time of one write", took)
			}
			time.Sleep(time.Minute)
			if got := writes.Load(); got != 1 {
				t.Errorf("got %d writes, want 1", got)
			}
		},
		"a caller that leaves ends no write": func(t *testing.T, v *Visibility, writes *atomic.Int32) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := v.Ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ensure: got %v, want %v", err, context.DeadlineExceeded)
			}
			if written, err := v.End(); !written || !errors.Is(err, errWrite) || writes.Load() != 1 {
				t.Errorf("end: got %v, %v and %d writes; want true, the write's error and 1", written, err, writes.Load())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var writes atomic.Int32
				v := New(func() error {
					writes.Add(1)
					time.Sleep(time.Second)
					return errWrite
				})
				test(t, v, &writes)
			})
		})
	}
}
