package coalesce_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/codesous/sous/api/coalesce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errEnded = errors.New("ended")

// fixture is a Coalescer within a synctest bubble whose flushes wait for release. An item
// is its own count; its size is ten times that.
type fixture struct {
	*coalesce.Coalescer[string, int]
	end     context.CancelCauseFunc
	release chan struct{}

	mu      sync.Mutex
	flushes []string // those that have begun
}

func newFixture(t *testing.T, cfg coalesce.Config[int]) *fixture {
	life, end := context.WithCancelCause(t.Context())
	f := &fixture{end: end, release: make(chan struct{})}
	f.Coalescer = coalesce.New(life, cfg, func(_ context.Context, key string, items []int) {
		f.mu.Lock()
		f.flushes = append(f.flushes, fmt.Sprint(key, items))
		f.mu.Unlock()
		<-f.release
	})
	return f
}

// do calls Do for each item, in this order, and returns the channel with their results.
func (f *fixture) do(ctx context.Context, key string, items ...int) <-chan error {
	done := make(chan error, len(items))
	for _, item := range items {
		go func() { done <- f.Do(ctx, key, item) }()
		synctest.Wait()
	}
	return done
}

// finish ends the flushes under way and those that follow.
func (f *fixture) finish() {
	close(f.release)
	f.Wait()
}

func (f *fixture) want(t *testing.T, flushes ...string) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(flushes, f.flushes); diff != "" {
		t.Errorf("flushes differ (-want +got):\n%s", diff)
	}
}

func TestFlushes(t *testing.T) {
	t.Parallel()
	weigh := func(item int) (count, bytes int) { return item, 10 * item }
	for _, tt := range []struct {
		name  string
		cfg   coalesce.Config[int]
		items []int // the first is flushed alone; the others arrive during its flush
		want  []string
	}{
		{"a lone item", coalesce.Config[int]{Count: 9}, []int{1}, []string{"k[1]"}},
		{"the others together, in order", coalesce.Config[int]{Count: 9}, []int{1, 5, 2, 4}, []string{"k[1]", "k[5 2 4]"}},
		{"yielding", coalesce.Config[int]{Count: 9, Yield: true}, []int{1, 5, 2, 4}, []string{"k[1]", "k[5 2 4]"}},
		{"at most Count items", coalesce.Config[int]{Count: 2}, []int{1, 2, 3, 4}, []string{"k[1]", "k[2 3]", "k[4]"}},
		{"the weighed count", coalesce.Config[int]{Count: 5, Weigh: weigh}, []int{1, 2, 3, 1, 4, 1}, []string{"k[1]", "k[2 3]", "k[1 4]", "k[1]"}},
		{"the size", coalesce.Config[int]{Count: 9, Bytes: 50, Weigh: weigh}, []int{1, 2, 3, 1, 4, 1}, []string{"k[1]", "k[2 3]", "k[1 4]", "k[1]"}},
		{"an item over the count", coalesce.Config[int]{Count: 5, Weigh: weigh}, []int{1, 6, 1}, []string{"k[1]", "k[6]", "k[1]"}},
		{"an item over the size", coalesce.Config[int]{Count: 9, Bytes: 50, Weigh: weigh}, []int{7, 1, 6, 1}, []string{"k[7]", "k[1]", "k[6]", "k[1]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, tt.cfg)
				start := time.Now()
				done := f.do(t.Context(), "k", tt.items...)
				f.want(t, tt.want[0])
				f.finish()
				f.want(t, tt.want...)
				for range tt.items {
					if err := <-done; err != nil {
						t.Errorf("Do: got %v, want nil", err)
					}
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("got flushes after %s, want them at once", d)
				}
			})
		})
	}
}

func TestSecondFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, coalesce.Config[int]{Count: 9, SecondFlushAt: 3})
		f.do(t.Context(), "k", 1, 2, 3)
		f.want(t, "k[1]")
		f.do(t.Context(), "k", 4)
		f.want(t, "k[1]", "k[2 3 4]")
		f.do(t.Context(), "k", 5, 6, 7, 8) // a third never starts
		f.want(t, "k[1]", "k[2 3 4]")
		f.release <- struct{}{}
		f.want(t, "k[1]", "k[2 3 4]", "k[5 6 7 8]")
		f.finish()
		f.do(t.Context(), "k", 9)
		f.want(t, "k[1]", "k[2 3 4]", "k[5 6 7 8]", "k[9]")
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, coalesce.Config[int]{Count: 9})
		f.do(t.Context(), "a", 1, 2)
		f.do(t.Context(), "b", 3)
		f.want(t, "a[1]", "b[3]")
		f.finish()
		f.want(t, "a[1]", "b[3]", "a[2]")
	})
}

func TestAnEndedCallerIsFlushedNevertheless(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, coalesce.Config[int]{Count: 9})
		ctx, cancel := context.WithCancel(t.Context())
		done := f.do(ctx, "k", 1, 2)
		cancel()
		for range 2 {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Do with a context that ended: got %v, want %v", err, context.Canceled)
			}
		}
		if err := f.Do(ctx, "k", 3); !errors.Is(err, context.Canceled) {
			t.Errorf("Do after the end of its context: got %v, want %v", err, context.Canceled)
		}
		f.finish()
		f.want(t, "k[1]", "k[2]")
	})
}

func TestEndOfLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, coalesce.Config[int]{Count: 9})
		flushed, waits := f.do(t.Context(), "k", 1), f.do(t.Context(), "k", 2)
		f.end(errEnded)
		if err := f.Do(t.Context(), "k", 3); !errors.Is(err, errEnded) {
			t.Errorf("Do after the end: got %v, want %v", err, errEnded)
		}
		f.finish()
		if err := <-flushed; err != nil {
			t.Errorf("Do whose flush was under way: got %v, want nil", err)
		}
		if err := <-waits; !errors.Is(err, errEnded) {
			t.Errorf("Do whose flush had not begun: got %v, want %v", err, errEnded)
		}
		f.Add("k", 4)
		f.Wait()
		f.want(t, "k[1]")
	})
}

// A lone call whose context cannot end flushes in its own goroutine, and the items that arrive
// meanwhile are flushed after it by another one.
func TestALoneCallFlushesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stacks []string
		release := make(chan struct{})
		c := coalesce.New(t.Context(), coalesce.Config[int]{}, func(context.Context, string, []int) {
			stacks = append(stacks, string(debug.Stack()))
			<-release
		})
		var calls sync.WaitGroup
		do := func(ctx context.Context) {
			calls.Go(func() {
				if err := c.Do(ctx, "a", 1); err != nil {
					t.Errorf("Do: %v", err)
				}
			})
			synctest.Wait()
		}
		do(context.WithoutCancel(t.Context()))
		do(context.WithoutCancel(t.Context()))
		close(release)
		calls.Wait()
		do(t.Context())
		calls.Wait()
		c.Wait()
		var inCaller []bool
		for _, stack := range stacks {
			inCaller = append(inCaller, strings.Contains(stack, "Coalescer[...]).Do("))
		}
		if want := []bool{true, false, false}; !slices.Equal(inCaller, want) {
			t.Errorf("flushes in the goroutine of their caller: got %v, want %v; stacks:\n%s", inCaller, want, stacks)
		}
	})
}

// A panic of a flush is that of the calls which wait for it, and of no others.
func TestPanicOfAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := coalesce.New(t.Context(), coalesce.Config[int]{Count: 2}, func(_ context.Context, _ string, items []int) {
			<-release
			if items[0] == 1 {
				panic("a bad reply")
			}
		})
		panics := make(chan any, 4)
		do := func(ctx context.Context, item int) {
			go func() {
				defer func() { panics <- recover() }()
				if err := c.Do(ctx, "a", item); err != nil {
					t.Errorf("Do: %v", err)
				}
			}()
			synctest.Wait()
		}
		alone := context.WithoutCancel(t.Context())
		for _, item := range []int{1, 1, 1} { // one, and two together
			do(alone, item)
		}
		do(t.Context(), 2)
		close(release)
		var of []bool
		for range 4 {
			p := fmt.Sprint(<-panics)
			of = append(of, strings.Contains(p, "flush of a: a bad reply") && strings.Contains(p, "TestPanicOfAFlush"))
		}
		c.Wait()
		if n := len(slices.DeleteFunc(of, func(repeated bool) bool { return !repeated })); n != 3 {
			t.Errorf("calls with the panic: got %d, want 3", n)
		}
	})
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, coalesce.Config[int]{Count: 100, Weigh: func(item int) (count, bytes int) { return item, 0 }})
		f.do(t.Context(), "a", 1)
		f.do(t.Context(), "b", 1)
		want := func(count int, oldest time.Duration) {
			t.Helper()
			if n, d := f.Waiting(time.Now()); n != count || d != oldest {
				t.Errorf("Waiting: got %d, %s, want %d, %s", n, d, count, oldest)
			}
		}
		want(0, 0)
		f.do(t.Context(), "a", 20)
		time.Sleep(time.Second)
		f.do(t.Context(), "b", 5)
		time.Sleep(time.Second)
		want(25, 2*time.Second)
		f.finish()
		want(0, 0)
	})
}

// TestWaitIncludesWhatAFlushAdds: Wait returns after the flushes of items that flush added.
func TestWaitIncludesWhatAFlushAdds(t *testing.T) {
	t.Parallel()
	var left atomic.Int64
	left.Store(100)
	var c *coalesce.Coalescer[int64, struct{}]
	c = coalesce.New(t.Context(), coalesce.Config[struct{}]{Count: 1}, func(context.Context, int64, []struct{}) {
		if n := left.Add(-1); n > 0 {
			c.Add(n%2, struct{}{})
		}
	})
	c.Add(0, struct{}{})
	c.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("Wait returned with %d flushes left, want 0", n)
	}
}

// TestOrder: the items of a key are flushed once and in the order of their calls, one flush
// at a time, while many goroutines add to many keys.
func TestOrder(t *testing.T) {
	t.Parallel()
	const keys, callers, calls = 3, 16, 200
	type item struct{ caller, number int }
	var flushing [keys]atomic.Bool
	var next [callers]int // of caller i, guarded by the flushes of its key
	c := coalesce.New(t.Context(), coalesce.Config[item]{Count: 5, Yield: true}, func(_ context.Context, key int, items []item) {
		if flushing[key].Swap(true) {
			t.Errorf("got two flushes of key %d at a time, want one", key)
		}
		for _, i := range items {
			if i.number != next[i.caller] {
				t.Errorf("got item %d of caller %d, want %d", i.number, i.caller, next[i.caller])
			}
			next[i.caller]++
		}
		flushing[key].Store(false)
	})
	var work sync.WaitGroup
	for caller := range callers {
		work.Go(func() {
			for number := range calls {
				if number%3 > 0 {
					c.Add(caller%keys, item{caller, number})
				} else if err := c.Do(t.Context(), caller%keys, item{caller, number}); err != nil {
					t.Errorf("Do: got %v, want nil", err)
				}
			}
		})
	}
	work.Wait()
	c.Wait()
	for caller, n := range next {
		if n != calls {
			t.Errorf("got %d items of caller %d flushed, want %d", n, caller, calls)
		}
	}
}

// TestEndStress: when life ends under load, every Do returns whether its item was flushed,
// and no flush begins after Wait.
func TestEndStress(t *testing.T) {
	t.Parallel()
	for range 200 {
		life, end := context.WithCancelCause(t.Context())
		var flushed atomic.Int64
		var over atomic.Bool
		c := coalesce.New(life, coalesce.Config[int]{Count: 3, SecondFlushAt: 2}, func(_ context.Context, _ int, items []int) {
			if over.Load() {
				t.Error("got a flush after Wait, want none")
			}
			flushed.Add(int64(len(items)))
		})
		var done atomic.Int64
		var work sync.WaitGroup
		for caller := range 8 {
			work.Go(func() {
				for {
					if err := c.Do(t.Context(), caller%2, caller); err != nil {
						if !errors.Is(err, errEnded) {
							t.Errorf("Do: got %v, want %v", err, errEnded)
						}
						return
					}
					if done.Add(1) == 20 {
						end(errEnded)
						c.Wait()
						over.Store(true)
					}
				}
			})
		}
		work.Wait()
		end(nil)
		if done.Load() != flushed.Load() {
			t.Errorf("got %d calls without an error for %d flushed items, want as many", done.Load(), flushed.Load())
		}
	}
}

func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			c := coalesce.New(b.Context(), coalesce.Config[int]{Count: 256, Yield: true}, func(context.Context, int, []int) {})
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var work sync.WaitGroup
			for caller := range callers {
				work.Go(func() {
					for left.Add(-1) >= 0 {
						if err := c.Do(b.Context(), caller%2, caller); err != nil {
							b.Errorf("Do: got %v, want nil", err)
						}
					}
				})
			}
			work.Wait()
		})
	}
}
