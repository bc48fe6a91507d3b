package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestRunEnds has the fake child end an activation in every way there is.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	long := strings.Repeat("é", 200_000)
	for _, tc := range []struct {
		do      string
		status  api.Status
		error   api.ErrorType
		message string // its beginning
		retires bool
	}{
		{do: "echo", status: api.StatusSuccess},
		{do: "retire", status: api.StatusSuccess, retires: true},
		{do: "stderr 1000000", status: api.StatusSuccess},
		{do: "big 6291454", status: api.StatusSuccess},
		{do: "big 6291455", status: api.StatusError, error: api.ErrResultTooLarge},
		{do: "error 200000", status: api.StatusError, error: api.ErrException, message: long[:api.MaxErrorMessageBytes]},
		{do: "timeout", status: api.StatusTimeout, error: api.ErrTimeout},
		{do: "oom", status: api.StatusError, error: api.ErrMemoryLimit, retires: true},
		{do: "stack", status: api.StatusError, error: api.ErrException, message: "RangeError: Maximum call stack", retires: true},
		{do: "exit 3", status: api.StatusError, error: api.ErrSandboxCrash, message: "the sandbox ended: exit status 3", retires: true},
		{do: "exit 0", status: api.StatusError, error: api.ErrSandboxCrash, message: "the sandbox ended: exit status 0", retires: true},
		{do: "garbage", status: api.StatusError, error: api.ErrSandboxCrash, message: "the sandbox broke its protocol", retires: true},
		{do: "kind", status: api.StatusError, error: api.ErrSandboxCrash, message: "the sandbox broke its protocol", retires: true},
		{do: "notjson", status: api.StatusError, error: api.ErrSandboxCrash, message: "the sandbox broke its protocol", retires: true},
		{do: "type", status: api.StatusError, error: api.ErrSandboxCrash, message: "the sandbox broke its protocol", retires: true},
	} {
		t.Run(tc.do, func(t *testing.T) {
			t.Parallel()
			prog := fakeProgram(tc.do, "")
			s := acquire(t, p, prog)
			r := s.Run(t.Context(), do(tc.do))
			p.Release(s)
			var gotError api.ErrorType
			if r.Error != nil {
				gotError = r.Error.Type
				if !strings.HasPrefix(r.Error.Message, tc.message) || len(r.Error.Message) > api.MaxErrorMessageBytes ||
					len(r.Error.Stack) > api.MaxErrorStackBytes || len(r.Error.Code) > api.MaxErrorCodeBytes {
					t.Errorf("got error %.200q with %d bytes of stack and %d of code, want the prefix %q and lengths within the limits", r.Error.Message, len(r.Error.Stack), len(r.Error.Code), tc.message)
				}
			}
			if r.Status != tc.status || gotError != tc.error {
				t.Errorf("got %s %q, want %s %q", r.Status, gotError, tc.status, tc.error)
			}
			again := acquire(t, p, prog)
			if again.Cold() != tc.retires {
				t.Errorf("retired: %v, want %v", again.Cold(), tc.retires)
			}
			p.Release(again)
		})
	}
}

func TestRunReportsWhatWasUsed(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("used", ""))
	r := s.Run(t.Context(), do("retire"))
	p.Release(s)
	if diff := cmp.Diff(Result{Status: api.StatusSuccess, CPU: 7, MemoryPeakBytes: 8}, r); diff != "" {
		t.Errorf("told by the child (-want +got):\n%s", diff)
	}
	s = acquire(t, p, fakeProgram("used", ""))
	// A busy machine may run the child for a small part of the time only. The test therefore
	// kills it by what it has used, and not after a time.
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var used time.Duration
	watched, began, before := make(chan struct{}), time.Now(), s.child.cpuTime()
	go func() {
		defer close(watched)
		defer kill()
		eventually(t, func() bool {
			used = (s.child.cpuTime() - before).Truncate(time.Millisecond) // the ended child's is in microseconds
			return used >= 50*time.Millisecond
		})
	}()
	r = s.Run(ctx, call(`"spin"`, time.Minute))
	took := time.Since(began)
	<-watched
	p.Release(s)
	if most := took * time.Duration(runtime.NumCPU()); used < 50*time.Millisecond || r.CPU < used || r.CPU > most || r.MemoryPeakBytes < 1<<20 {
		t.Errorf("killed child: got %v of CPU and %d bytes, want %v to %v and at least 1 MiB", r.CPU, r.MemoryPeakBytes, max(used, 50*time.Millisecond), most)
	}
}

// TestRunIsKilledWhenLate: a child that ignores its deadline dies 100 ms later.
func TestRunIsKilledWhenLate(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("late", ""))
	start := time.Now()
	r := s.Run(t.Context(), call(`"spin"`, 100*time.Millisecond))
	took := time.Since(start)
	p.Release(s)
	if r.Status != api.StatusTimeout || r.Error.Type != api.ErrTimeout {
		t.Errorf("got %+v, want a timeout", r)
	}
	if took < 190*time.Millisecond || took > 5*time.Second { // a busy machine ends it later
		t.Errorf("took %v, want about 200 ms", took)
	}
}

func TestRunIsCancelled(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	for _, tc := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want api.Status
	}{
		{"by the caller", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(50*time.Millisecond, cancel)
			return ctx, cancel
		}, api.StatusCancelled},
		{"by the caller's deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 50*time.Millisecond)
		}, api.StatusTimeout},
	} {
		prog := fakeProgram(tc.name, "")
		s := acquire(t, p, prog)
		ctx, cancel := tc.end(t.Context())
		start := time.Now()
		r := s.Run(ctx, do("spin"))
		cancel()
		p.Release(s)
		if r.Status != tc.want || time.Since(start) > 5*time.Second {
			t.Errorf("%s: got %s after %v, want %s within 5 s", tc.name, r.Status, time.Since(start), tc.want)
		}
		if s := acquire(t, p, prog); !s.Cold() {
			t.Errorf("%s: got the same child, want another one", tc.name)
		} else {
			p.Release(s)
		}
	}
}

func TestRunCutsLogs(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("logs", ""))
	defer p.Release(s)
	for _, tc := range []struct {
		do    string
		bytes int
		cut   bool
	}{
		{"logs 1016", 1_016_000, false},
		{"logs 4000", 1_016_000, true},
	} {
		c, got := do(tc.do), 0
		c.Log = func(l wire.LogRecord) { got += len(l.Text) }
		r := s.Run(t.Context(), c)
		if r.Status != api.StatusSuccess || got != tc.bytes || r.LogsTruncated != tc.cut {
			t.Errorf("%s: got %s, %d bytes, truncated %v, want %d bytes, truncated %v", tc.do, r.Status, got, r.LogsTruncated, tc.bytes, tc.cut)
		}
	}
}

// TestManyHostCallsAtOnce: a script that sends many calls before it takes a reply
// and a parent that waits for replies to be taken must not wait for each other.
func TestManyHostCallsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	s := acquire(t, p, program(t, "many", `export default async (n) =>
		(await Promise.all(Array.from({ length: n }, (_, i) => cs.kv.get("k".repeat(500) + i)))).length`))
	defer p.Release(s)
	c := call("900", 10*time.Second)
	value := []byte(`"` + strings.Repeat("v", 40<<10) + `"`)
	c.Host = func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
		return []byte(`{"found":true}`), value, nil
	}
	if r := s.Run(t.Context(), c); string(r.Value) != "900" {
		t.Errorf("run 900: got status %s, value %s, error %+v, want value 900", r.Status, r.Value, r.Error)
	}
}

func TestHostCallsRunTogether(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("calls", ""))
	defer p.Release(s)
	var now, most atomic.Int64
	c := do("calls 200")
	c.Host = func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(20 * time.Millisecond) // the work
		now.Add(-1)
		return nil, nil, nil
	}
	r := s.Run(t.Context(), c)
	var replies []string
	if err := json.Unmarshal(r.Value, &replies); err != nil || len(replies) != 200 || replies[0] != "true {}" {
		t.Errorf("got %s, error %v and replies %q, want 200, the first \"true {}\"", r.Status, err, replies)
	}
	if most.Load() > maxHostCalls || most.Load() < maxHostCalls/2 {
		t.Errorf("got %d concurrent calls, want %d to %d", most.Load(), maxHostCalls/2, maxHostCalls)
	}
}

// A child that dies while its next host call waits for room ends as it died.
func TestTheDeathOfAWaitingChildIsExplained(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("callsoom", ""))
	defer p.Release(s)
	c := do(fmt.Sprint("callsoom ", maxHostCalls+1))
	c.Host = func(ctx context.Context, _ string, _, _ []byte) ([]byte, []byte, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	r := s.Run(t.Context(), c)
	checkEnd(t, r, api.StatusError, api.ErrMemoryLimit, "the function used more memory than its limit")
}

// TestHostCallsAreBoundedInBytes: two large calls follow each other.
func TestHostCallsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("bytes", ""))
	defer p.Release(s)
	var now atomic.Int64
	c := do("bytes 5000000")
	c.Host = func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
		if now.Add(1) > 1 {
			t.Error("both are in memory")
		}
		time.Sleep(30 * time.Millisecond)
		now.Add(-1)
		return nil, nil, nil
	}
	if r := s.Run(t.Context(), c); r.Status != api.StatusSuccess {
		t.Errorf("run with large calls: got %+v, want success", r)
	}
}

// TestRepliesAreBoundedInBytes tests that replies wait until they can reserve their
// bytes, and that each releases its reservation.
func TestRepliesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("replies", ""))
	defer p.Release(s)
	var held, most, done atomic.Int64
	c := do("calls 20")
	c.Host = func(ctx context.Context, _ string, _, _ []byte) ([]byte, []byte, error) {
		if err := ReserveReply(ctx, api.MaxResultBytes); err != nil {
			return nil, nil, err
		}
		now := held.Add(1)
		if was := most.Load(); now > was {
			most.CompareAndSwap(was, now)
		}
		time.Sleep(2 * time.Millisecond) // so that others could come
		held.Add(-1)
		done.Add(1)
		return nil, nil, nil
	}
	if r := s.Run(t.Context(), c); r.Status != api.StatusSuccess {
		t.Errorf("run calls 20: got %+v, want success", r)
	}
	if most.Load() > maxReplyBytes/api.MaxResultBytes || done.Load() != 20 {
		t.Errorf("got %d replies in memory at the same time and %d calls done, want at most %d and 20", most.Load(), done.Load(), maxReplyBytes/api.MaxResultBytes)
	}
	if err := ReserveReply(t.Context(), api.MaxResultBytes); err != nil {
		t.Errorf("outside a host call: %v", err)
	}
}

func TestHostCallErrors(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("errors", ""))
	defer p.Release(s)
	for _, tc := range []struct {
		name string
		host HostFunc
		want string
	}{
		{"known", func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
			return nil, nil, api.Errorf(api.CodeHostFetchBlocked, "not there")
		}, `false {"code":"CS_RUNTIME_FETCH_BLOCKED","message":"not there"}`},
		{"internal", func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
			return nil, nil, errors.New("a secret of the platform")
		}, `false {"code":"CS_INTERNAL","message":"the platform could not perform x"}`},
		{"panic", func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
			panic("a bug")
		}, `false {"code":"CS_INTERNAL","message":"the platform could not perform x"}`},
		{"too large", func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
			return nil, make([]byte, wire.MaxFrame), nil
		}, `false {"code":"CS_INTERNAL","message":"the reply is too large"}`},
		{"none", nil, `false {"code":"CS_RUNTIME_CAPABILITY_DENIED","message":"this function may not use x"}`},
	} {
		c := do("calls 1")
		c.Host = tc.host
		r := s.Run(t.Context(), c)
		var replies []string
		if err := json.Unmarshal(r.Value, &replies); err != nil {
			t.Fatalf("%s: replies %s: %v, want a JSON array", tc.name, r.Value, err)
		}
		if diff := cmp.Diff([]string{tc.want}, replies); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestLateRepliesAreDropped: a host call that outlives its activation is told so
// and its reply does not reach the next one.
func TestLateRepliesAreDropped(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("late", ""))
	defer p.Release(s)
	var returned sync.WaitGroup
	returned.Add(1)
	c := do("leave")
	c.Host = func(ctx context.Context, _ string, _, _ []byte) ([]byte, []byte, error) {
		defer returned.Done()
		<-ctx.Done()
		return nil, nil, nil
	}
	if r := s.Run(t.Context(), c); r.Status != api.StatusSuccess {
		t.Fatalf("run leave: got %+v, want success", r)
	}
	returned.Wait()
	// The fake child dies of a frame that is no Invoke.
	for range 20 {
		if r := s.Run(t.Context(), do("echo")); r.Status != api.StatusSuccess {
			t.Fatalf("run echo after leave: got status %s, error %+v, want success", r.Status, r.Error)
		}
	}
}

// TestTooLateToRun: an event without remaining time, or without a caller, costs no child.
func TestTooLateToRun(t *testing.T) {
	t.Parallel()
	p := newPool(t, fakeChild(t))
	s := acquire(t, p, fakeProgram("too late", ""))
	defer p.Release(s)
	if r := s.Run(t.Context(), call(`"echo"`, -time.Second)); r.Status != api.StatusTimeout {
		t.Errorf("run with a deadline in the past: got %+v, want status %s", r, api.StatusTimeout)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := s.Run(ctx, do("echo")); r.Status != api.StatusCancelled {
		t.Errorf("run with a cancelled ctx: got %+v, want status %s", r, api.StatusCancelled)
	}
	if r := s.Run(t.Context(), do("echo")); r.Status != api.StatusSuccess {
		t.Errorf("run in time: got %+v, want success", r)
	}
}
