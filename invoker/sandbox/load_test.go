package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/google/go-cmp/cmp"
)

// TestFailedLoads: an error of the source, a source that nothing gets through, a
// child that dies; the place is free again after each.
func TestFailedLoads(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1))
	for _, tc := range []struct {
		handler string
		message string
		fields  []api.FieldError
	}{
		{"refuse", "function.js:3:7: no", []api.FieldError{{Path: "function.js", Line: 3, Column: 7, Message: "no"}}},
		{"refuse much", "", make([]api.FieldError, maxProblems)},
		{"die", "the source cannot be used: the sandbox that read it ended: exit status 7", nil},
		{"stack", "the source cannot be used: it is nested too deeply", nil},
	} {
		for _, f := range []func(context.Context, *Program) error{
			p.Check,
			func(ctx context.Context, prog *Program) error {
				_, err := p.Acquire(ctx, prog, nil)
				return err
			},
		} {
			err := f(t.Context(), fakeProgram("load", tc.handler))
			var e *api.Error
			if !errors.As(err, &e) || e.Code != api.CodeValidationSource {
				t.Errorf("handler %s: got error %v, want code %s", tc.handler, err, api.CodeValidationSource)
				continue
			}
			if diff := cmp.Diff(tc.fields, e.Fields); diff != "" || e.Message != tc.message {
				t.Errorf("%s: %q, fields (-want +got):\n%s", tc.handler, e.Message, diff)
			}
		}
	}
	if s := p.Stats(); s.Busy != 0 || s.ReservedBytes != 0 {
		t.Errorf("got %d busy and %d bytes reserved after the failures, want 0 and 0", s.Busy, s.ReservedBytes)
	}
}

func TestLoadIsBoundedInTime(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1), func(c *Config) { c.LoadTimeout = 3 * time.Second })
	err := p.Check(t.Context(), fakeProgram("slow", "hang"))
	if api.ErrorCode(err) != api.CodeValidationSource || !strings.Contains(err.Error(), "took more than 3s") {
		t.Errorf("got error %v, want code %s and that it took more than 3s", err, api.CodeValidationSource)
	}
}

// TestBrokenChildIsNotTheSourcesFault: what no source can cause is an internal error.
func TestBrokenChildIsNotTheSourcesFault(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1))
	if _, err := p.Acquire(t.Context(), fakeProgram("broken", "done"), nil); api.ErrorCode(err) != api.CodeInternal {
		t.Errorf("Acquire: got error %v, want code %s", err, api.CodeInternal)
	}
}

func TestBundleErrorIsTheCallers(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	prog := fakeProgram("store", "")
	prog.Bundle = func(context.Context) ([]byte, error) { return nil, api.Errorf(api.CodeStoreUnavailable, "down") }
	waitSpares(t, p)
	spawned := p.Stats().Spawned
	if _, err := p.Acquire(t.Context(), prog, nil); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("Acquire: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
	if err := p.Check(t.Context(), prog); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Errorf("Check: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
	if s := p.Stats(); s.Busy != 0 || s.Spawned != spawned {
		t.Errorf("got %d busy and %d spawned, want 0 and %d", s.Busy, s.Spawned, spawned)
	}
}

func TestAcquireIsCancelled(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	if _, err := p.Acquire(ctx, fakeProgram("hang", "hang"), nil); !errors.Is(err, context.Canceled) || time.Since(start) > 5*time.Second {
		t.Errorf("Acquire: got error %v after %v, want %v within 5 s", err, time.Since(start), context.Canceled)
	}
}

// TestOneCompiles: of many cold starts of one bundle one reads the bundle.
func TestOneCompiles(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(8))
	var bundles atomic.Int64
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			prog := fakeProgram(fmt.Sprint("key", i), "")
			prog.Digest = "one"
			prog.Bundle = func(context.Context) ([]byte, error) {
				bundles.Add(1)
				return []byte("bundle"), nil
			}
			s, err := p.Acquire(t.Context(), prog, nil)
			if err != nil {
				t.Errorf("p.Acquire: %v", err)
				return
			}
			p.Release(s)
		})
	}
	wait.Wait()
	if bundles.Load() != 1 {
		t.Errorf("got %d reads of the bundle, want 1", bundles.Load())
	}
	checked := fakeProgram("checked", "")
	if err := p.Check(t.Context(), checked); err != nil {
		t.Fatalf("p.Check: %v", err)
	}
	checked.Bundle = nil // not called: Check has kept the script
	p.Release(acquire(t, p, checked))
}

// TestALieAboutMemoryIsBounded: what a child says it has mapped raises its limit
// no further than the limit that held before.
func TestALieAboutMemoryIsBounded(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t), places(1))
	s := acquire(t, p, fakeProgram("lie", "lie"))
	defer p.Release(s)
	if most := memory.AddressSpaceLimit(s.child.mapped+memory.CompileRoom, 64); s.child.limit != most {
		t.Errorf("limit %d, want %d", s.child.limit, most)
	}
}

func TestAddressSpaceLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ memoryMB, room uint64 }{{16, 64 + 48}, {32, 64 + 48}, {64, 128 + 48}, {4096, 6208 + 48}} {
		if got := memory.AddressSpaceLimit(1000*megabyte, int(tc.memoryMB)); got != (1000+tc.room)*megabyte {
			t.Errorf("%d MB: %d MB over, want %d", tc.memoryMB, got/megabyte-1000, tc.room)
		}
	}
}
