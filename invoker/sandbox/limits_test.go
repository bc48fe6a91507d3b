package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"go.uber.org/zap"
)

// hostile are programs of untrusted tenants, and how each ends. TestLimits
// runs it in real children with all layers.
var hostile = []struct {
	name    string
	source  string // of the handler's body
	timeout time.Duration
	status  api.Status
	error   api.ErrorType
	message string        // part of it
	within  time.Duration // on a busy machine; without its guard a case never ends, or at 30 s
	logsCut bool
}{
	{name: "endless loop", source: `for (;;);`, timeout: 200 * time.Millisecond,
		status: api.StatusTimeout, error: api.ErrTimeout, within: 3 * time.Second},
	{name: "growing array", source: `const a = []; for (;;) a.push(new Array(1e5).fill(1))`,
		status: api.StatusError, error: api.ErrMemoryLimit},
	{name: "one huge string", source: `return "a".repeat(2 ** 30).length`,
		status: api.StatusError, error: api.ErrMemoryLimit},
	{name: "one huge buffer", source: `return new Uint8Array(2 ** 31 - 1).length`,
		status: api.StatusError, error: api.ErrMemoryLimit},
	{name: "endless recursion", source: `const f = () => f() + 1; return f()`,
		status: api.StatusError, error: api.ErrException, message: "RangeError"},
	{name: "deep native recursion", source: `let a = []; for (let i = 0; i < 2e5; i++) a = [a]; return JSON.stringify(a)`},
	{name: "pathological expression", source: `return /^(?!x)(a+)+$/.test("a".repeat(40) + "!")`, timeout: 200 * time.Millisecond,
		status: api.StatusTimeout, error: api.ErrTimeout, within: 3 * time.Second},
	{name: "native loop", source: `return [...Array(1e9).keys()].length`, timeout: 300 * time.Millisecond},
	{name: "10 MB of logs", source: `for (let i = 0; i < 10000; i++) console.log("x".repeat(1000))`,
		status: api.StatusSuccess, logsCut: true},
	{name: "result of 50 MB", source: `return "x".repeat(50 * 2 ** 20)`},
	{name: "result of 7 MB", source: `return "x".repeat(7 * 2 ** 20)`,
		status: api.StatusError, error: api.ErrResultTooLarge},
	{name: "never settles", source: `await new Promise(() => {})`,
		status: api.StatusError, error: api.ErrUnsettled, within: 3 * time.Second},
	{name: "never settles, with a timer", source: `setInterval(() => {}, 10); await new Promise(() => {})`, timeout: 200 * time.Millisecond,
		status: api.StatusTimeout, error: api.ErrTimeout, within: 3 * time.Second},
	{name: "throws null", source: `throw null`,
		status: api.StatusError, error: api.ErrException},
	{name: "long error", source: `throw new Error("x".repeat(1e6))`,
		status: api.StatusError, error: api.ErrException},
	{name: "unhandled rejection", source: `Promise.reject(new Error("no handler")); await new Promise((r) => setTimeout(r, 20)); return 1`,
		status: api.StatusError, error: api.ErrException, message: "no handler"},
	{name: "cyclic result", source: `const a = {}; a.a = a; return a`,
		status: api.StatusError, error: api.ErrResultInvalid},
	{name: "prototype pollution", source: `Object.prototype.statusCode = 500; Array.prototype.toJSON = () => "polluted"; JSON.stringify = () => "{"; return [1]`},
	{name: "files", source: `return [typeof require, typeof process, typeof Deno, typeof Bun].join()`,
		status: api.StatusSuccess},
}

func TestLimits(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Logger = zap.NewNop() })
	for _, tc := range hostile {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			prog := program(t, tc.name, `export default async function (event) {`+tc.source+`}`)
			s := acquire(t, p, prog)
			timeout := tc.timeout
			if timeout == 0 {
				timeout = 30 * time.Second // on a busy machine a child gets few turns
			}
			c, logged := call(`{}`, timeout), 0
			c.Log = func(l wire.LogRecord) { logged += len(l.Text) }
			start := time.Now()
			r := s.Run(t.Context(), c)
			took := time.Since(start)
			p.Release(s)
			t.Logf("%s %.150s in %v, cpu %v, peak %d MB", r.Status, fmt.Sprint(r.Error), took, r.CPU, r.MemoryPeakBytes>>20)
			checkEnd(t, r, tc.status, tc.error, tc.message)
			if tc.within != 0 && took > tc.within {
				t.Errorf("got an end after %v, want it within %v", took, tc.within)
			}
			if r.LogsTruncated != tc.logsCut || logged > api.MaxLogBytes {
				t.Errorf("got %d bytes of logs, truncated %v, want at most %d, truncated %v", logged, r.LogsTruncated, api.MaxLogBytes, tc.logsCut)
			}
			if r.MemoryPeakBytes > 400<<20 {
				t.Errorf("got a peak of %d MB, want at most 400", r.MemoryPeakBytes>>20)
			}
			// Whatever it was, the version's next activation is served.
			again := acquire(t, p, prog)
			p.Release(again)
		})
	}
}

// checkEnd accepts any end where status is "": it must only be one.
func checkEnd(t *testing.T, r Result, status api.Status, errorType api.ErrorType, message string) {
	t.Helper()
	if !r.Status.Terminal() {
		t.Errorf("got status %q, want a terminal one", r.Status)
	}
	if status == "" {
		return
	}
	var got api.ActivationError
	if r.Error != nil {
		got = *r.Error
	}
	if r.Status != status || got.Type != errorType || !strings.Contains(got.Message, message) {
		t.Errorf("got %s %s %.200q, want %s %s", r.Status, got.Type, got.Message, status, errorType)
	}
	if len(got.Message) > api.MaxErrorMessageBytes || len(got.Stack) > api.MaxErrorStackBytes {
		t.Errorf("got an error of %d and a stack of %d bytes, want at most %d and %d", len(got.Message), len(got.Stack), api.MaxErrorMessageBytes, api.MaxErrorStackBytes)
	}
}

// TestMemoryLimitIsAboutTheLimit: a little under it lives, a little over it does not.
func TestMemoryLimitIsAboutTheLimit(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	prog := program(t, "memory", `export default (mb) => { const a = []; for (let i = 0; i < mb; i++) a.push(new Uint8Array(2 ** 20).fill(1)); return a.length }`)
	for _, tc := range []struct {
		mb   int
		want api.Status
	}{{50, api.StatusSuccess}, {150, api.StatusError}, {50, api.StatusSuccess}} {
		s := acquire(t, p, prog)
		r := s.Run(t.Context(), call(fmt.Sprint(tc.mb), 8*time.Second))
		p.Release(s)
		if r.Status != tc.want || (r.Error != nil && r.Error.Type != api.ErrMemoryLimit) {
			t.Errorf("%d MB: got %s with error %+v, want %s", tc.mb, r.Status, r.Error, tc.want)
		}
	}
}

// TestSourceThatBreaksCompilers ends in a clear refusal, soon, and harms no other tenant.
func TestSourceThatBreaksCompilers(t *testing.T) {
	t.Parallel()
	p := newPool(t, func(c *Config) { c.Logger, c.LoadTimeout = zap.NewNop(), 3*time.Second })
	for name, source := range map[string]string{
		"syntax":         "export default () => {\n  let = ;\n}",
		"no entry":       `export const other = 1`,
		"parentheses":    `export default ` + strings.Repeat("(", 1_000_000) + strings.Repeat(")", 1_000_000),
		"array nesting":  `export default () => ` + strings.Repeat("[", 1_000_000),
		"package import": `import x from "left-pad"; export default () => x`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			err := p.Check(t.Context(), program(t, name, source))
			t.Logf("%v: %.200s", time.Since(start), fmt.Sprint(err))
			if api.ErrorCode(err) != api.CodeValidationSource {
				t.Errorf("Check: got error %v, want code %s", err, api.CodeValidationSource)
			}
		})
	}
}

// TestNeighbours: hostile functions, one after another, do not slow the calls of a function beside
// them in the same pool. What slows the calls in a pool of its own as well is the machine.
func TestNeighbours(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	quiet := func(c *Config) { c.Logger = zap.NewNop() }
	attacked, control := newPool(t, quiet), newPool(t, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, tc := range hostile {
				s, err := attacked.Acquire(ctx, program(t, tc.name, `export default async function (event) {`+tc.source+`}`), nil)
				if err != nil {
					break
				}
				s.Run(ctx, call(`{}`, 300*time.Millisecond))
				attacked.Release(s)
			}
		}
	}()
	prog := program(t, "good", `export default (e) => e`)
	timed := func(p *Pool) time.Duration {
		start := time.Now()
		s := acquire(t, p, prog)
		r := s.Run(t.Context(), call(`{"a":1}`, 10*time.Second))
		p.Release(s)
		took := time.Since(start)
		if r.Status != api.StatusSuccess {
			t.Fatalf("run: got status %s, error %+v, want success", r.Status, r.Error)
		}
		return took
	}
	var beside, alone []time.Duration
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end) || len(beside) < 100; {
		beside, alone = append(beside, timed(attacked)), append(alone, timed(control))
		time.Sleep(5 * time.Millisecond) // a steady rate
	}
	cancel()
	<-done
	p99 := func(took []time.Duration) time.Duration {
		slices.Sort(took)
		return took[(len(took)*99+99)/100-1]
	}
	got, most := p99(beside), 3*p99(alone)+50*time.Millisecond
	t.Logf("p99 of %d calls: %v beside hostile functions, %v alone", len(beside), got, p99(alone))
	if got > most {
		t.Errorf("p99 beside hostile functions: got %v, want at most %v", got, most)
	}
}
